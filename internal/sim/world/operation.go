package world

import (
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/retry"
)

// operation is one run of an intent through a process's engine: a client's, or a
// gateway's on behalf of a client's attempt.
type operation struct {
	run     *run
	intent  *intent
	process *process
	next    upstream
	hop     retrylens.Hop
	first   int32           // ordinal of the first attempt
	cause   retrylens.Cause // of it; "" = the engine's choice
	whose   *gatewayCall    // that it works for; nil = a client's

	policy  *retry.Policy
	engine  *retry.Run
	at      retry.Attempt
	sentAt  time.Duration
	call    call
	queued  bool // waits for a slot of the bulkhead
	pinned  bool // an event may still come: not to be used again
	granted func()
}

// Events of an operation.
const (
	start = iota // the next attempt
	slot         // a slot is free
	tired        // the deadline came in the queue
)

// newOperation takes a used one where there is one.
func (r *run) newOperation(in *intent, p *process) *operation {
	var op *operation
	if n := len(r.free); n > 0 {
		op, r.free = r.free[n-1], r.free[:n-1]
		*op = operation{granted: op.granted}
	} else {
		op = &operation{}
		op.granted = func() { op.run.events.After(0, op, slot) }
	}
	op.run, op.intent, op.process, op.next, op.hop = r, in, p, in.work.next, retrylens.HopClient
	return op
}

func (op *operation) begin(policy *retry.Policy) {
	op.policy = policy
	op.engine = op.process.engine.Begin(retry.Op{
		ID: op.intent.id, Provider: op.intent.work.Provider, Keyed: op.intent.key != 0, Stream: op.intent.stream,
		Policy: policy, FirstAttempt: op.first, Cause: op.cause,
	})
	op.start()
}

// Fire as in des.Handler.
func (op *operation) Fire(what int) {
	switch {
	case what == start:
		op.start()
	case what == slot && op.queued:
		op.queued = false
		op.start()
	case what == tired && op.queued:
		op.queued = false
		op.refused(op.engine.Leave(retrylens.StopDeadline))
	}
}

// start asks the engine for the next attempt.
func (op *operation) start() {
	at, d := op.engine.Start(op.granted)
	op.at = at
	switch {
	case d.Send:
		op.send()
	case d.Queued:
		op.queued, op.pinned = true, true
		op.run.events.After(op.engine.Deadline().Sub(op.run.Now()), op, tired)
	default:
		op.refused(d)
	}
}

func (op *operation) send() {
	op.sentAt = op.run.events.Now()
	op.call = call{intent: op.intent, cause: op.at.Cause, patience: op.at.Timeout, back: op}
	op.next.send(&op.call)
}

// ended as in receiver: the attempt is over.
func (op *operation) ended(c *call) {
	r := &c.reply
	res := retry.Result{Delivered: r.failure == nil}
	if !res.Delivered {
		res.Verdict, res.Partial = r.failure.Verdict, r.failure.Kind == failure.Broken
	}
	d := op.engine.Next(res)
	if res.Delivered && op.whose == nil {
		op.intent.delivered = true
	}
	a := op.describe()
	op.answered(a, r)
	d.Apply(a)
	told := op.run.emit(op.process, a)
	if told && r.unheard > 0 && op.learns() {
		op.run.reviseAt(r.unheard, op.process, a, op.intent.work.model, &op.intent.request, c.reply.requestID)
	}
	op.follow(d)
}

// learns tells whether the usage of a given-up request will become known.
func (op *operation) learns() bool {
	share := op.intent.work.LearnsUsage
	return share > 0 && op.run.rand.Float64() < share
}

// refused writes the record of an attempt that was not sent.
func (op *operation) refused(d retry.Decision) {
	op.sentAt = op.run.events.Now()
	a := op.describe()
	a.DurationMS = retrylens.Some[int64](0)
	d.Apply(a)
	op.run.emit(op.process, a)
	op.call.reply = reply{failure: op.run.shed(op.intent), ttfb: 0}
	op.follow(d)
}

// follow does what the engine decided.
func (op *operation) follow(d retry.Decision) {
	if d.Retry {
		op.run.events.After(d.Delay, op, start)
		return
	}
	if op.whose != nil {
		op.whose.over(op, d)
	}
	op.engine = nil
	if !op.pinned {
		op.run.free = append(op.run.free, op)
	}
}
