package retry

import (
	"context"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/breaker"
	"github.com/retrylens/retrylens/retry/bulkhead"
)

// Run is one operation on its way. Its driver calls Start, makes the try, calls
// Next with the result, sleeps for Delay if that says Retry, and starts again:
//
//	for {
//		at, d := run.Start(nil)
//		if d.Send {
//			d = run.Next(try(at))
//		}
//		if !d.Retry {
//			return d
//		}
//		sleep(d.Delay)
//	}
//
// No method sleeps or starts a goroutine; only a fleet's retry budget waits for the
// network. A Run is safe for concurrent use.
type Run struct {
	e      *Engine
	op     Op
	policy *Policy

	mu       sync.Mutex
	deadline time.Time
	limit    time.Duration // the deadline, counted from the start of the run as are all times below
	target   *provider     // of the next attempt
	next     int32         // its ordinal
	tries    int32         // attempts so far, refused ones and hedges included
	sent     int32         // of them sent
	here     int32         // failed attempts at the present provider
	over     bool
	won      bool
	slot     slot
	token    bool // the next attempt has paid for itself
	hedged   bool
	waiter   *bulkhead.Waiter

	first    flight  // of an attempt on its way
	second   *flight // of another one beside it, made when there is one
	ended    retrylens.StopReason
	last     *decided // for revisions; nil as long as nothing was to be tried again
	identity uint64   // of the last failure, 0 where that says nothing

	previous    time.Duration // last backoff
	notBefore   time.Duration // what providers asked for
	resent      bool          // an unkeyed operation had its one retry
	immediate   bool          // a 502 had its immediate retry
	askedNew    bool          // the refresh callback was called
	refreshedAt int32         // attempt whose 401 a new credential answers, with askedNew
}

// slot of the bulkhead of the next attempt.
type slot uint8

const (
	noSlot slot = iota
	queued
	held
)

// flight is an attempt on its way.
type flight struct {
	at       Attempt
	provider *provider
	permit   breaker.Permit
	handed   bool   // the caller is reading the answer
	atEnd    func() // frees what the answer's reader needed, nil for nothing
	live     bool
}

// decided is a decision on a retry, which may not come about.
type decided struct {
	at Attempt
	d  Decision
}

// outcome is a decision and what is left to do once the lock is gone.
type outcome struct {
	at      Attempt
	d       Decision
	observe bool
	release *provider // whose slot is free again
	now     time.Time
	atEnd   func()
}

// do ends a step: it gives back the slot and tells the observer.
func (r *Run) do(o *outcome) {
	if o.release != nil {
		o.release.bulkhead.Release(o.now)
	}
	if o.atEnd != nil {
		o.atEnd()
	}
	if o.observe && r.e.o.Observer != nil {
		r.e.o.Observer.Observe(&r.op, o.at, o.d)
	}
}

// Op is the operation, with its defaults filled in. It must not be changed.
func (r *Run) Op() *Op { return &r.op }

// Deadline is the moment from which no attempt starts.
func (r *Run) Deadline() time.Time { return r.deadline }

// Attempts is how many there were so far, refused ones and hedges included.
func (r *Run) Attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.tries)
}

// Start asks for the next attempt: deadline, bulkhead slot, breaker. With Send the
// attempt may go and its result is due. With Queued it waits for a slot: granted is
// called once from elsewhere, must not block, and the driver starts again; without
// granted a full bulkhead refuses. Everything else is the decision on a refused
// attempt (outcome shed), after which a second provider may still be tried (Retry).
func (r *Run) Start(granted func()) (Attempt, Decision) {
	var o outcome
	r.mu.Lock()
	r.start(granted, &o)
	r.mu.Unlock()
	r.do(&o)
	return o.at, o.d
}

// startNow is Start at that moment where nothing need be waited for; otherwise nothing happens and ok
// is false.
func (r *Run) startNow(now time.Time) (at Attempt, d Decision, ok bool) {
	var o outcome
	r.mu.Lock()
	if r.slot != noSlot || r.over || !now.Before(r.deadline) || !r.target.bulkhead.TryAcquire(now) {
		r.mu.Unlock()
		return at, d, false
	}
	r.slot = held
	o.now = now
	r.upcoming(&o)
	r.pass(&o)
	r.mu.Unlock()
	r.do(&o)
	return o.at, o.d, true
}

func (r *Run) start(granted func(), o *outcome) {
	o.now = r.e.now()
	r.upcoming(o)
	switch {
	case r.over:
		o.d.StopReason = r.ended
	case r.slot == queued:
		o.d.Queued = true
	case !o.now.Before(r.deadline):
		r.refuse(o, retrylens.StopDeadline, "the deadline has passed before the attempt could start")
	default:
		r.enter(o, granted)
	}
}

// enter asks for the bulkhead slot, then on.
func (r *Run) enter(o *outcome, granted func()) {
	switch {
	case r.takeSlot(o.now, granted):
		r.pass(o)
	case r.slot == queued:
		o.d.Queued = true
	default:
		r.refuse(o, retrylens.StopDeadline, "bulkhead full: no slot before the deadline")
	}
}

// pass asks the breaker, with a slot in hand.
func (r *Run) pass(o *outcome) {
	permit, ok := r.target.breaker.Allow(o.now, r.op.Cheap)
	if !ok {
		r.refuse(o, retrylens.StopBreakerOpen, "breaker open")
		return
	}
	r.send(o, r.target, permit)
}

// upcoming is the next attempt, should it start at o.now.
func (r *Run) upcoming(o *outcome) {
	o.at = Attempt{
		Number: r.next, Cause: r.cause(), Provider: r.target.name,
		StartedAt: o.now, RunStartedAt: r.op.StartedAt, Deadline: r.deadline,
		Timeout: r.policy.AttemptTimeout, GapTimeout: r.policy.GapTimeout, run: r,
	}
}

func (r *Run) cause() retrylens.Cause {
	switch {
	case r.tries == 0 && r.op.Cause != "":
		return r.op.Cause
	case r.tries == 0 && r.next == 0:
		return retrylens.CauseFirst
	case r.tries == 0:
		return retrylens.CauseRedelivery
	case r.target.name != r.op.Provider:
		return retrylens.CauseFailover
	}
	return retrylens.CausePolicy
}

// takeSlot is true once a slot is held.
func (r *Run) takeSlot(now time.Time, granted func()) bool {
	if r.slot == held {
		return true
	}
	if granted == nil {
		if r.target.bulkhead.TryAcquire(now) {
			r.slot = held
		}
		return r.slot == held
	}
	w, err := r.target.bulkhead.Enqueue(now, func() { r.granted(granted) })
	switch {
	case err != nil:
		return false
	case w != nil:
		r.slot, r.waiter = queued, w
		return false
	}
	r.slot = held
	return true
}

func (r *Run) granted(tell func()) {
	r.mu.Lock()
	r.slot, r.waiter = held, nil
	r.mu.Unlock()
	tell()
}

func (r *Run) send(o *outcome, p *provider, permit breaker.Permit) {
	o.d.Send, o.at.Probe = true, permit.Probe
	f := &r.first
	if f.live {
		if r.second == nil {
			r.second = new(flight)
		}
		f = r.second
	}
	*f = flight{at: o.at, provider: p, permit: permit, live: true}
	if p.hedges != nil && o.at.Cause != retrylens.CauseHedge {
		p.hedges.Call()
	}
	r.slot, r.token = noSlot, false
	r.next++
	r.tries++
	r.sent++
}

// refuse decides on an attempt that is not sent: another provider, or the end.
func (r *Run) refuse(o *outcome, stop retrylens.StopReason, why string) {
	o.observe = true
	o.d = Decision{Outcome: retrylens.OutcomeShed, Class: shedClass(stop), Reason: why}
	if r.slot == held {
		o.release = r.target
	}
	r.slot = noSlot
	r.returnToken()
	r.next++
	r.tries++
	if stop == retrylens.StopBreakerOpen && r.failover(o.now, &o.d) {
		o.d.Retry = true
		o.d.Reason += "; failover to " + r.target.name
	} else {
		r.stop(&o.d, stop)
	}
	r.decided(o)
}

// shedClass: a record with outcome shed needs a class.
func shedClass(stop retrylens.StopReason) retrylens.ErrorClass {
	if stop == retrylens.StopCallerGone {
		return retrylens.ClassCancelled
	}
	return retrylens.ClassUnavailable
}

// failover turns to the second provider where there is one to turn to. As long as
// nothing was sent it is the operation's first send and costs no token.
func (r *Run) failover(now time.Time, d *Decision) bool {
	if !r.elsewhere() || int(r.tries) >= r.policy.Attempts || !r.op.Keyed && r.resent {
		return false
	}
	p := r.e.provider(r.op.SecondProvider)
	if r.sent > 0 && !p.budget.Take(context.Background()) {
		d.Reason += "; no retry-budget token for " + p.name
		return false
	}
	r.token = r.sent > 0
	r.turnTo(p)
	r.resent = true
	if wait := r.notBefore - now.Sub(r.op.StartedAt); wait > 0 {
		d.Delay = wait
	}
	return true
}

func (r *Run) elsewhere() bool {
	return r.op.SecondProvider != "" && r.target.name != r.op.SecondProvider
}

func (r *Run) turnTo(p *provider) {
	r.target, r.here, r.identity = p, 0, 0
}

func (r *Run) stop(d *Decision, reason retrylens.StopReason) {
	d.StopReason, r.ended = reason, reason
	r.over = true
}

func (r *Run) returnToken() {
	if r.token {
		r.target.budget.Return(context.Background())
		r.token = false
	}
}

// Leave ends a run whose driver gives up between attempts: the caller left
// (caller_gone) or a limit of the driver's own was reached (deadline). In the
// queue it decides on the refused attempt; in a sleep it revises the decision on
// the attempt before. It must not be called while an attempt is on its way.
func (r *Run) Leave(reason retrylens.StopReason) Decision {
	var o outcome
	r.mu.Lock()
	r.leave(reason, &o)
	r.mu.Unlock()
	r.do(&o)
	return o.d
}

func (r *Run) leave(reason retrylens.StopReason, o *outcome) {
	o.now = r.e.now()
	if r.over {
		o.d.StopReason = r.ended
		return
	}
	if r.slot == queued && r.target.bulkhead.Leave(r.waiter) {
		r.slot = noSlot
	} else if r.slot == queued {
		r.slot = held // granted meanwhile
	}
	if r.slot == held || r.waiter != nil || r.tries == 0 {
		r.waiter = nil
		r.upcoming(o)
		r.refuse(o, reason, leaveReason(reason)+" before the attempt could start")
		return
	}
	r.returnToken()
	o.observe = true
	if r.last != nil {
		o.at, o.d = r.last.at, r.last.d
	}
	o.d.Retry, o.d.Revision = false, 1
	o.d.Reason = line(o.d.Reason, leaveReason(reason))
	r.stop(&o.d, reason)
}

func leaveReason(reason retrylens.StopReason) string {
	if reason == retrylens.StopCallerGone {
		return "the caller left"
	}
	return "given up"
}
