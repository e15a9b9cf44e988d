package retry_test

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the property tests; 0 = by the clock")
	opsFlag  = flag.Int("ops", 20000, "operations of each property test")
)

// seeded prints the seed that repeats a failure.
func seeded(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (repeat with -seed %d)", seed, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var boom = status(500, `{"error":{"message":"boom","type":"server_error"}}`)

// fault draws one result.
func fault(rnd *rand.Rand) retry.Result {
	if rnd.IntN(5) == 0 {
		return ok
	}
	if rnd.IntN(8) == 0 {
		return boom
	}
	res := class(retrylens.ErrorClasses[rnd.IntN(len(retrylens.ErrorClasses))])
	v := &res.Verdict
	if rnd.IntN(8) == 0 {
		v.Retryable = !v.Retryable // x-should-retry
	}
	if v.Retryable && rnd.IntN(3) == 0 {
		v.RetryAfter = retrylens.Some(time.Duration(rnd.Int64N(int64(40 * time.Second))))
		v.Asked = v.RetryAfter
	}
	res.Partial = rnd.IntN(10) == 0
	res.CallerGone = rnd.IntN(20) == 0
	res.CredentialChanged = rnd.IntN(2) == 0
	return res
}

// randomOp draws an operation and a valid policy.
func randomOp(rnd *rand.Rand, now time.Time) retry.Op {
	p := retry.Interactive()
	if rnd.IntN(2) == 0 {
		p = retry.Batch()
	}
	p.Attempts = 1 + rnd.IntN(6)
	p.Jitter = retry.Jitters[rnd.IntN(len(retry.Jitters))]
	p.RetryAfter = retry.RetryAfterMode(rnd.IntN(2))
	p.FailoverAfter = rnd.IntN(3)
	op := retry.Op{Provider: "openai", Keyed: rnd.IntN(2) == 0, Stream: rnd.IntN(3) == 0, HedgeSafe: rnd.IntN(2) == 0, Policy: &p}
	if rnd.IntN(2) == 0 {
		op.SecondProvider = "azure_openai"
	}
	if rnd.IntN(4) == 0 {
		op.Deadline = now.Add(time.Duration(rnd.Int64N(int64(20 * time.Second))))
	}
	return op
}

// check holds one operation to what must never happen.
type check struct {
	t         *testing.T
	op        retry.Op
	sends     int
	mayBeSent bool      // bytes of an earlier try may have left
	notBefore time.Time // what was asked for
}

func (c *check) send(at retry.Attempt, now time.Time) {
	c.sends++
	if c.sends > c.op.Policy.Attempts {
		c.t.Fatalf("%d sends, %d attempts allowed: %+v", c.sends, c.op.Policy.Attempts, c.op)
	}
	if !now.Before(at.Deadline) || !c.op.Deadline.IsZero() && !now.Before(c.op.Deadline) ||
		!now.Before(at.RunStartedAt.Add(c.op.Policy.WallClockBudget)) {
		c.t.Fatalf("attempt %d starts past the deadline: %+v", at.Number, c.op)
	}
	if c.mayBeSent && !c.op.Keyed {
		c.t.Fatalf("unkeyed resend after bytes may have left: %+v", c.op)
	}
	if !c.op.Keyed && c.sends > 2 {
		c.t.Fatalf("an unkeyed call was sent %d times", c.sends)
	}
	if at.Cause != retrylens.CauseHedge && now.Before(c.notBefore) {
		c.t.Fatalf("attempt %d starts %v before what was asked for", at.Number, c.notBefore.Sub(now))
	}
}

func (c *check) end(res retry.Result, now time.Time) {
	c.mayBeSent = c.mayBeSent || !res.Verdict.PreSend
	if asked := res.Verdict.RetryAfter; asked.Set && !res.Delivered {
		if at := now.Add(min(asked.Value, 20*time.Second)); at.After(c.notBefore) {
			c.notBefore = at
		}
	}
}

func TestPropertyRandomFaults(t *testing.T) {
	rnd := seeded(t)
	w := newWorld(t, func(o *retry.Options) {
		o.Rand = rand.NewPCG(rnd.Uint64(), 0)
		o.Limits = limits(func(l *retry.Limits) {
			l.Hedging.Enabled, l.Hedging.MinSamples, l.Hedging.Share, l.Hedging.SecondProvider = true, 1, 1, true
			l.RetryBudget.PerSuccess = 1
			l.Breaker.Consecutive = 6
		})
	})
	stops, hedges := map[retrylens.StopReason]int{}, 0
	for range *opsFlag {
		w.all = w.all[:0]
		c := &check{t: t, op: randomOp(rnd, w.t)}
		stop, n := w.chaos(c, rnd)
		stops[stop]++
		hedges += n
		if !stop.Valid() {
			t.Fatalf("ended without a stop reason: %+v", c.op)
		}
		checkStream(t, w.all, stop)
		checkRecords(t, w.all, c.op)
	}
	for _, name := range []string{"openai", "azure_openai"} {
		if s := w.e.State(name).Bulkhead; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%s: slots leak: %+v", name, s)
		}
	}
	t.Logf("%d hedges, stops %v", hedges, stops)
	for _, s := range retrylens.StopReasons {
		if stops[s] == 0 {
			t.Errorf("%s never happened: the test does not reach it", s)
		}
	}
}

// chaos drives one operation with random faults, hedges, oversleeping and leaving.
func (w *world) chaos(c *check, rnd *rand.Rand) (stop retrylens.StopReason, hedges int) {
	r := w.e.Begin(c.op)
	w.advance(time.Duration(rnd.Int64N(int64(time.Second))))
	for {
		at, d := r.Start(nil)
		if d.Send {
			c.send(at, w.t)
			d, hedges = w.flight(c, r, at, rnd, hedges)
		}
		if !d.Retry {
			return d.StopReason, hedges
		}
		if rnd.IntN(30) == 0 {
			w.advance(d.Delay / 2)
			return r.Leave(retrylens.StopCallerGone).StopReason, hedges
		}
		w.advance(d.Delay + time.Duration(rnd.Int64N(int64(20*time.Millisecond))))
	}
}

// flight ends one attempt and its hedge, in either order.
func (w *world) flight(c *check, r *retry.Run, at retry.Attempt, rnd *rand.Rand, hedges int) (retry.Decision, int) {
	flying := []retry.Attempt{at}
	if after, yes := r.HedgeAfter(); yes {
		w.advance(after)
		if h, d := r.Hedge(); d.Send {
			c.send(h, w.t)
			hedges++
			flying = append(flying, h)
		}
	}
	if len(flying) == 2 && rnd.IntN(2) == 0 {
		flying[0], flying[1] = flying[1], flying[0]
	}
	var last retry.Decision
	for _, f := range flying {
		w.advance(time.Duration(rnd.Int64N(int64(5 * time.Second))))
		res := fault(rnd)
		r.WantsRefresh(f.Number, res)
		c.end(res, w.t)
		if d := r.Finish(f.Number, res); d.Outcome != retrylens.OutcomeHedgeLost {
			last = d
		}
	}
	return last, hedges
}

// checkStream: ordinals rise, exactly one decision (or its revision) ends the run.
func checkStream(t *testing.T, all []seen, stop retrylens.StopReason) {
	t.Helper()
	finals := 0
	for _, s := range all {
		if s.d.StopReason != "" {
			finals++
			if s.d.StopReason != stop {
				t.Fatalf("observed %s, ended with %s", s.d.StopReason, stop)
			}
		}
	}
	if finals != 1 {
		t.Fatalf("%d final decisions: %+v", finals, all)
	}
}

// With everything failing, and with some successes, sends beyond the first are at
// most the bucket and a tenth of the successes.
func TestPropertyBudgetBoundsRetries(t *testing.T) {
	rnd := seeded(t)
	for _, success := range []float64{0, 0.01, 0.3, 0.9} {
		for _, protect := range []bool{true, false} {
			w := newWorld(t, func(o *retry.Options) {
				o.Rand = rand.NewPCG(rnd.Uint64(), 0)
				if !protect {
					o.Limits = limits(func(l *retry.Limits) { l.Breaker.MinSamples = 1 << 30 })
				}
			})
			retries, successes := 0, 0
			for range *opsFlag / 4 {
				sent := 0
				d := w.drive(keyed(), 10*time.Millisecond, func(retry.Attempt) retry.Result {
					sent++
					if rnd.Float64() < success {
						return ok
					}
					return class("unavailable")
				})
				retries += max(0, sent-1)
				if d.StopReason == retrylens.StopDelivered {
					successes++
				}
				if float64(retries) > 100+0.1*float64(successes)+1e-6 {
					t.Fatalf("%d retries for %d successes", retries, successes)
				}
			}
			if !protect && success < 0.1 && retries < 100 {
				t.Errorf("only %d retries: the test does not reach the bound", retries)
			}
			t.Logf("success %.0f %%, breaker %t: %d retries, %d successes", success*100, protect, retries, successes)
		}
	}
}

// The same seed gives the same decisions.
func TestDeterministic(t *testing.T) {
	run := func() (delays []time.Duration) {
		w := newWorld(t, nil)
		for range 100 {
			w.drive(keyed(), time.Millisecond, func(retry.Attempt) retry.Result { return class("timeout") })
		}
		for _, s := range w.events() {
			delays = append(delays, s.d.Delay)
		}
		return delays
	}
	a, b := run(), run()
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("decision %d: %v and %v", i, a[i], b[i])
		}
	}
}
