package ingestd

import "sync"

// budget bounds what all bodies under way share: their number, their memory. One
// token may hold at most greed times of what it leaves free, so however many bodies
// it sends or lets stall, others find room: one alone leaves a third, the next a third
// of that. It never waits: who holds something and waits for more would wait for
// others who do the same.
type budget struct {
	limit int64

	mu   sync.Mutex
	used int64
	by   map[string]int64 // token
}

const greed = 2

func newBudget(limit int64) *budget { return &budget{limit: limit, by: map[string]int64{}} }

// take takes n for a token; false when there is not enough. The first that a token
// takes may be all.
func (b *budget) take(token string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	free, held := b.limit-b.used-n, b.by[token]
	if free < 0 || held > 0 && held+n > greed*free {
		return false
	}
	b.used += n
	b.by[token] += n
	return true
}

func (b *budget) give(token string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.by[token] -= n; b.by[token] == 0 {
		delete(b.by, token)
	}
}

func (b *budget) inUse() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.used)
}

// lease is what one request has of a budget. It is not safe for concurrent use.
type lease struct {
	b     *budget
	token string
	held  int64
}

// hold makes the lease at least n; false when the budget has not enough.
func (l *lease) hold(n int64) bool {
	more := n - l.held
	if more <= 0 {
		return true
	}
	if !l.b.take(l.token, more) {
		return false
	}
	l.held = n
	return true
}

func (l *lease) release() {
	l.b.give(l.token, l.held)
	l.held = 0
}
