package arith_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/arith"
	"github.com/retrylens/retrylens/retry"
)

// down is an outage from the first operation to the last, before which no breaker
// and no budget stands.
func down(change func(*arith.OutageOptions)) arith.OutageOptions {
	o := arith.DefaultOutage()
	o.OutageAt, o.Outage, o.Duration, o.FailureRate = 0, time.Hour, time.Minute, 1
	o.Limits.Breaker.MinSamples, o.Limits.RetryBudget.Tokens, o.Limits.Bulkhead.Limit = 1<<30, 1e6, 10_000
	if change != nil {
		change(&o)
	}
	return o
}

func play(t *testing.T, o arith.OutageOptions, v arith.Variant) arith.OutageResult {
	t.Helper()
	r, err := arith.Outage(t.Context(), o, v)
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for _, n := range r.StopReasons {
		stopped += n
	}
	if r.Operations == 0 || r.Delivered+r.Failed != r.Operations || stopped != r.Failed {
		t.Fatalf("operations do not add up: %+v", r)
	}
	return r
}

func TestHealthyProvider(t *testing.T) {
	o := arith.DefaultOutage()
	o.Outage = 0
	r := play(t, o, arith.Variant{})
	if r.Failed != 0 || r.Calls != r.Operations || r.Amplification != 1 || r.P50 != time.Second || r.P99 != time.Second {
		t.Errorf("%+v", r)
	}
	if want := o.Price.MulDiv(uint64(r.Calls)*1800, 1e6); r.Tokens != uint64(r.Calls)*1800 || r.USD != want || r.OrphanedTokens != 0 {
		t.Errorf("tokens %d, %v USD, want %v", r.Tokens, r.USD, want)
	}
}

func TestEverythingFails(t *testing.T) {
	for name, c := range map[string]struct {
		o     arith.OutageOptions
		v     arith.Variant
		calls int // of each operation
		stop  retrylens.StopReason
	}{
		"three attempts": {down(nil), arith.Variant{}, 3, retrylens.StopMaxAttempts},
		"five attempts":  {down(func(o *arith.OutageOptions) { o.Policy = retry.Batch() }), arith.Variant{Jitter: retry.JitterNone}, 5, retrylens.StopMaxAttempts},
		"obey":           {down(nil), arith.Variant{Asked: true, Mode: retry.Obey}, 1, retrylens.StopDeadline},
		"no budget":      {down(func(o *arith.OutageOptions) { o.Limits.RetryBudget.Tokens = 0 }), arith.Variant{}, 1, retrylens.StopBudgetExhausted},
		"unkeyed":        {down(func(o *arith.OutageOptions) { o.Unkeyed, o.Failure = true, retrylens.ClassTimeout }), arith.Variant{}, 1, retrylens.StopUnkeyed},
		"deadline":       {down(func(o *arith.OutageOptions) { o.Failure = retrylens.ClassTimeout }), arith.Variant{}, 1, retrylens.StopDeadline},
		"slow":           {down(func(o *arith.OutageOptions) { o.FailureRate, o.ServiceTime = 0, time.Hour }), arith.Variant{}, 1, retrylens.StopDeadline},
	} {
		r := play(t, c.o, c.v)
		if r.Delivered != 0 || r.Calls != c.calls*r.Operations || r.StopReasons[c.stop] != r.Operations || r.P99 != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		timeouts := name == "unkeyed" || name == "deadline" || name == "slow"
		if want := uint64(r.Calls) * 1800; timeouts && (r.Tokens != want || r.OrphanedTokens != want) || !timeouts && r.Tokens != 0 {
			t.Errorf("%s: %d tokens, %d orphaned", name, r.Tokens, r.OrphanedTokens)
		}
	}
}

// TestClampWaitsForTheCap: 429s that ask for 30 s; the cap is 20 s.
func TestClampWaitsForTheCap(t *testing.T) {
	o := arith.DefaultOutage()
	o.Outage, o.FailureRate = 10*time.Second, 1
	o.Limits.Breaker.MinSamples = 1 << 30
	clamp, obey := play(t, o, arith.Variant{Asked: true}), play(t, o, arith.Variant{Asked: true, Mode: retry.Obey})
	if clamp.Failed != 0 || clamp.P99 < 20*time.Second || clamp.P99 > 24*time.Second {
		t.Errorf("clamp: %+v", clamp)
	}
	if obey.Failed == 0 || obey.Calls != obey.Operations || obey.Operations != clamp.Operations {
		t.Errorf("obey: %+v", obey)
	}
}

func TestBreakerAndQueue(t *testing.T) {
	o := down(nil)
	o.Limits = retry.DefaultLimits()
	if r := play(t, o, arith.Variant{}); r.StopReasons[retrylens.StopBreakerOpen] == 0 || r.Amplification >= 1 {
		t.Errorf("breaker: %+v", r)
	}
	o.FailureRate, o.ServiceTime, o.Limits.Bulkhead.Limit = 0, 10*time.Second, 1
	r := play(t, o, arith.Variant{})
	if r.StopReasons[retrylens.StopDeadline] != r.Failed || r.Failed == 0 || r.P99 <= 10*time.Second || r.P99 > 35*time.Second {
		t.Errorf("queue: %+v", r)
	}
	if r.LastAt > o.Duration+35*time.Second {
		t.Errorf("an operation waited beyond its deadline: %+v", r)
	}
}

func TestCapacity(t *testing.T) {
	o := arith.DefaultOutage()
	o.Outage, o.Capacity, o.Limits.Breaker.MinSamples = 0, 1, 1<<30
	if r := play(t, o, arith.Variant{}); r.Calls <= r.Operations {
		t.Errorf("more than one at once, and none refused: %+v", r)
	}
}

func TestVariants(t *testing.T) {
	o := arith.DefaultOutage()
	if v := o.Variants(retry.Jitters); len(v) != 6 || !v[5].Asked || v[5].Mode != retry.Obey {
		t.Errorf("%+v", v)
	}
	o.RetryAfter = 0
	if v := o.Variants(retry.Jitters); len(v) != 4 {
		t.Errorf("nobody asks: %+v", v)
	}
}

// TestEveryFailureIsOfItsClass: each name leads to a verdict that is retried.
func TestEveryFailureIsOfItsClass(t *testing.T) {
	for _, name := range arith.FailureNames() {
		o := down(func(o *arith.OutageOptions) {
			o.Failure = retrylens.ErrorClass(name)
			o.Policy = retry.Batch()
			o.Policy.AttemptTimeout = time.Second
			o.ServiceTime = 500 * time.Millisecond
		})
		if r := play(t, o, arith.Variant{Jitter: retry.JitterFull}); r.Calls < 4*r.Operations {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestOutageKeepsItsBounds whatever the numbers, and the seed says all.
func TestOutageKeepsItsBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		o := arith.DefaultOutage()
		o.Rate, o.FailureRate, o.Seed = 1+20*r.Float64(), r.Float64(), r.Uint64()
		o.Outage, o.Capacity = time.Duration(r.IntN(120))*time.Second, r.IntN(40)
		o.Policy.Attempts, o.Limits.Bulkhead.Limit = 1+r.IntN(6), 1+r.IntN(64)
		for _, v := range o.Variants(retry.Jitters) {
			a, b := play(t, o, v), play(t, o, v)
			retries := float64(a.Calls - a.Operations)
			if allowed := 100 + 0.1*float64(a.Delivered); retries > allowed || a.Calls > o.Policy.Attempts*a.Operations || !reflect.DeepEqual(a, b) {
				t.Fatalf("%+v\n%+v\n%+v", o, a, b)
			}
		}
	}
}

func TestOutageIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := arith.Outage(ctx, arith.DefaultOutage(), arith.Variant{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func BenchmarkOutage(b *testing.B) {
	o := arith.DefaultOutage()
	o.Rate = 50
	calls := 0
	for b.Loop() {
		r, err := arith.Outage(b.Context(), o, arith.Variant{})
		if err != nil {
			b.Fatal(err)
		}
		calls = r.Calls
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(calls), "ns/call")
}
