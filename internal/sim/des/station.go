package des

import (
	"container/heap"
	"time"
)

// Station is a number of servers behind one line, first come, first served. As
// nobody overtakes, the start of each is known when it arrives, and no event is
// needed: exact, and cheap. Times must not go back. It is not safe for concurrent use.
type Station struct {
	free    freeTimes       // when each server is free again, the earliest first
	starts  []time.Duration // of those in line, in their order
	gone    int             // of starts, those that have begun
	waiting int             // at most so many wait
}

// NewStation of at least one server; at most waiting wait for one, others are refused.
func NewStation(servers, waiting int) *Station {
	return &Station{free: make(freeTimes, max(1, servers)), waiting: waiting}
}

// Offer tells when one that arrives now would start; false if the line is full.
func (s *Station) Offer(now time.Duration) (start time.Duration, ok bool) {
	for s.gone < len(s.starts) && s.starts[s.gone] <= now {
		s.gone++
	}
	if s.gone > 1024 && s.gone*2 > len(s.starts) {
		s.starts = append(s.starts[:0], s.starts[s.gone:]...)
		s.gone = 0
	}
	start = max(now, s.free[0])
	return start, start == now || len(s.starts)-s.gone < s.waiting
}

// Serve holds a server from the start that was offered last.
func (s *Station) Serve(now, start, hold time.Duration) {
	if start > now {
		s.starts = append(s.starts, start)
	}
	s.free[0] = start + hold
	heap.Fix(&s.free, 0)
}

// Waiting is how many were in line at the last offer.
func (s *Station) Waiting() int { return len(s.starts) - s.gone }

// Servers is how many there are.
func (s *Station) Servers() int { return len(s.free) }

type freeTimes []time.Duration

func (f freeTimes) Len() int           { return len(f) }
func (f freeTimes) Less(i, j int) bool { return f[i] < f[j] }
func (f freeTimes) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }

// Push is never called: servers do not come and go.
func (f *freeTimes) Push(any) {}

// Pop is never called.
func (f *freeTimes) Pop() any { return nil }
