package spool_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/retrylens/retrylens/internal/spool"
)

// TestADirectoryThatWasReplacedIsNotWrittenTo: another process may have it by now.
func TestADirectoryThatWasReplacedIsNotWrittenTo(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, dir string){
		"moved":    func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".moved")) },
		"replaced": func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".moved")); must(t, os.Mkdir(dir, 0o700)) },
		"taken": func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+".moved"))
			other, err := spool.Open(spool.Options{Dir: dir})
			must(t, err)
			t.Cleanup(func() { other.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "spool")
			s, err := spool.Open(spool.Options{Dir: dir})
			must(t, err)
			defer s.Close()
			replace(t, dir)
			if err := s.Append(batch(0, 1)); !errors.Is(err, spool.ErrReplaced) {
				t.Errorf("append: %v", err)
			}
			if st := s.Stats(); st.FailedAt.IsZero() {
				t.Error("no failure is told")
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.seg")); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
