package clock

import (
	"context"
	"time"
)

// Watchdog cancels a context unless it is fed in time: the time limit to response
// headers first, the gap limit of a stream afterwards. Feeding comes from one
// goroutine at a time.
type Watchdog struct {
	timer  Timer
	cancel context.CancelCauseFunc
}

// Watch returns a context that is cancelled with cause once limit has passed
// without [Watchdog.Feed], [Watchdog.Disarm] or [Watchdog.Close]. A limit ≤ 0
// means none.
func Watch(ctx context.Context, c Clock, limit time.Duration, cause error) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{cancel: cancel}
	w.timer = c.AfterFunc(max(limit, 1), func() { cancel(cause) })
	if limit <= 0 {
		w.timer.Stop()
	}
	return ctx, w
}

// Feed starts a new span of limit; ≤ 0 disarms.
func (w *Watchdog) Feed(limit time.Duration) {
	if limit <= 0 {
		w.timer.Stop()
		return
	}
	w.timer.Reset(limit)
}

// Disarm stops the span without cancelling the context: the answer may be read
// for as long as its reader likes.
func (w *Watchdog) Disarm() { w.timer.Stop() }

// Close disarms and frees the context by cancelling it.
func (w *Watchdog) Close() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}
