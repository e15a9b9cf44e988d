// Package enginetest gives tests a real engine.  A library that is missing fails
// the test, with the command that installs it; nothing is ever skipped.
//
// A test binary that uses it should have
//
//	func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }
//
// which builds the engine's executable once and ends what Shared started.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// patience is how long a start or a stop may take here, under load.
const patience = 60 * time.Second

// An Option changes the engine.Options of a test's engine.
type Option func(*engine.Options)

// WithConfig sets Options.ExtraConfig.
func WithConfig(xml string) Option {
	return func(o *engine.Options) { o.ExtraConfig = xml }
}

// WithDir sets Options.Dir, which is else a directory of the test's own.
func WithDir(dir string) Option {
	return func(o *engine.Options) { o.Dir = dir }
}

// binary and shared belong to Run; without Run they stay as they are here.
var (
	binary string // of the engine, "" without Run
	shared sharedEngine
)

// Run runs the tests of m with an executable built once, and cleans up.
func Run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "retrylens-enginetest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.dir = filepath.Join(dir, "shared")
	defer shared.close()
	return m.Run()
}

// build builds cmd/engine into dir.
func build(dir string) (string, error) {
	bin := filepath.Join(dir, "engine")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/retrylens/retrylens/cmd/engine")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("enginetest: go build: %w\n%s", err, out)
	}
	return bin, nil
}

// Binary is the path of the engine's executable.
func Binary(tb testing.TB) string {
	tb.Helper()
	if binary != "" {
		return binary
	}
	bin, err := build(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// Options are those that Start would open an engine with.
func Options(tb testing.TB, opts ...Option) engine.Options {
	tb.Helper()
	o := engine.Options{
		Binary:     Binary(tb),
		Logger:     slog.New(slog.DiscardHandler),
		MinBackoff: 10 * time.Millisecond,
		MaxBackoff: 100 * time.Millisecond,
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	return o
}

// Start starts an engine of the test's own.  At the end of the test its client is
// closed, the engine is ended, and its directory removed.
func Start(tb testing.TB, opts ...Option) *engine.Client {
	tb.Helper()
	o := Options(tb, opts...)
	c := Open(tb, o)
	tb.Cleanup(func() { Stop(tb, o.Dir) })
	return c
}

// Open is engine.Open for a test.  It closes the client at the end of the test,
// but leaves the engine.
func Open(tb testing.TB, o engine.Options) *engine.Client {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := engine.Open(ctx, o)
	if err != nil {
		tb.Fatalf("enginetest: %v", err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// Stop ends the engine in dir, if one runs, and waits until it is gone.
func Stop(tb testing.TB, dir string) {
	tb.Helper()
	if err := stop(dir); err != nil {
		tb.Errorf("enginetest: %v", err)
	}
}

func stop(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	signalled := 0
	for {
		l, s, err := datadir.Dir(dir).Look()
		if err != nil || l == datadir.Dead {
			return err
		}
		// Ready: the lock is held, so the PID is that of the engine.
		if l == datadir.Ready && s.PID != signalled {
			signalled = s.PID
			if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		if err := datadir.Pause(ctx); err != nil {
			return fmt.Errorf("engine in %s does not stop: %w", dir, err)
		}
	}
}

// sharedEngine is the one that the tests of a binary have in common.
type sharedEngine struct {
	dir    string
	once   sync.Once
	client *engine.Client
	err    error
}

// Shared is an engine that all tests of the binary share; each should work in a
// database of its own, named retrylens_ and something.  It needs Run.
func Shared(tb testing.TB) *engine.Client {
	tb.Helper()
	if shared.dir == "" {
		tb.Fatal("enginetest: Shared needs func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }")
	}
	o := Options(tb, WithDir(shared.dir))
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		shared.client, shared.err = engine.Open(ctx, o)
	})
	if shared.err != nil {
		tb.Fatalf("enginetest: %v", shared.err)
	}
	return shared.client
}

func (s *sharedEngine) close() {
	if s.client == nil {
		return
	}
	if err := errors.Join(s.client.Close(), stop(s.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "enginetest:", err)
	}
}
