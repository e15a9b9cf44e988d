package engine_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// TestDevicesAreLeftAsTheyAre: run as root, the engine once took /dev/null from everybody
// else by a chmod of its history file.
func TestDevicesAreLeftAsTheyAre(t *testing.T) {
	devices := []string{"/dev/null", "/dev/zero", "/dev/urandom"}
	modes := func() (all []os.FileMode, changed []unix.Timespec) {
		for _, d := range devices {
			var s unix.Stat_t
			if err := unix.Stat(d, &s); err != nil {
				t.Fatal(err)
			}
			all, changed = append(all, os.FileMode(s.Mode)), append(changed, s.Ctim)
		}
		return all, changed
	}
	before, changedBefore := modes()
	enginetest.Start(t, enginetest.WithDir(enginetest.Options(t).Dir))
	after, changedAfter := modes()
	for i, d := range devices {
		if before[i] != after[i] || changedBefore[i] != changedAfter[i] {
			t.Errorf("%s: mode %o, was %o", d, after[i], before[i])
		}
	}
}
