package retryhttp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/clock"
)

// watch ends an attempt that takes too long: the time to response headers or to the
// whole answer first, the gap between content events of a stream afterwards. It is
// clock.Watch without what that allocates, and feeding it costs no timer.
type watch struct {
	timer clock.Timer
	clock clock.Clock
	fed   atomic.Int64 // Unix nanoseconds of the last content

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil = not in use
	gap    time.Duration           // 0 = still the first span
	cause  error                   // why it has fired, nil as long as it has not
}

// watchPool keeps watches, and their timers, for further attempts.
type watchPool struct {
	clock clock.Clock
	pool  sync.Pool
}

// start watches an attempt: ctx is cancelled after limit.
func (p *watchPool) start(ctx context.Context, limit time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w, ok := p.pool.Get().(*watch)
	if !ok {
		w = &watch{clock: p.clock, cancel: cancel}
		w.timer = p.clock.AfterFunc(limit, w.fire)
		return ctx, w
	}
	w.mu.Lock()
	w.cancel, w.gap, w.cause = cancel, 0, nil
	w.mu.Unlock()
	w.timer.Reset(limit)
	return ctx, w
}

// stop frees the context. The watch must not be used afterwards.
func (p *watchPool) stop(w *watch) {
	stopped := w.timer.Stop()
	w.mu.Lock()
	cancel := w.cancel
	w.cancel = nil
	w.mu.Unlock()
	if cancel != nil {
		cancel(context.Canceled)
	}
	if stopped { // else fire may be about to run
		p.pool.Put(w)
	}
}

// stream goes over to gaps.
func (w *watch) stream(gap time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = gap
	w.feed()
	w.timer.Reset(gap)
}

// feed says that content has come.
func (w *watch) feed() { w.fed.Store(w.clock.Now().UnixNano()) }

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cancel == nil:
		return
	case w.gap == 0:
		w.cause = retry.ErrAttemptTimeout
	default:
		left := time.Unix(0, w.fed.Load()).Add(w.gap).Sub(w.clock.Now())
		if left > 0 {
			w.timer.Reset(left)
			return
		}
		w.cause = retry.ErrGapTimeout
	}
	w.cancel(w.cause)
}

// fired is the timeout that has ended the attempt, nil without one.
func (w *watch) fired() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}
