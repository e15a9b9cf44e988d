package retry

import (
	"context"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/breaker"
)

// HedgeAfter is how long to wait from now before [Run.Hedge] is worth asking. It is
// false where this operation gets no second copy: hedging off, not keyed, a stream,
// not marked safe, no attempt left, or too few latencies known.
func (r *Run) HedgeAfter() (time.Duration, bool) {
	if !r.op.HedgeSafe || !r.op.Keyed {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.newest()
	if f == nil || !r.hedgeable(f) {
		return 0, false
	}
	now := r.e.now()
	after, ok := f.provider.hedges.After(now)
	at := f.at.StartedAt.Add(after)
	if !ok || !at.Before(r.deadline) {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}

func (r *Run) hedgeable(f *flight) bool {
	return f.provider.hedges != nil && r.op.Keyed && r.op.HedgeSafe && !r.op.Stream &&
		!r.hedged && !r.won && int(r.tries) < r.policy.Attempts
}

// Hedge asks for a second copy of the attempt that is on its way: share of the
// calls, retry-budget token, bulkhead slot (it never queues), breaker. With Send the
// copy may go and its result is due as any other; otherwise nothing has happened and
// Reason tells why. An operation has at most one hedge.
func (r *Run) Hedge() (Attempt, Decision) {
	var o outcome
	r.mu.Lock()
	r.hedge(&o)
	r.mu.Unlock()
	r.do(&o)
	return o.at, o.d
}

func (r *Run) hedge(o *outcome) {
	o.now = r.e.now()
	f := r.newest()
	if f == nil || !r.hedgeable(f) || !o.now.Before(r.deadline) {
		o.d.Reason = "no hedge for this operation"
		return
	}
	home, to := f.provider, f.provider
	if home.limits.Hedging.SecondProvider && r.elsewhere() {
		to = r.e.provider(r.op.SecondProvider)
	}
	permit, ok := admitHedge(home, to, o)
	if !ok {
		return
	}
	r.hedged = true
	r.upcoming(o)
	o.at.Cause, o.at.Provider = retrylens.CauseHedge, to.name
	r.send(o, to, permit)
}

// admitHedge takes all that a hedge costs, or nothing: then o tells why.
func admitHedge(home, to *provider, o *outcome) (permit breaker.Permit, ok bool) {
	ctx := context.Background()
	if !home.hedges.Take() {
		o.d.Reason = "the share of hedges is used up"
		return permit, false
	}
	if !to.budget.Take(ctx) {
		home.hedges.Return()
		o.d.Reason = "retry budget empty"
		return permit, false
	}
	if o.d.Reason = "bulkhead full"; to.bulkhead.TryAcquire(o.now) {
		if permit, ok = to.breaker.Allow(o.now, false); ok && !permit.Probe {
			o.d.Reason = ""
			return permit, true
		}
		if ok { // a copy is no probe: who waits for it has another
			to.breaker.Done(o.now, permit, breaker.Unknown)
		}
		o.d.Reason, o.release = "breaker open", to
	}
	to.budget.Return(ctx)
	home.hedges.Return()
	return permit, false
}
