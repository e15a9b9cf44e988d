package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/retrylens/retrylens/internal/engine/datadir"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// bin holds the binaries, built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "retrylens-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	cmd := exec.Command("go", "build", "-o", dir+"/", "github.com/retrylens/retrylens/cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			for k, v := range environment() {
				e.Setenv(k, v)
			}
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			work := e.WorkDir
			e.Defer(func() { stopEngines(t, work) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "server": server, "terminal": terminal},
	})
}

// environment is what the engine's library is found with; $HOME is the script's
// own.
func environment() map[string]string {
	env := map[string]string{"RETRYLENS_CHDB": os.Getenv("RETRYLENS_CHDB"), "XDG_CACHE_HOME": os.Getenv("XDG_CACHE_HOME")}
	if home, err := os.UserHomeDir(); err == nil && env["XDG_CACHE_HOME"] == "" {
		env["XDG_CACHE_HOME"] = filepath.Join(home, ".cache")
	}
	return env
}

// stopEngines ends those of a script, each by the pid of its own directory.
func stopEngines(t *testing.T, work string) {
	err := filepath.WalkDir(work, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "engine.lock" {
			enginetest.Stop(t, filepath.Dir(path))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// exits CODE COMMAND... runs a command and wants its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	if code := exitCode(ts, ts.Exec(args[1], args[2:]...)); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func exitCode(ts *testscript.TestScript, err error) int {
	var exit interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	ts.Fatalf("%v", err)
	return -1
}

// server DIR starts an engine in DIR and has it stand for an external server:
// $NATIVE and $HTTP are its addresses with user and password, without database.
func server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: server DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(ts.Exec("engine", "start", "--data", dir))
	passwords, err := datadir.Dir(dir).Passwords()
	ts.Check(err)
	_, where, err := datadir.Dir(dir).Look()
	ts.Check(err)
	user := url.UserPassword(datadir.User, passwords.User)
	ts.Setenv("NATIVE", (&url.URL{Scheme: "clickhouse", User: user, Host: where.TCPAddr}).String())
	ts.Setenv("HTTP", (&url.URL{Scheme: "http", User: user, Host: where.HTTPAddr}).String())
	wrong := url.UserPassword(datadir.User, "geheim")
	ts.Setenv("NATIVE_WRONG", (&url.URL{Scheme: "clickhouse", User: wrong, Host: where.TCPAddr}).String())
	ts.Setenv("PASSWORD", passwords.User)
}
