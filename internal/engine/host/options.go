package host

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
)

// Loopback is the address that the engine listens on.  There is no option to
// listen elsewhere: use a ClickHouse server for that.
const Loopback = "127.0.0.1"

// Options says how to run an engine.  Only Dir must be given.
type Options struct {
	Dir          string
	Library      string        // "": see engine.LibraryPath
	HTTPPort     int           // 0: a free one
	TCPPort      int           // 0: a free one
	Linger       time.Duration // how long to stay without a client; 0: until told to stop
	MemoryBytes  int64         // limit for all queries and caches; 0: 75% of RAM
	LogLevel     string        // ClickHouse's
	ConfigFile   string        // more XML for inside <clickhouse>, besides DIR/extra.xml
	StartTimeout time.Duration
	StopTimeout  time.Duration
	Logger       *slog.Logger // must not write to file descriptors 0 to 2
	CrashOutput  *os.File     // likewise; where a crash of the Go part is told
}

// logLevels are ClickHouse's.
var logLevels = map[string]bool{
	"fatal": true, "critical": true, "error": true, "warning": true, "notice": true,
	"information": true, "debug": true, "trace": true, "none": true,
}

// Validate returns an engine.ErrUsage that names the flag which is wrong.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return fmt.Errorf("%w: --data must be given", engine.ErrUsage)
	case badPort(o.HTTPPort):
		return fmt.Errorf("%w: --http must be 0 to 65535, got %d", engine.ErrUsage, o.HTTPPort)
	case badPort(o.TCPPort):
		return fmt.Errorf("%w: --tcp must be 0 to 65535, got %d", engine.ErrUsage, o.TCPPort)
	case o.HTTPPort != 0 && o.HTTPPort == o.TCPPort:
		return fmt.Errorf("%w: --http and --tcp must differ, got %d twice", engine.ErrUsage, o.TCPPort)
	case o.Linger < 0:
		return fmt.Errorf("%w: --linger must not be negative, got %v", engine.ErrUsage, o.Linger)
	case o.MemoryBytes < 0:
		return fmt.Errorf("%w: --memory must not be negative, got %d", engine.ErrUsage, o.MemoryBytes)
	case !logLevels[o.LogLevel]:
		return fmt.Errorf("%w: --log-level %q is none of ClickHouse's", engine.ErrUsage, o.LogLevel)
	case o.StartTimeout <= 0:
		return fmt.Errorf("%w: --start-timeout must be positive, got %v", engine.ErrUsage, o.StartTimeout)
	case o.StopTimeout <= 0:
		return fmt.Errorf("%w: --stop-timeout must be positive, got %v", engine.ErrUsage, o.StopTimeout)
	}
	return nil
}

func badPort(p int) bool { return p < 0 || p > 65535 }

// serveArgs are the arguments of cmd/engine that give o.
func (o Options) serveArgs() []string {
	return []string{
		"serve",
		"--data=" + o.Dir,
		"--lib=" + o.Library,
		"--http=" + strconv.Itoa(o.HTTPPort),
		"--tcp=" + strconv.Itoa(o.TCPPort),
		"--linger=" + o.Linger.String(),
		"--memory=" + strconv.FormatInt(o.MemoryBytes, 10),
		"--log-level=" + o.LogLevel,
		"--config=" + o.ConfigFile,
		"--start-timeout=" + o.StartTimeout.String(),
		"--stop-timeout=" + o.StopTimeout.String(),
	}
}
