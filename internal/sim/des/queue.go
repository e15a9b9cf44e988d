package des

import "time"

// Handler is told that its time has come. what is the number it was set with.
type Handler interface{ Fire(what int) }

// Queue runs events in the order of their time, at the same time in the order in
// which they were set. The zero value is an empty queue at time 0. It is not safe
// for concurrent use.
type Queue struct {
	now    time.Duration
	set    uint64
	events []event
}

type event struct {
	at   time.Duration
	set  uint64
	to   Handler
	what int
}

// Now is the virtual time, counted from the start.
func (q *Queue) Now() time.Duration { return q.now }

// Len is how many events are set.
func (q *Queue) Len() int { return len(q.events) }

// After sets an event d from now; a negative d is now.
func (q *Queue) After(d time.Duration, to Handler, what int) { q.At(q.now+max(d, 0), to, what) }

// At sets an event at a time; one that has passed is now.
func (q *Queue) At(at time.Duration, to Handler, what int) {
	q.set++
	e := event{max(at, q.now), q.set, to, what}
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&q.events[parent]) {
			break
		}
		q.events[i] = q.events[parent]
		i = parent
	}
	q.events[i] = e
}

// Step runs the next event; false when there is none.
func (q *Queue) Step() bool {
	if len(q.events) == 0 {
		return false
	}
	first, last := q.events[0], len(q.events)-1
	moved := q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	if last > 0 {
		q.sink(moved)
	}
	q.now = first.at
	first.to.Fire(first.what)
	return true
}

// sink puts e into the hole at the top.
func (q *Queue) sink(e event) {
	i, n := 0, len(q.events)
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if right := child + 1; right < n && q.events[right].before(&q.events[child]) {
			child = right
		}
		if !q.events[child].before(&e) {
			break
		}
		q.events[i] = q.events[child]
		i = child
	}
	q.events[i] = e
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.set < o.set }
