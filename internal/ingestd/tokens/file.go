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

// Reload reads the file again. When it is bad the tokens stay as they were.
func (f *File) Reload() error {
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
	if errors.Is(err, ErrNone) && f.set.Load() != nil {
		f.set.Store(&Set{}) // emptied on purpose: nobody is let in any more
	}
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
			f.follow()
		case <-tick.C:
			if f.changed() {
				f.follow()
			}
		}
	}
}

func (f *File) changed() bool {
	info, err := os.Stat(f.path)
	seen := f.seen.Load()
	return err == nil && (!info.ModTime().Equal(seen.modified) || info.Size() != seen.size)
}

func (f *File) follow() {
	if err := f.Reload(); err != nil {
		f.logger.Error("the tokens stay as they were", "err", err)
		return
	}
	f.logger.Info("read the tokens again", "tokens", f.set.Load().Len())
}
