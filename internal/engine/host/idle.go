package host

import (
	"context"
	"errors"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// idle sends the lock that keeps clients out once d has had none for linger.
// With linger 0 it never does.
func idle(ctx context.Context, d datadir.Dir, linger time.Duration) <-chan *datadir.Lock {
	c := make(chan *datadir.Lock, 1)
	if linger > 0 {
		go watchIdle(ctx, d, linger, c)
	}
	return c
}

func watchIdle(ctx context.Context, d datadir.Dir, linger time.Duration, c chan<- *datadir.Lock) {
	t := time.NewTicker(min(500*time.Millisecond, max(linger/10, time.Millisecond)))
	defer t.Stop()
	busyAt := time.Now()
	for {
		lock, err := d.LockOutClients()
		switch {
		case errors.Is(err, datadir.ErrHeld):
			busyAt = time.Now()
		case err != nil:
			// Not knowing is no reason to leave.
		case time.Since(latest(busyAt, d.ClientsTouchedAt())) >= linger:
			c <- lock
			return
		default:
			lock.Release()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// latest is the later of two times.  One in the future, as after a clock was set
// back, does not count.
func latest(a, b time.Time) time.Time {
	if b.After(a) && !b.After(time.Now()) {
		return b
	}
	return a
}
