package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld tells that somebody else holds the lock.
var ErrHeld = errors.New("datadir: lock is held by another process")

// pollEvery is how often a lock or a file that somebody else will change is
// looked at.
const pollEvery = 10 * time.Millisecond

// A Lock is a held flock.  It ends with Release or with the process.
type Lock struct{ f *os.File }

// Release lets the lock go.  A second call does nothing.
func (l *Lock) Release() error {
	if err := l.f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// tryLock takes the lock at once or returns ErrHeld.  how is LOCK_SH or LOCK_EX.
func tryLock(name string, how int) (*Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{f}, nil
}

func flock(f *os.File, how int) error {
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		case err != nil:
			return fmt.Errorf("flock %s: %w", f.Name(), err)
		default:
			return nil
		}
	}
}

// waitLock takes the lock as soon as it is free, or returns the cause of ctx.
func waitLock(ctx context.Context, name string, how int) (*Lock, error) {
	for {
		l, err := tryLock(name, how)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		if err := Pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Pause waits the time between two looks, or returns the cause of ctx.
func Pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// LockEngine makes the caller the engine of d.  Clients that look whether an
// engine lives hold the lock for an instant, so one that is held is tried again
// for as long as ctx lasts, and only then is ErrHeld returned.
func (d Dir) LockEngine(ctx context.Context) (*Lock, error) {
	l, err := waitLock(ctx, d.engineLock(), unix.LOCK_EX)
	if ctx.Err() != nil {
		return nil, ErrHeld
	}
	return l, err
}

// EngineLives tells whether an engine holds d, be it starting, ready or stopping.
func (d Dir) EngineLives() (bool, error) {
	l, err := tryLock(d.engineLock(), unix.LOCK_SH)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, l.Release()
}

// JoinClients makes the caller a client of d until it releases the lock.  It
// waits for an engine that is leaving to be gone.
func (d Dir) JoinClients(ctx context.Context) (*Lock, error) {
	l, err := waitLock(ctx, d.clientsLock(), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	return l, d.TouchClients()
}

// LockOutClients returns ErrHeld while d has clients; else it keeps new ones
// waiting in JoinClients until the lock is released.
func (d Dir) LockOutClients() (*Lock, error) {
	return tryLock(d.clientsLock(), unix.LOCK_EX)
}

// TouchClients notes that a client came or went just now.
func (d Dir) TouchClients() error {
	now := time.Now()
	return os.Chtimes(d.clientsLock(), now, now)
}

// ClientsTouchedAt is when a client last came or went, zero if never.
func (d Dir) ClientsTouchedAt() time.Time {
	fi, err := os.Stat(d.clientsLock())
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
