package clock

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Fake is a clock that only moves when [Fake.Advance] is called. It is safe for
// concurrent use.
type Fake struct {
	mu      sync.Mutex
	now     time.Time
	timers  []*fakeTimer
	changed chan struct{} // closed and replaced when a timer is added or taken away
}

// NewFake returns a clock that shows start.
func NewFake(start time.Time) *Fake {
	return &Fake{now: start, changed: make(chan struct{})}
}

// Now is the time that the clock was advanced to.
func (c *Fake) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer as in [Clock].
func (c *Fake) NewTimer(d time.Duration) Timer {
	t := &fakeTimer{clock: c, ch: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// AfterFunc as in [Clock]; f runs inside Advance, which waits for it.
func (c *Fake) AfterFunc(d time.Duration, f func()) Timer {
	t := &fakeTimer{clock: c, f: f}
	t.Reset(d)
	return t
}

// Advance moves the clock by d ≥ 0 and fires, in the order of their times, the
// timers that are due, those that were set on the way included.
func (c *Fake) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		t := c.nextLocked(end)
		if t == nil {
			break
		}
		c.removeLocked(t)
		c.now = later(c.now, t.at)
		now := c.now
		c.mu.Unlock()
		t.fire(now)
		c.mu.Lock()
	}
	c.now = later(c.now, end)
	c.mu.Unlock()
}

// Pending is the number of timers that have not fired.
func (c *Fake) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.timers)
}

// Next is the time of the earliest pending timer; false without one.
func (c *Fake) Next() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(c.timers, byTime).at, true
}

// BlockUntil waits until at least n timers are pending, that is until the code
// under test sleeps. It returns the cause of ctx if that is done first.
func (c *Fake) BlockUntil(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		pending, changed := len(c.timers), c.changed
		c.mu.Unlock()
		if pending >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func byTime(a, b *fakeTimer) int { return a.at.Compare(b.at) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (c *Fake) nextLocked(end time.Time) *fakeTimer {
	if len(c.timers) == 0 {
		return nil
	}
	if t := slices.MinFunc(c.timers, byTime); !t.at.After(end) {
		return t
	}
	return nil
}

func (c *Fake) removeLocked(t *fakeTimer) bool {
	i := slices.Index(c.timers, t)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	c.signalLocked()
	return true
}

func (c *Fake) signalLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

type fakeTimer struct {
	clock *Fake
	at    time.Time
	ch    chan time.Time
	f     func()
}

func (t *fakeTimer) C() <-chan time.Time { return t.ch }

func (t *fakeTimer) fire(now time.Time) {
	if t.f != nil {
		t.f()
		return
	}
	select {
	case t.ch <- now:
	default:
	}
}

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.drain()
	return t.clock.removeLocked(t)
}

func (t *fakeTimer) Reset(d time.Duration) bool {
	c := t.clock
	c.mu.Lock()
	active := c.removeLocked(t)
	t.drain()
	t.at = c.now.Add(d)
	due, now := d <= 0, c.now
	if !due {
		c.timers = append(c.timers, t)
		c.signalLocked()
	}
	c.mu.Unlock()
	if due {
		t.fire(now)
	}
	return active
}

func (t *fakeTimer) drain() {
	select {
	case <-t.ch:
	default:
	}
}
