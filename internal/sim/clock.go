package sim

import (
	"container/heap"
	"context"
	"time"
)

// clock is virtual time: events run in the order of their time, at the same
// time in the order in which they were set.
type clock struct {
	now    time.Duration // since the start of the simulation
	set    uint64
	events eventHeap
}

type event struct {
	at  time.Duration
	set uint64
	run func() error
}

// after sets an event d from now; a negative d is now.
func (c *clock) after(d time.Duration, run func() error) {
	c.set++
	heap.Push(&c.events, event{c.now + max(d, 0), c.set, run})
}

// run runs events until there are none, one fails or ctx ends.
func (c *clock) run(ctx context.Context) error {
	for n := 0; len(c.events) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		if err := e.run(); err != nil {
			return err
		}
	}
	return nil
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].set < h[j].set
}

func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *eventHeap) Push(e any) { *h = append(*h, e.(event)) }

func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
