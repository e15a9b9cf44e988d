package arith

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens/retry"
)

// MaxStormRequests is the most that a storm may send before it is given up.
const MaxStormRequests = 100_000_000

// StormOptions describe clients that all fail at the same instant, 0, and retry
// until they are served, however often.
//
// The provider serves the first Capacity requests of each Step of time, the first
// step beginning at 0; those beyond fail and back off further. A served request takes
// no time.
type StormOptions struct {
	Clients  int
	Capacity int           // requests served per Step
	Step     time.Duration // the window that Capacity is for
	Base     time.Duration // of the backoff
	Cap      time.Duration // of the backoff
	Seed     uint64
}

// DefaultStorm is the field's example.
func DefaultStorm() StormOptions {
	return StormOptions{Clients: 60, Capacity: 10, Step: 10 * time.Millisecond, Base: time.Second, Cap: time.Minute, Seed: 1}
}

// Validate returns a *NumberError that names the first wrong one.
func (o StormOptions) Validate() error {
	return first(
		within("clients", o.Clients, 1, 1_000_000),
		within("capacity", o.Capacity, 1, 1_000_000),
		within("step", o.Step, time.Microsecond, time.Minute),
		within("base", o.Base, time.Millisecond, time.Hour),
		within("cap", o.Cap, o.Base, time.Hour),
	)
}

// StormResult is what came of a storm.
type StormResult struct {
	Jitter        retry.Jitter
	Completion    time.Duration // when the last client was served
	Requests      int           // the first, failed ones included
	Retries       int
	Peak          int // retries within one step at most
	Amplification float64
}

// Storm plays a storm with one jitter. Too many requests for these numbers are a
// *NumberError; else errors are those of ctx and of Validate.
func Storm(ctx context.Context, o StormOptions, jitter retry.Jitter) (StormResult, error) {
	if err := o.Validate(); err != nil {
		return StormResult{}, err
	}
	if jitter == retry.JitterNone && o.lockstep() > MaxStormRequests {
		return StormResult{}, o.tooMany()
	}
	s := newStorm(o, jitter)
	for len(s.queue) > 0 {
		if s.retries&0xffff == 0 && ctx.Err() != nil {
			return StormResult{}, context.Cause(ctx)
		}
		if s.retries >= MaxStormRequests {
			return StormResult{}, o.tooMany()
		}
		s.arrive()
	}
	requests := o.Clients + s.retries
	return StormResult{
		Jitter: jitter, Completion: s.last, Requests: requests, Retries: s.retries, Peak: s.peak,
		Amplification: float64(requests) / float64(o.Clients),
	}, nil
}

// lockstep is how many retries there are at least when all clients that wait come
// at once, a round for each Capacity of them.
func (o StormOptions) lockstep() int {
	rounds := (o.Clients + o.Capacity - 1) / o.Capacity
	return o.Clients*rounds - o.Capacity*(rounds*(rounds-1)/2)
}

func (o StormOptions) tooMany() error {
	must := fmt.Sprintf("fewer, or capacity more: %d clients and %d a step send over %d requests", o.Clients, o.Capacity, MaxStormRequests)
	return &NumberError{"clients", must}
}

type storm struct {
	o       StormOptions
	backoff retry.Backoff
	intn    func(int64) int64
	queue   stormQueue

	step, inStep  int64 // the current window and its requests
	last          time.Duration
	retries, peak int
}

func newStorm(o StormOptions, jitter retry.Jitter) *storm {
	s := &storm{
		o:       o,
		backoff: retry.Backoff{Base: o.Base, Cap: o.Cap, Jitter: jitter},
		intn:    rand.New(rand.NewPCG(o.Seed, 0)).Int64N,
		queue:   make(stormQueue, o.Clients),
	}
	for i := range s.queue {
		c := &s.queue[i]
		c.number = i
		s.back(c)
	}
	heap.Init(&s.queue)
	return s
}

// back has a client wait for its next retry.
func (s *storm) back(c *stormClient) {
	c.delay = s.backoff.Delay(c.failed, c.delay, s.intn)
	c.at += c.delay
	c.failed++
}

// arrive is the next request in time: served, or back it goes.
func (s *storm) arrive() {
	c := &s.queue[0]
	if step := int64(c.at / s.o.Step); step != s.step {
		s.step, s.inStep = step, 0
	}
	s.inStep++
	s.retries++
	s.peak = max(s.peak, int(s.inStep))
	if s.inStep <= int64(s.o.Capacity) {
		s.last = c.at
		heap.Pop(&s.queue)
		return
	}
	s.back(c)
	heap.Fix(&s.queue, 0)
}

type stormClient struct {
	at, delay      time.Duration // of the next request; the wait before it
	number, failed int
}

// stormQueue is a heap by time, at the same time by number.
type stormQueue []stormClient

func (q stormQueue) Len() int      { return len(q) }
func (q stormQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q stormQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}

// Push is never called: no client comes later.
func (q *stormQueue) Push(x any) { *q = append(*q, x.(stormClient)) }

// Pop takes the last one.
func (q *stormQueue) Pop() any {
	n := len(*q) - 1
	c := (*q)[n]
	*q = (*q)[:n]
	return c
}
