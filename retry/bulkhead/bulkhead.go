package bulkhead

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrFull is the answer to a caller beyond Options.MaxWaiting.
var ErrFull = errors.New("bulkhead: no slot free and the queue is full")

// Bulkhead guards one provider. It is safe for concurrent use.
type Bulkhead struct {
	o Options

	mu       sync.Mutex
	limit    float64   // of its whole part so many calls are in flight
	updated  time.Time // limit is as of then
	halved   time.Time
	inFlight int
	waiting  list.List // of *Waiter, in the order of arrival
}

// New returns an empty bulkhead with its full limit. The options are not checked:
// see [Options.Validate].
func New(o Options) *Bulkhead { return &Bulkhead{o: o, limit: float64(o.Limit)} }

// Waiter is a place in the queue.
type Waiter struct {
	granted func()
	place   *list.Element // nil once served or gone
}

// TryAcquire takes a slot if one is free and nobody waits for it.
func (b *Bulkhead) TryAcquire(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tryLocked(now)
}

func (b *Bulkhead) tryLocked(now time.Time) bool {
	b.recover(now)
	if b.waiting.Len() > 0 || b.inFlight >= int(b.limit) {
		return false
	}
	b.inFlight++
	return true
}

// Enqueue takes a slot, or a place in the queue, or neither with [ErrFull]. With a
// slot the waiter is nil. From the queue granted is called once, outside of the
// lock, by whoever frees the slot: it is taken by then, and granted must not block.
func (b *Bulkhead) Enqueue(now time.Time, granted func()) (*Waiter, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tryLocked(now) {
		return nil, nil
	}
	if b.o.MaxWaiting > 0 && b.waiting.Len() >= b.o.MaxWaiting {
		return nil, ErrFull
	}
	w := &Waiter{granted: granted}
	w.place = b.waiting.PushBack(w)
	return w, nil
}

// Leave gives up a place in the queue. It is false when the slot was granted
// before: then it is the caller's to release.
func (b *Bulkhead) Leave(w *Waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.place == nil {
		return false
	}
	b.waiting.Remove(w.place)
	w.place = nil
	return true
}

// Acquire waits for a slot. It returns the cause of ctx once that is done, or
// [ErrFull]; a slot is taken only with nil.
func (b *Bulkhead) Acquire(ctx context.Context, now time.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ready := make(chan struct{})
	w, err := b.Enqueue(now, func() { close(ready) })
	if w == nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		if b.Leave(w) {
			return context.Cause(ctx)
		}
		return nil
	}
}

// Release gives a slot back and serves who waits, as far as the limit has recovered
// by now: who waits is served by releases only, of which there is one to come as
// long as somebody waits, since the limit is never below 1.
func (b *Bulkhead) Release(now time.Time) {
	b.mu.Lock()
	b.inFlight--
	b.recover(now)
	var served []*Waiter
	for b.waiting.Len() > 0 && b.inFlight < int(b.limit) {
		w := b.waiting.Remove(b.waiting.Front()).(*Waiter)
		w.place = nil
		b.inFlight++
		served = append(served, w)
	}
	b.mu.Unlock()
	for _, w := range served {
		w.granted()
	}
}

// RateLimited halves the limit, once in Options.LimitWindow: the calls that were
// in flight with the first 429 would halve it to nothing.
func (b *Bulkhead) RateLimited(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.halved.IsZero() && now.Sub(b.halved) < b.o.LimitWindow {
		return
	}
	b.recover(now)
	b.halved, b.updated = now, now
	b.limit = max(float64(b.o.Min), b.limit/2)
}

// recover adds what has come back since the last look; a full limit has nothing to
// come back, and a clock that went back changes nothing.
func (b *Bulkhead) recover(now time.Time) {
	full := float64(b.o.Limit)
	if b.limit >= full {
		return
	}
	if passed := now.Sub(b.updated); passed > 0 {
		b.limit = min(full, b.limit+full*b.o.Recovery*passed.Minutes())
		b.updated = now
	}
}

// Snapshot is what a bulkhead shows of itself.
type Snapshot struct{ Limit, InFlight, Waiting int }

// Snapshot of the state at now.
func (b *Bulkhead) Snapshot(now time.Time) Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recover(now)
	return Snapshot{Limit: int(b.limit), InFlight: b.inFlight, Waiting: b.waiting.Len()}
}
