package arith

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
)

// world is a discrete-event simulation of one variant; single goroutine.
type world struct {
	o        OutageOptions
	engine   *retry.Engine
	arrivals *rand.Rand // of its own: all variants see the same operations
	faults   *rand.Rand
	fails    classify.Verdict
	slow     classify.Verdict

	now    time.Duration
	seq    int
	events eventQueue

	inFlight   int
	second     time.Duration
	inSecond   int
	latencies  []time.Duration
	res        OutageResult
	operations int
}

// epoch is time 0 of the engine.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Now is the engine's clock.
func (w *world) Now() time.Time { return epoch.Add(w.now) }

func newWorld(o OutageOptions, v Variant) (*world, error) {
	w := &world{
		o: o, slow: timedOut(),
		arrivals: rand.New(rand.NewPCG(o.Seed, 1)), faults: rand.New(rand.NewPCG(o.Seed, 2)),
		res: OutageResult{Variant: v, StopReasons: map[retrylens.StopReason]int{}},
	}
	asked := time.Duration(0)
	if v.Asked {
		asked = o.RetryAfter
	}
	var err error
	if w.fails, err = o.verdict(asked); err != nil {
		return nil, err
	}
	policy := o.Policy
	policy.Jitter, policy.RetryAfter = v.Jitter, v.Mode
	w.engine, err = retry.New(retry.Options{Policy: &policy, Limits: &o.Limits, Clock: w, Rand: rand.NewPCG(o.Seed, 3)})
	return w, err
}

func (w *world) run(ctx context.Context) error {
	w.next()
	for n := 0; len(w.events) > 0; n++ {
		if n&0xffff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	return nil
}

// next has the next operation start, if it still falls into the duration.
func (w *world) next() {
	gap := time.Duration(w.arrivals.ExpFloat64() / w.o.Rate * float64(time.Second))
	if w.now+gap >= w.o.Duration {
		return
	}
	w.after(gap, func() {
		w.operations++
		op := &operation{w: w, startedAt: w.now, run: w.engine.Begin(retry.Op{Provider: provider, Keyed: !w.o.Unkeyed})}
		op.start()
		w.next()
	})
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, event{w.now + max(d, 0), w.seq, do})
}

// call counts a call and tells how long it takes and how it ends.
func (w *world) call(timeout time.Duration) (took time.Duration, res retry.Result) {
	w.count()
	took, res = w.o.ServiceTime, retry.Result{Delivered: true}
	if w.down() {
		took, res = w.o.FailTime, retry.Result{Verdict: w.fails}
		if w.o.Failure == retrylens.ClassTimeout {
			took = timeout
		}
	}
	if took >= timeout {
		return timeout, retry.Result{Verdict: w.slow}
	}
	return took, res
}

func (w *world) count() {
	w.res.Calls++
	if second := w.now / time.Second; second != w.second {
		w.second, w.inSecond = second, 0
	}
	w.inSecond++
	w.res.PeakCalls = max(w.res.PeakCalls, w.inSecond)
}

// down tells whether a call that starts now fails.
func (w *world) down() bool {
	if w.o.Capacity > 0 && w.inFlight >= w.o.Capacity {
		return true
	}
	in := w.now >= w.o.OutageAt && w.now < w.o.OutageAt+w.o.Outage
	return in && w.faults.Float64() < w.o.FailureRate
}

// bill takes what a finished call cost: an answer, or one that nobody waited for.
func (w *world) bill(res retry.Result) {
	orphaned := res.Verdict.Class == retrylens.ClassTimeout
	if orphaned {
		w.res.OrphanedTokens += w.o.Tokens
	}
	if res.Delivered || orphaned {
		w.res.Tokens += w.o.Tokens
	}
}

func (w *world) result() OutageResult {
	r := w.res
	slices.Sort(w.latencies)
	r.Operations, r.Delivered = w.operations, len(w.latencies)
	r.Failed = r.Operations - r.Delivered
	r.Amplification = float64(r.Calls) / float64(r.Operations)
	r.P50, r.P99 = quantile(w.latencies, 50), quantile(w.latencies, 99)
	r.USD = w.o.Price.MulDiv(r.Tokens, million)
	return r
}

// quantile by nearest rank of sorted values, 0 of none.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// operation drives a run of the engine.
type operation struct {
	w         *world
	run       *retry.Run
	startedAt time.Duration
	queued    bool
}

func (op *operation) start() {
	at, d := op.run.Start(op.granted)
	switch {
	case d.Queued:
		op.queued = true
		op.w.after(op.run.Deadline().Sub(op.w.Now()), op.giveUp)
	case d.Send:
		op.send(at)
	default:
		op.follow(d)
	}
}

// granted is called from within another operation's decision.
func (op *operation) granted() {
	op.queued = false
	op.w.after(0, op.start)
}

// giveUp leaves the queue at the deadline.
func (op *operation) giveUp() {
	if op.queued {
		op.queued = false
		op.follow(op.run.Leave(retrylens.StopDeadline))
	}
}

func (op *operation) send(at retry.Attempt) {
	took, res := op.w.call(at.Timeout)
	op.w.inFlight++
	op.w.after(took, func() {
		op.w.inFlight--
		op.w.bill(res)
		op.follow(op.run.Next(res))
	})
}

func (op *operation) follow(d retry.Decision) {
	if d.Retry {
		op.w.after(d.Delay, op.start)
		return
	}
	op.w.res.LastAt = op.w.now
	if d.StopReason == retrylens.StopDelivered {
		op.w.latencies = append(op.w.latencies, op.w.now-op.startedAt)
		return
	}
	op.w.res.StopReasons[d.StopReason]++
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

// eventQueue is a heap by time, at the same time in the order of making.
type eventQueue []event

func (q eventQueue) Len() int      { return len(q) }
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}

// Push adds an event.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(event)) }

// Pop takes the last one.
func (q *eventQueue) Pop() any {
	n := len(*q) - 1
	e := (*q)[n]
	(*q)[n] = event{}
	*q = (*q)[:n]
	return e
}
