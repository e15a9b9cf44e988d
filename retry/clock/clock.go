package clock

import (
	"context"
	"time"
)

// Clock tells the time and wakes up. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the present moment, with a monotonic reading where there is one.
	Now() time.Time
	// NewTimer sends the time on its channel once d has passed; d ≤ 0 fires at once.
	NewTimer(d time.Duration) Timer
	// AfterFunc calls f once d has passed, from a goroutine of the clock's choice.
	// The timer's C is nil.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is one pending wake-up; semantics as in package time since Go 1.23: no
// stale value is received after Stop or Reset.
type Timer interface {
	C() <-chan time.Time
	Stop() bool                 // false if it had fired or been stopped
	Reset(d time.Duration) bool // as Stop, then start again
}

// Sleep waits for d. It returns nil once d has passed and the context's cause as
// soon as ctx is done; an already done ctx wins over d ≤ 0.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Real is the clock of the operating system.
func Real() Clock { return realClock{} }

type realClock struct{}

func (realClock) Now() time.Time                 { return time.Now() }
func (realClock) NewTimer(d time.Duration) Timer { return realTimer{time.NewTimer(d)} }
func (realClock) AfterFunc(d time.Duration, f func()) Timer {
	return realTimer{time.AfterFunc(d, f)}
}

type realTimer struct{ t *time.Timer }

func (t realTimer) C() <-chan time.Time        { return t.t.C }
func (t realTimer) Stop() bool                 { return t.t.Stop() }
func (t realTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }
