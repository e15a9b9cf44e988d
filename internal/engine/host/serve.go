package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/chdb"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// lockPatience is how long a directory's lock is tried for: clients that only
// look hold it for an instant.
const lockPatience = time.Second

// Serve runs an engine in this process until ctx ends, nobody needs it any more,
// or it ends by itself, which is an error.  The process is of no further use then:
// the library's threads stay.
func Serve(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if err := cleanEnvironment(); err != nil {
		return err
	}
	d, lock, err := acquire(ctx, o.Dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	s, state, err := start(ctx, d, o)
	if err != nil {
		return err
	}
	o.Logger.Info("engine is ready", "dir", d, "pid", state.PID, "http", state.HTTPAddr,
		"tcp", state.TCPAddr, "version", state.Version, "took", time.Since(state.StartedAt).Round(time.Millisecond))
	return run(ctx, d, o, s, state.HTTPAddr)
}

// acquire makes this process the engine of dir and clears what a killed one left.
func acquire(ctx context.Context, dir string) (datadir.Dir, *datadir.Lock, error) {
	d, err := datadir.Open(dir)
	if err != nil {
		return d, nil, fmt.Errorf("%w: %w", engine.ErrLocked, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	lock, err := d.LockEngine(ctx)
	if errors.Is(err, datadir.ErrHeld) {
		return d, nil, heldError(d)
	}
	if err != nil {
		return d, nil, fmt.Errorf("%w: %w\nthe engine must be able to write there", engine.ErrLocked, err)
	}
	return d, lock, d.RemoveState()
}

func heldError(d datadir.Dir) error {
	who := "one that is starting or stopping"
	if l, s, err := d.Look(); err == nil && l == datadir.Ready {
		who = fmt.Sprintf("pid %d", s.PID)
	}
	return fmt.Errorf("%w: %s has an engine already (%s)\nuse that one, or end it with: kill PID", engine.ErrLocked, d, who)
}

// start brings the engine up and writes engine.json.
func start(ctx context.Context, d datadir.Dir, o Options) (*chdb.Session, datadir.State, error) {
	began := time.Now()
	co, err := chdbOptions(d, o)
	if err != nil {
		return nil, datadir.State{}, err
	}
	s, err := chdb.Start(co)
	if err != nil {
		return nil, datadir.State{}, fmt.Errorf("%w: %w", engine.ErrNoLibrary, err)
	}
	if err := awaitUp(ctx, s, o.StartTimeout); err != nil {
		return nil, datadir.State{}, err
	}
	state := datadir.State{
		PID:       os.Getpid(),
		HTTPAddr:  addr(co.HTTPPort),
		TCPAddr:   addr(co.TCPPort),
		Library:   s.Version(),
		StartedAt: began,
	}
	state.Version, err = prepareDatabase(ctx, d, state.HTTPAddr)
	if err != nil {
		return nil, state, err
	}
	return s, state, errors.Join(removeConfig(d), d.WriteState(state))
}

func chdbOptions(d datadir.Dir, o Options) (chdb.Options, error) {
	lib, err := engine.FindLibrary(o.Library)
	if err != nil {
		return chdb.Options{}, err
	}
	file, err := writeConfig(d, o)
	if err != nil {
		return chdb.Options{}, fmt.Errorf("host: cannot write the configuration: %w", err)
	}
	http, tcp, err := pickPorts(o.HTTPPort, o.TCPPort)
	return chdb.Options{
		Library:     lib,
		ConfigFile:  file,
		StoreDir:    d.StoreDir(),
		Host:        Loopback,
		HTTPPort:    http,
		TCPPort:     tcp,
		LogLevel:    o.LogLevel,
		Confine:     func() error { return confineOrWarn(d, o.Logger) },
		CrashOutput: o.CrashOutput,
	}, err
}

// confineOrWarn is confine, but lets an engine start on a kernel without Landlock.
func confineOrWarn(d datadir.Dir, log *slog.Logger) error {
	err := confine(d)
	if errors.Is(err, errors.ErrUnsupported) {
		log.Warn("this kernel has no Landlock: whoever may log in to the engine can read, "+
			"with the SQL function file(), whatever its user can", "err", err)
		return nil
	}
	return err
}

// awaitUp waits until both listeners listen.
func awaitUp(ctx context.Context, s *chdb.Session, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w: not up after %v", engine.ErrTimeout, timeout))
	defer cancel()
	for !s.Up() {
		if len(s.Errors()) > 0 {
			return startError(s.Errors())
		}
		select {
		case err := <-s.Done():
			return startError(append(s.Errors(), fmt.Sprint(err)))
		default:
		}
		if err := datadir.Pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startError sorts what the engine told of a failed start.
func startError(told []string) error {
	text := strings.Join(told, "\n")
	switch {
	case strings.Contains(text, "Code: 76."):
		return fmt.Errorf("%w: another ClickHouse runs on its files\nend it first\n%s", engine.ErrLocked, text)
	case strings.Contains(text, "Code: 210."), strings.Contains(text, "Address already in use"):
		return fmt.Errorf("%w: choose another, or 0 for a free one, with --http and --tcp\n%s", engine.ErrPortBusy, text)
	}
	return fmt.Errorf("host: the engine did not start: %s", text)
}

// run waits for a reason to stop, and stops.
func run(ctx context.Context, d datadir.Dir, o Options, s *chdb.Session, httpAddr string) error {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case err := <-s.Done():
		return errors.Join(d.RemoveState(), endedError(s, err))
	case <-ctx.Done():
		o.Logger.Info("engine stops: told to")
	case lock := <-idle(watch, d, o.Linger):
		// Held until this process is gone: new clients wait for that.
		defer lock.Release()
		o.Logger.Info("engine stops: no client any more", "linger", o.Linger)
	}
	err := d.RemoveState()
	drain(d, httpAddr, o.Logger)
	return errors.Join(err, stop(s, o.StopTimeout, o.Logger))
}

func endedError(s *chdb.Session, err error) error {
	return fmt.Errorf("host: the engine ended by itself: %w %s", err, strings.Join(s.Errors(), "\n"))
}

func stop(s *chdb.Session, timeout time.Duration, log *slog.Logger) error {
	began := time.Now()
	stopped := make(chan struct{})
	defer close(stopped)
	s.Stop(stopped)
	select {
	case err := <-s.Done():
		log.Info("engine stopped", "took", time.Since(began).Round(time.Millisecond))
		return err
	case <-time.After(timeout):
		return fmt.Errorf("%w: still running after %v", engine.ErrStop, timeout)
	}
}
