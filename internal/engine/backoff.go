package engine

import "time"

// backoff spaces starts of an engine that keeps crashing: the first is free, and
// each further one waits twice as long, from min up to max, counted from the start
// before it.  An engine that lived longer than calm starts the count anew.
type backoff struct {
	min, max time.Duration
	starts   int
	lastAt   time.Time
}

// calm is how long an engine must have lived not to count as crashing.
const calm = time.Minute

// next tells how long to wait from now until the next start.
func (b *backoff) next(now time.Time) time.Duration {
	if now.Sub(b.lastAt) > calm {
		b.starts = 0
	}
	if b.starts == 0 {
		return 0
	}
	wait := b.max
	if shift := b.starts - 1; shift < 20 {
		wait = min(b.max, b.min<<shift)
	}
	return max(0, b.lastAt.Add(wait).Sub(now))
}

// started notes a start.
func (b *backoff) started(now time.Time) {
	b.starts++
	b.lastAt = now
}
