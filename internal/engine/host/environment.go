package host

import (
	"os"
	"strings"
	"syscall"
)

// kept are the variables that the engine and its library have a use for.
var kept = map[string]bool{
	"HOME": true, "LANG": true, "PATH": true, "TMPDIR": true, "TZ": true,
	"XDG_CACHE_HOME": true, "RETRYLENS_CHDB": true, "GOCOVERDIR": true,
}

// cleanEnvironment starts this process anew, with the same PID, unless its
// environment is clean: the rest of it, API keys for one, is not the engine's
// business, and SQL can read /proc/self/environ.
func cleanEnvironment() error {
	var env []string
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); kept[name] {
			env = append(env, e)
		}
	}
	if len(env) == len(os.Environ()) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, env)
}
