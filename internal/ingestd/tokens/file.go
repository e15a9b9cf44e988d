package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// File is a file of tokens that follows its changes. It is safe for concurrent
// use.
type File struct {
	path   string
	logger *slog.Logger
	set    atomic.Pointer[Set]
	seen   atomic.Pointer[stamp]
	bad    atomic.Pointer[error] // of the last time that it was read
}

type stamp struct {
	modified time.Time
	size     int64
}

// Open reads the file.
func Open(path string, logger *slog.Logger) (*File, error) {
	f := &File{path: path, logger: logger}
	return f, f.Reload()
}

// Find is Set.Find of the newest good contents.
func (f *File) Find(token string) (Principal, bool) { return f.set.Load().Find(token) }

// Err tells why the tokens are not those of the file as it is now, nil = they are.
func (f *File) Err() error {
	if bad := f.bad.Load(); bad != nil {
		return *bad
	}
	return nil
}

// Reload reads the file again. One without any token revokes all; when it is
// missing or broken the tokens stay as they were, and Err tells it. A file is
// therefore replaced by renaming, not written in place.
func (f *File) Reload() error {
	err := f.read()
	if errors.Is(err, ErrNone) && f.set.Load() != nil {
		f.set.Store(&Set{})
		err = nil
	}
	f.bad.Store(&err)
	return err
}

func (f *File) read() error {
	file, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	f.seen.Store(&stamp{info.ModTime(), info.Size()})
	set, err := Parse(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.set.Store(set)
	return nil
}

// Watch looks at the file every so often, and at once when again receives, and
// reads it when it changed. It returns with ctx.
func (f *File) Watch(ctx context.Context, every time.Duration, again <-chan os.Signal) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			f.follow(true)
		case <-tick.C:
			if f.changed() {
				f.follow(false)
			}
		}
	}
}

func (f *File) changed() bool {
	info, err := os.Stat(f.path)
	seen := f.seen.Load()
	if err != nil {
		return true
	}
	return f.Err() != nil || !info.ModTime().Equal(seen.modified) || info.Size() != seen.size
}

// follow reads the file, and logs an error that lasts once, or when asked.
func (f *File) follow(asked bool) {
	before := f.Err()
	err := f.Reload()
	switch n := f.set.Load().Len(); {
	case err != nil && (asked || before == nil || before.Error() != err.Error()):
		f.logger.Error("the tokens stay as they were", "tokens", n, "err", err)
	case err != nil:
	case n == 0:
		f.logger.Warn("the file of tokens is empty: nobody is let in", "path", f.path)
	default:
		f.logger.Info("read the tokens again", "tokens", n)
	}
}
