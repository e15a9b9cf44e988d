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
// clock.Watch without what that allocates, and feeding it costs no timer: watches, with
// their timer and their context, serve one attempt after the other as long as none of
// them was cancelled.
type watch struct {
	life   context.Context // of the attempt
	end    context.CancelCauseFunc
	timer  clock.Timer
	clock  clock.Clock
	leaves func()       // the caller's context is done
	fed    atomic.Int64 // Unix nanoseconds of the last content

	mu     sync.Mutex
	parent context.Context // the caller's; nil = not in use
	stop   func() bool     // of waiting for the caller, nil where it cannot leave
	gap    time.Duration   // 0 = still the first span
	cause  error           // the timeout that has fired, nil as long as none has
	used   bool            // life has ended
}

// watchPool keeps watches for further attempts.
type watchPool struct {
	clock clock.Clock
	pool  sync.Pool
}

// start watches an attempt: its life ends after limit, or with parent.
func (p *watchPool) start(parent context.Context, limit time.Duration) *watch {
	w, ok := p.pool.Get().(*watch)
	if !ok {
		w = &watch{clock: p.clock}
		w.life, w.end = context.WithCancelCause(context.Background())
		w.leaves = w.parentLeaves
	}
	w.mu.Lock()
	w.parent, w.gap, w.cause = parent, 0, nil
	w.mu.Unlock()
	if parent.Done() != nil {
		w.stop = context.AfterFunc(parent, w.leaves)
	}
	if ok {
		w.timer.Reset(limit)
	} else {
		w.timer = p.clock.AfterFunc(limit, w.fire)
	}
	return w
}

// release ends the watch, which must not be used afterwards. clean: the transport is
// through with the attempt, so that its life may become another one's.
func (p *watchPool) release(w *watch, clean bool) {
	stopped := w.timer.Stop()
	if w.stop != nil {
		stopped = w.stop() && stopped
		w.stop = nil
	}
	w.mu.Lock()
	w.parent = nil
	clean = clean && stopped && !w.used // not stopped: a callback may be about to run
	w.used = w.used || !clean
	w.mu.Unlock()
	if clean {
		p.pool.Put(w)
		return
	}
	w.end(context.Canceled)
}

func (w *watch) parentLeaves() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parent != nil {
		w.used = true
		w.end(context.Cause(w.parent))
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
	case w.parent == nil || w.used:
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
	w.used = true
	w.end(w.cause)
}

// fired is the timeout that has ended the attempt, nil without one.
func (w *watch) fired() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}
