package engine

import (
	"fmt"
	"os"
	"path/filepath"
)

// Release is the release of libchdb.so that this code was tested with and
// scripts/fetch-engine.sh installs.
const Release = "26.7.3"

// LibraryPath is where libchdb.so is looked for: given, else $RETRYLENS_CHDB, else
// the place in the user's cache where scripts/fetch-engine.sh puts it.
func LibraryPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if p := os.Getenv("RETRYLENS_CHDB"); p != "" {
		return p, nil
	}
	cache, err := cacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: no cache directory to look in: %w", ErrNoLibrary, err)
	}
	return filepath.Join(cache, "retrylens", "engine", Release, "libchdb.so"), nil
}

// cacheDir is $XDG_CACHE_HOME or ~/.cache, on every system, as in the script.
func cacheDir() (string, error) {
	if d := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(d) {
		return d, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache"), err
}

// FindLibrary is LibraryPath of a file that is there.  If it is not, the error is
// ErrNoLibrary and says how to get it.
func FindLibrary(given string) (string, error) {
	p, err := LibraryPath(given)
	if err != nil {
		return "", err
	}
	if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%w: no file %s\nrun: scripts/fetch-engine.sh (or say where it is with $RETRYLENS_CHDB)",
			ErrNoLibrary, p)
	}
	return p, nil
}
