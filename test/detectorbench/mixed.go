package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
)

// mixed are the figures of a world of the second family: nothing of it is fixed, neither the
// good day nor what happens. Beside rates it has policies, hedges and other tails.
type mixed struct {
	PerMinute, Season float64 // Season is the share by which day and night differ

	First, Retry float64 // share of first attempts and of retries that fail, of the operations of Share
	Share        float64 // of the operations that First and Retry are about: a zone of several
	Rest         float64 // share of the attempts of all others that fail
	Elsewhere    float64 // Retry of an operation of Share, when retries go to another zone; 0 = they do not

	Attempts  int     // at most
	BackoffMS float64 // before the first retry; doubles, at most 20 s
	HedgeMS   float64 // after which a copy is sent; 0 = never

	Answer             tails
	SlowShare, SlowBy  float64 // of the operations, and how many times longer their answers take
	FailMS             float64 // median of a failure
	Timeouts, TimeoutS float64 // share of the failures that are timeouts, after so long

	Hidden                       float64 // calls of a gateway below for each operation, in the mean
	Delivered, Refused, Replayed float64 // share of the operations sent again though nothing failed, by how it is answered
	Classes                      []retrylens.ErrorClass
	Neighbours                   int // other providers, whose days are good
}

// tails is how long answers take.
type tails struct {
	MedianMS, Spread float64 // log-normal
	Long, LongBy     float64 // share of a second mode, so many times longer
	Heavy, Alpha     float64 // share with a Pareto tail of that exponent, to ten minutes
}

func (t *tails) draw(r *rand.Rand) float64 {
	ms := t.MedianMS * math.Exp(t.Spread*r.NormFloat64())
	switch u := r.Float64(); {
	case u < t.Long:
		ms *= t.LongBy
	case u < t.Long+t.Heavy:
		ms *= math.Pow(1-r.Float64(), -1/t.Alpha)
	}
	return min(ms, 600_000)
}

func uniform(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// spread draws with equal chances of every order of magnitude.
func spread(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

// goodDay draws what is usual in a world.
func goodDay(r *rand.Rand) mixed {
	m := mixed{
		PerMinute: spread(r, 9, 160), Season: uniform(r, 0, 0.6), First: uniform(r, 0, 0.05), Share: 1,
		Attempts: 3 + r.IntN(4), BackoffMS: spread(r, 150, 2500), FailMS: spread(r, 30, 2500),
		Timeouts: uniform(r, 0, 0.3), TimeoutS: spread(r, 5, 40), SlowBy: 1, Neighbours: r.IntN(3), Answer: someTails(r),
	}
	m.Retry = min(0.3, m.First*uniform(r, 1, 4))
	if r.IntN(4) == 0 {
		m.Hidden = uniform(r, 0, 0.08)
	}
	if r.IntN(4) == 0 {
		m.HedgeMS = m.Answer.quantile(uniform(r, 0.85, 0.97))
	}
	all := []retrylens.ErrorClass{
		retrylens.ClassOverloaded, retrylens.ClassRateLimited, retrylens.ClassServerError, retrylens.ClassBadGateway, retrylens.ClassUnavailable, retrylens.ClassTransportUnknown,
	}
	r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	m.Classes = all[:1+r.IntN(3)]
	return m
}

func someTails(r *rand.Rand) tails {
	t := tails{MedianMS: spread(r, 250, 6000), Spread: uniform(r, 0.25, 1)}
	switch r.IntN(3) {
	case 0:
		t.Long, t.LongBy = uniform(r, 0.1, 0.4), uniform(r, 3, 10)
	case 1:
		t.Heavy, t.Alpha = uniform(r, 0.1, 0.5), uniform(r, 1.3, 3)
	}
	return t
}

// quantile of answers, of two thousand.
func (t *tails) quantile(q float64) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 2000)
	for i := range values {
		values[i] = t.draw(r)
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)))]
}

// drawing makes the records of one operation.
type drawing struct {
	*mixed
	r      *rand.Rand
	id     string
	start  time.Time
	emit   func(*retrylens.Attempt)
	next   int32 // attempt
	inZone bool
	slow   float64
}

// operation draws one of the provider p.
func (m *mixed) operation(r *rand.Rand, start time.Time, emit func(*retrylens.Attempt)) {
	d := drawing{mixed: m, r: r, id: fmt.Sprintf("%016x", r.Uint64()), start: start.Truncate(time.Millisecond), emit: emit, slow: 1}
	d.inZone = r.Float64() < m.Share
	if r.Float64() < m.SlowShare {
		d.slow = m.SlowBy
	}
	at := start
	for try := range m.Attempts {
		ended, ok := d.attempt(at, try)
		if ok {
			if try == 0 {
				d.again(ended)
			}
			return
		}
		backoff := min(20_000, m.BackoffMS*math.Pow(2, float64(try))) * uniform(r, 0.5, 1.5)
		at = ended.Add(milliseconds(backoff))
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms) * time.Millisecond }

// fails tells whether a try does.
func (d *drawing) fails(try int) bool {
	p := d.Rest
	switch {
	case d.inZone && try == 0:
		p = d.First
	case d.inZone && d.Elsewhere > 0:
		p = d.Elsewhere
	case d.inZone:
		p = d.Retry
	}
	return d.r.Float64() < p
}

// took draws how a try goes.
func (d *drawing) took(try int) (ms float64, class retrylens.ErrorClass) {
	switch {
	case !d.fails(try):
		return d.Answer.draw(d.r) * d.slow, ""
	case d.r.Float64() < d.Timeouts:
		return d.TimeoutS * 1000, retrylens.ClassTimeout
	}
	return d.FailMS * math.Exp(0.5*d.r.NormFloat64()), d.Classes[d.r.IntN(len(d.Classes))]
}

// attempt is a try with its hedge, if it takes so long.
func (d *drawing) attempt(at time.Time, try int) (ended time.Time, ok bool) {
	ms, class := d.took(try)
	if d.HedgeMS == 0 || ms <= d.HedgeMS {
		return d.record(at, ms, class, d.cause(try), try+1 == d.Attempts), class == ""
	}
	cause, first := d.cause(try), d.next
	d.next++
	copyMS, copyClass := d.took(max(try, 1))
	copyAt := at.Add(milliseconds(d.HedgeMS))
	copyEnd := d.HedgeMS + copyMS
	hedge := func(ms float64, class retrylens.ErrorClass) time.Time {
		return d.record(copyAt, ms, class, retrylens.CauseHedge, false)
	}
	primary := func(ms float64, class retrylens.ErrorClass, final bool) time.Time {
		next := d.next
		d.next = first
		defer func() { d.next = next }()
		return d.record(at, ms, class, cause, final)
	}
	switch {
	case class == "" && (copyClass != "" || ms <= copyEnd):
		if copyClass != "" && copyEnd < ms {
			hedge(copyMS, copyClass)
		} else {
			hedge(ms-d.HedgeMS, retrylens.ClassCancelled)
		}
		return primary(ms, "", false), true
	case copyClass == "" && class != "" && ms < copyEnd:
		primary(ms, class, false)
		return hedge(copyMS, ""), true
	case copyClass == "":
		primary(copyEnd, retrylens.ClassCancelled, false)
		return hedge(copyMS, ""), true
	}
	hedge(copyMS, copyClass)
	end := primary(ms, class, try+1 == d.Attempts)
	return later(end, copyAt.Add(milliseconds(copyMS))), false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (d *drawing) cause(try int) retrylens.Cause {
	if try == 0 {
		return retrylens.CauseFirst
	}
	return retrylens.CausePolicy
}

// record emits the next one and tells when it ends; without a class it is the answer, and
// one that was cancelled lost its hedge.
func (d *drawing) record(at time.Time, ms float64, class retrylens.ErrorClass, cause retrylens.Cause, final bool) time.Time {
	a := retrylens.Attempt{
		Tenant: "t", LogicalID: d.id, OperationStartedAt: d.start, Attempt: d.next, Provider: "p", Model: "m", Service: "s", Cause: cause,
		StartedAt: at.Truncate(time.Millisecond), DurationMS: retrylens.Some(int64(max(ms, 1))), Outcome: retrylens.OutcomeSuccess, ErrorClass: class,
		UpstreamCalls: retrylens.Some(uint16(1 + poisson(d.r, d.Hidden))), Final: retrylens.Some(class == "" || final), //nolint:gosec // a few
	}
	switch class {
	case "":
	case retrylens.ClassCancelled:
		a.Outcome = retrylens.OutcomeHedgeLost
	default:
		a.Outcome = retrylens.OutcomeError
	}
	d.next++
	d.emit(&a)
	return at.Add(milliseconds(ms))
}

// again submits what was answered at once a second time.
func (d *drawing) again(ended time.Time) {
	u := d.r.Float64()
	for i, share := range [...]float64{d.Delivered, d.Refused, d.Replayed} {
		if u -= share; u >= 0 {
			continue
		}
		at := d.start.Add(time.Duration(d.r.Int64N(int64(ended.Sub(d.start)) + 1)))
		a := retrylens.Attempt{
			Tenant: "t", LogicalID: d.id, OperationStartedAt: d.start, Attempt: 100, Provider: "p", Model: "m", Service: "s", Cause: retrylens.CauseRedelivery,
			StartedAt: at, DurationMS: retrylens.Some(int64(5)), Outcome: retrylens.OutcomeSuccess,
		}
		switch i {
		case 0:
			a.DurationMS = retrylens.Some(int64(d.Answer.draw(d.r) * d.slow))
		case 1:
			a.Outcome, a.ErrorClass = retrylens.OutcomeInFlight, retrylens.ClassConflict
		case 2:
			a.Outcome, a.StartedAt, a.ReplayOf = retrylens.OutcomeReplayed, ended.Add(time.Second), retrylens.Some(int32(0))
		}
		d.emit(&a)
		return
	}
}
