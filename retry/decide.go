package retry

import (
	"context"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/breaker"
)

// Next is Finish for the attempt that was started last and is still on its way.
func (r *Run) Next(res Result) Decision {
	r.mu.Lock()
	return r.conclude(r.newest(), &res)
}

// Finish reports how an attempt ended and decides what comes next. A report on an
// attempt that is not on its way counts for nothing.
func (r *Run) Finish(number int32, res Result) Decision {
	r.mu.Lock()
	return r.conclude(r.flight(number), &res)
}

// conclude ends f, nil for none. It is called with the lock held and gives it back.
func (r *Run) conclude(f *flight, res *Result) Decision {
	var o outcome
	if f == nil {
		o.d.StopReason = r.ended
	} else {
		r.finish(f, res, &o)
	}
	r.mu.Unlock()
	r.do(&o)
	return o.d
}

// flight on its way with that ordinal, nil for none.
func (r *Run) flight(number int32) *flight {
	if f := &r.first; f.live && f.at.Number == number {
		return f
	}
	if f := r.second; f != nil && f.live && f.at.Number == number {
		return f
	}
	return nil
}

// atEnd has f called once the attempt, still on its way, has ended.
func (r *Run) atEnd(number int32, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on := r.flight(number); on != nil {
		on.atEnd = f
	}
}

func (r *Run) newest() *flight {
	a, b := &r.first, r.second
	switch {
	case b != nil && b.live && (!a.live || b.at.Number > a.at.Number):
		return b
	case a.live:
		return a
	}
	return nil
}

func (r *Run) finish(f *flight, res *Result, o *outcome) {
	if res.HandedOver && !f.handed && !r.won {
		f.handed, r.won, r.over = true, true, true
		o.d.HandedOver = true
		return
	}
	now := res.EndedAt
	if now.IsZero() {
		now = r.e.now()
	}
	f.live = false
	r.learn(f, res, now)
	o.now, o.observe, o.release, o.atEnd = now, true, f.provider, f.atEnd
	if r.e.o.Observer != nil {
		o.at = f.at
	}
	d, at := &o.d, now.Sub(r.op.StartedAt)
	d.RetryAfter = res.Verdict.Asked
	switch {
	case r.won && !f.handed:
		lost(d, res)
		return
	case res.Delivered:
		r.deliver(f, d)
	case !f.handed && r.newest() != nil:
		r.failed(f, res, at)
		d.Outcome, d.Class = failure(res), res.class()
		d.Reason = line(res.Verdict.Reason, "the other copy is still on its way")
		return
	default:
		r.failed(f, res, at)
		r.decide(f, res, at, d)
	}
	r.decided(o)
}

// decided keeps the decision on a retry for its revision.
func (r *Run) decided(o *outcome) {
	if !o.d.Retry {
		return
	}
	if r.last == nil {
		r.last = new(decided)
	}
	r.last.d, r.last.at = o.d, o.at
}

// learn tells breaker and bulkhead of the provider.
func (r *Run) learn(f *flight, res *Result, now time.Time) {
	f.provider.breaker.Done(now, f.permit, health(res))
	if !res.Delivered && res.Verdict.Class == retrylens.ClassRateLimited {
		f.provider.bulkhead.RateLimited(now)
	}
	if res.Delivered && f.provider.hedges != nil {
		f.provider.hedges.Observe(now, now.Sub(f.at.StartedAt))
	}
}

// health is what a result says of the provider: client faults (4xx that are ours)
// and quota walls are not its failures (docs/policy.md), nor are rate limits, which
// the bulkhead answers.
func health(res *Result) breaker.Outcome {
	switch {
	case res.Delivered:
		return breaker.Success
	case res.callerGone():
		return breaker.Unknown
	}
	switch res.Verdict.Class {
	case retrylens.ClassOverloaded, retrylens.ClassServerError, retrylens.ClassBadGateway, retrylens.ClassUnavailable,
		retrylens.ClassGatewayTimeout, retrylens.ClassTimeout, retrylens.ClassTransportUnknown,
		retrylens.ClassTransportPresend, retrylens.ClassStreamInterrupted:
		return breaker.Failure
	case retrylens.ClassUnclassified, "":
		return breaker.Unknown
	}
	return breaker.Neutral
}

func (r *Run) deliver(f *flight, d *Decision) {
	r.won = true
	f.provider.budget.Success(context.Background())
	d.Outcome, d.RetryAfter = retrylens.OutcomeSuccess, retrylens.Opt[time.Duration]{}
	r.stop(d, retrylens.StopDelivered)
}

// lost is the decision on the copy that did not win, however it ended.
func lost(d *Decision, res *Result) {
	d.Outcome, d.Class = retrylens.OutcomeHedgeLost, retrylens.ClassCancelled
	if !res.Delivered && !res.callerGone() {
		d.Class = res.class()
	}
	d.Reason = "the other copy answered first"
}

// failure is the outcome of a failed attempt.
func failure(res *Result) retrylens.Outcome {
	switch {
	case res.callerGone():
		return retrylens.OutcomeAbandoned
	case res.partial():
		return retrylens.OutcomeInterrupted
	}
	return retrylens.OutcomeError
}

// failed counts a failed attempt and what its provider asked for.
func (r *Run) failed(f *flight, res *Result, at time.Duration) {
	if f.provider == r.target {
		r.here++
	}
	if asked := res.Verdict.RetryAfter; asked.Set {
		r.notBefore = max(r.notBefore, at+min(asked.Value, r.policy.Cap))
	}
}

// decide asks the questions of docs/policy.md in their order; classify came before,
// sleep, slot and breaker come after.
func (r *Run) decide(f *flight, res *Result, at time.Duration, d *Decision) {
	d.Outcome, d.Class = failure(res), res.class()
	why, stop := r.worth(f, res)
	if stop == "" {
		why, stop = r.fits(f, res, at, d)
	}
	if stop == "" && !r.pay() {
		why, stop = "retry budget empty", retrylens.StopBudgetExhausted
	}
	d.Reason = line(res.Verdict.Reason, why)
	if stop != "" {
		d.Delay = 0
		r.stop(d, stop)
		return
	}
	d.Retry = true
}

// worth: retryable? attempts left? keyed or pre-send? still worth it?
func (r *Run) worth(f *flight, res *Result) (why string, stop retrylens.StopReason) {
	same := r.repeated(res)
	switch {
	case res.callerGone():
		return "the caller left", retrylens.StopCallerGone
	case f.handed || res.partial():
		return "content was delivered", retrylens.StopPartialStream
	case !r.retryable(f, res):
		return "not retryable", retrylens.StopNotRetryable
	case int(r.tries) >= r.policy.Attempts:
		return "no attempt left", retrylens.StopMaxAttempts
	case !r.op.Keyed && (!res.Verdict.PreSend || r.resent):
		return "unkeyed", retrylens.StopUnkeyed
	case same:
		return "the same 500 twice", retrylens.StopRepeatedIdentically
	}
	return "", ""
}

// retryable is the verdict's word, and a 401 once a new credential is there, once.
func (r *Run) retryable(f *flight, res *Result) bool {
	return res.Verdict.Retryable || r.refreshed(f, res)
}

func (r *Run) refreshed(f *flight, res *Result) bool {
	return res.Verdict.Class == retrylens.ClassAuth && res.CredentialChanged && r.askedNew && r.refreshedAt == f.at.Number
}

// WantsRefresh tells whether a refresh of the credential could lead to another try
// after res, and then counts as the one refresh that an operation has: the driver
// asks its callback and sets Result.CredentialChanged before Next.
func (r *Run) WantsRefresh(number int32, res Result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.askedNew || r.won || res.Delivered || res.HandedOver || res.Verdict.Class != retrylens.ClassAuth ||
		int(r.tries) >= r.policy.Attempts || !r.op.Keyed || !r.e.now().Before(r.deadline) {
		return false
	}
	r.askedNew, r.refreshedAt = true, number
	return true
}

// repeated tells whether a 500 is the one of the attempt before.
func (r *Run) repeated(res *Result) bool {
	id := uint64(0)
	if res.Verdict.Class == retrylens.ClassServerError {
		id = res.Verdict.Identity()
	}
	same := id != 0 && id == r.identity
	r.identity = id
	return same
}

// fits computes the delay and tells whether an attempt after it would start before
// the deadline.
func (r *Run) fits(f *flight, res *Result, at time.Duration, d *Decision) (why string, stop retrylens.StopReason) {
	asked := res.Verdict.RetryAfter
	if asked.Set && asked.Value > r.policy.Cap && r.policy.RetryAfter == Obey {
		return "asks for " + asked.Value.String() + ", more than the cap", retrylens.StopDeadline
	}
	d.Delay, why = r.delay(f, res, at)
	if at+d.Delay >= r.limit {
		return "the delay of " + d.Delay.Round(time.Millisecond).String() + " does not fit the deadline", retrylens.StopDeadline
	}
	return why, ""
}

// delay before the next attempt: what any provider of this operation asked for and
// a spread on top, else by the class.
func (r *Run) delay(f *flight, res *Result, at time.Duration) (time.Duration, string) {
	b, class := r.policy.Backoff(), res.Verdict.Class
	position := int(max(r.next-1, 0) % 100)
	wait := r.notBefore - at
	switch {
	case res.Verdict.RetryAfter.Set || wait > 0:
		return max(wait, 0) + b.Spread(position, wait, r.e.intn), "retry after the wait that was asked for"
	case class == retrylens.ClassBadGateway && !r.immediate:
		r.immediate = true
		return 0, "first 502: retry at once"
	case r.refreshed(f, res):
		return 0, "retry with another credential"
	case class == retrylens.ClassOverloaded:
		b = Backoff{Base: r.policy.OverloadedBase, Cap: r.policy.Cap, Jitter: overloadedJitter(b.Jitter)}
		return b.Delay(position, 0, r.e.intn), "overloaded: retry after a long backoff"
	}
	r.previous = b.Delay(position, r.previous, r.e.intn)
	return r.previous, "retry after backoff"
}

// overloadedJitter never draws a short wait.
func overloadedJitter(j Jitter) Jitter {
	if j == JitterNone {
		return j
	}
	return JitterEqual
}

// pay takes the retry-budget token of the provider that the retry goes to.
func (r *Run) pay() bool {
	to := r.target
	if n := r.policy.FailoverAfter; n > 0 && int(r.here) >= n && r.elsewhere() {
		to = r.e.provider(r.op.SecondProvider)
	}
	if !to.budget.Take(context.Background()) {
		return false
	}
	if to != r.target {
		r.turnTo(to)
	}
	r.token = true
	r.resent = true
	return true
}
