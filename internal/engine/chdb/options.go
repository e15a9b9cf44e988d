package chdb

import (
	"fmt"
	"os"
	"path/filepath"
)

// Listens is how many statements the local session runs that count against its
// user's quota: one for each listener.
// (SELECT 'up' reads system.one, which no quota counts.)
const Listens = 2

// Options is what the engine is started with.  All fields are required.
type Options struct {
	Library    string // path of libchdb.so
	ConfigFile string // config.xml
	StoreDir   string // ClickHouse's path
	Host       string // address to listen on
	HTTPPort   int
	TCPPort    int
	LogLevel   string // ClickHouse's: error, warning, information, debug, trace

	// Confine is called on the thread that the engine's threads descend from, before
	// it starts.  If it fails the engine does not start.
	Confine     func() error
	CrashOutput *os.File // where a crash of the Go part is told
}

// upMark is what the session shows once the statement after the listeners' ran.
const upMark = "1 row in set"

// args is the command line for clickhouse-local.
func (o Options) args() []string {
	return []string{
		"clickhouse",
		"--config-file=" + o.ConfigFile,
		"--path=" + o.StoreDir,
		"--listen_host=" + o.Host,
		fmt.Sprintf("--http_port=%d", o.HTTPPort),
		fmt.Sprintf("--tcp_port=%d", o.TCPPort),
		"--log-level=" + o.LogLevel,
		"--interactive",
		"--disable_suggestion",
		"--progress=off",
		"--progress-table=off",
		// Its mode is set to 0600 when it is written: run as root, /dev/null would become root's alone.
		"--history_file=" + filepath.Join(o.StoreDir, "history"),
		"--highlight=0",
		"--hints=0",
		"--query=SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT 'up';",
	}
}
