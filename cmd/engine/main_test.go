package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"engine": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			cache := os.Getenv("XDG_CACHE_HOME")
			if cache == "" {
				home, err := os.UserHomeDir()
				if err != nil {
					return err
				}
				cache = home + "/.cache"
			}
			e.Setenv("XDG_CACHE_HOME", cache)
			e.Setenv("RETRYLENS_CHDB", os.Getenv("RETRYLENS_CHDB"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE COMMAND... runs a command and wants its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if e, ok := err.(interface{ ExitCode() int }); ok {
		code = fmt.Sprint(e.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}
