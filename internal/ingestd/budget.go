package ingestd

import "sync/atomic"

// budget bounds the memory of all bodies under way together. It never waits: who
// holds memory and waits for more would wait for others who do the same.
type budget struct {
	limit int64
	used  atomic.Int64
}

// lease is what one request has of a budget. It is not safe for concurrent use.
type lease struct {
	b    *budget
	held int64
}

// hold makes the lease at least n bytes; false when the budget has not enough.
func (l *lease) hold(n int64) bool {
	more := n - l.held
	if more <= 0 {
		return true
	}
	if l.b.used.Add(more) > l.b.limit {
		l.b.used.Add(-more)
		return false
	}
	l.held = n
	return true
}

func (l *lease) release() {
	l.b.used.Add(-l.held)
	l.held = 0
}
