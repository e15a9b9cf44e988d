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
// whole answer first, the gap between content events of a stream afterwards, of which only
// the time counts that the caller waited for more: it may take as long over an event as it likes. It is
// clock.Watch without what that allocates. Watches, with their timer and their context,
// serve one attempt after the other as long as none of them was cancelled; the timer is
// left running in between and looks, when it fires, whether anything is due.
type watch struct {
	life   context.Context // of the attempt
	end    context.CancelCauseFunc
	timer  clock.Timer
	clock  clock.Clock
	base   time.Time     // all times below count from it
	leaves func()        // the caller's context is done
	fed    atomic.Int64  // the last content
	away   atomic.Bool   // nobody waits for the stream
	waited time.Duration // of the present gap, while away

	mu     sync.Mutex
	parent context.Context // the caller's; nil = not in use
	stop   func() bool     // of waiting for the caller, nil where it cannot leave
	due    time.Duration   // of the first span
	gap    time.Duration   // 0 = still the first span
	fires  time.Duration   // when the timer does; 0 = it does not run
	cause  error           // the timeout that has fired, nil as long as none has
	used   bool            // life has ended
}

// watchPool keeps watches for further attempts.
type watchPool struct {
	clock clock.Clock
	pool  sync.Pool
}

// start watches an attempt that starts now: its life ends after limit, or with parent.
func (p *watchPool) start(parent context.Context, now time.Time, limit time.Duration) *watch {
	w, ok := p.pool.Get().(*watch)
	if !ok {
		w = &watch{clock: p.clock, base: now.Add(-1)}
		w.life, w.end = context.WithCancelCause(context.Background())
		w.leaves = w.parentLeaves
	}
	if w.away.Load() {
		w.away.Store(false)
	}
	at := now.Sub(w.base)
	w.mu.Lock()
	w.parent, w.gap, w.cause, w.due = parent, 0, nil, at+limit
	w.arm(at, w.due)
	w.mu.Unlock()
	if parent.Done() != nil {
		w.stop = context.AfterFunc(parent, w.leaves)
	}
	return w
}

func (w *watch) now() time.Duration { return w.clock.Now().Sub(w.base) }

// arm has the timer fire at due or before. It is called with the lock held.
func (w *watch) arm(now, due time.Duration) {
	switch {
	case w.fires > 0 && w.fires <= due:
		return
	case w.timer == nil:
		w.timer = w.clock.AfterFunc(max(due-now, 1), w.fire)
	default:
		w.timer.Reset(max(due-now, 1))
	}
	w.fires = due
}

// release ends the watch, which must not be used afterwards. clean: the transport is
// through with the attempt, so that its life may become another one's.
func (p *watchPool) release(w *watch, clean bool) {
	stopped := true
	if w.stop != nil {
		stopped = w.stop() // else leaves may be about to run
		w.stop = nil
	}
	w.mu.Lock()
	w.parent = nil
	clean = clean && stopped && !w.used
	w.used = w.used || !clean
	if !clean {
		w.timer.Stop()
	}
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
	w.feed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gap = gap
	now := w.now()
	w.arm(now, now+gap)
}

// feed says that content has come.
func (w *watch) feed() { w.fed.Store(int64(w.now())) }

// pause stops the present gap; content = it is over.
func (w *watch) pause(content bool) {
	w.waited = 0
	if !content {
		w.waited = w.now() - time.Duration(w.fed.Load())
	}
	w.away.Store(true)
}

// resume goes on with the gap.
func (w *watch) resume() {
	if w.away.Load() {
		w.fed.Store(int64(w.now() - w.waited))
		w.away.Store(false)
	}
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fires = 0
	if w.parent == nil || w.used {
		return
	}
	due, cause := w.due, retry.ErrAttemptTimeout
	if w.gap > 0 {
		if w.away.Load() {
			now := w.now()
			w.arm(now, now+w.gap)
			return
		}
		due, cause = time.Duration(w.fed.Load())+w.gap, retry.ErrGapTimeout
	}
	if now := w.now(); now < due {
		w.arm(now, due)
		return
	}
	w.cause, w.used = cause, true
	w.end(cause)
}

// fired is the timeout that has ended the attempt, nil without one.
func (w *watch) fired() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}
