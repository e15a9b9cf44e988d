package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLibraryPath(t *testing.T) {
	cached := filepath.Join("retrylens", "engine", Release, "libchdb.so")
	for _, c := range []struct{ name, given, chdb, xdg, want string }{
		{"given", "/g.so", "/e.so", "/x", "/g.so"},
		{"environment", "", "/e.so", "/x", "/e.so"},
		{"XDG", "", "", "/x", filepath.Join("/x", cached)},
		{"home", "", "", "", filepath.Join("/h", ".cache", cached)},
		{"relative XDG does not count", "", "", "x", filepath.Join("/h", ".cache", cached)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("RETRYLENS_CHDB", c.chdb)
			t.Setenv("XDG_CACHE_HOME", c.xdg)
			t.Setenv("HOME", "/h")
			if got, err := LibraryPath(c.given); got != c.want || err != nil {
				t.Errorf("LibraryPath = %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestFindBinary(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "engine")
	if err := os.WriteFile(bin, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RETRYLENS_ENGINE", bin)
	if got, err := FindBinary(""); got != bin || err != nil {
		t.Errorf("FindBinary = %q, %v, want that of $RETRYLENS_ENGINE", got, err)
	}
	if _, err := FindBinary(bin + "x"); !errors.Is(err, ErrNoBinary) {
		t.Errorf("one that is given and missing = %v, want ErrNoBinary", err)
	}
}
