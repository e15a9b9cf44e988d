package world_test

import (
	"math"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/internal/sim/world"
	"github.com/retrylens/retrylens/retry"
)

var start = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// whole is a window that holds everything.
var whole = world.Window{To: 1000 * time.Hour}

// small is an hour of one workload, thirty operations a minute, keyed, one attempt each.
func small() *world.World {
	once := retry.Batch()
	once.Attempts = 1
	return &world.World{Seed: 1, Start: start, Duration: time.Hour, Workloads: []world.Workload{{
		Tenant: "t", Service: "s", Provider: "openai", Model: "gpt-4o", Keyed: true, PerMinute: 30,
		Prompt: world.ConversationPrompt, Completion: world.ConversationCompletion,
		Policy: once, Limits: retry.DefaultLimits(), LearnsUsage: 1,
	}}}
}

// unguarded limits keep every call going.
func unguarded() retry.Limits {
	l := retry.DefaultLimits()
	l.RetryBudget.Tokens, l.Breaker.MinSamples, l.Bulkhead.Limit = 1e6, 1e9, 1e6
	return l
}

// down has every request fail in one way.
func down(k failure.Kind) world.Fault {
	return world.Fault{Provider: "openai", Window: whole, ErrorRates: world.EveryZone(1), Mix: failure.Only(k)}
}

func play(t *testing.T, w *world.World) ([]retrylens.Attempt, world.Stats, metrics.Row) {
	t.Helper()
	var all []retrylens.Attempt
	stats, err := w.Run(t.Context(), func(a *retrylens.Attempt) error {
		if err := a.Validate(retrylens.Limits{Now: start.Add(100 * time.Hour)}); err != nil {
			t.Fatalf("%v: %s", err, a.AppendJSON(nil))
		}
		all = append(all, *a)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := metrics.Fold(all, metrics.Query{AsOf: start.Add(100 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return all, stats, r.Rows[0]
}

// TestSDKsRetryByTheirDefaults: how often, and how long that takes at most and at
// least (the calls themselves take under a second here).
func TestSDKsRetryByTheirDefaults(t *testing.T) {
	for name, want := range map[string]struct {
		calls    int
		low, top time.Duration
	}{
		"openai":    {3, 1125 * time.Millisecond, 1500 * time.Millisecond}, // 0.5·2^n less up to 25 %
		"anthropic": {3, 1125 * time.Millisecond, 1500 * time.Millisecond},
		"cohere":    {3, 2700 * time.Millisecond, 3 * time.Second},
		"botocore":  {5, 0, 15 * time.Second}, // rand·2^(n−1)
		"genai":     {1, 0, 0},
	} {
		w := small()
		sdk := world.SDKs[name]
		l := &w.Workloads[0]
		l.SDK, l.Limits = &sdk, unguarded()
		w.Faults = []world.Fault{down(failure.BadGateway)}
		w.Providers = []world.Provider{{Name: "openai", RateLimit: 1000}}
		all, _, _ := play(t, w)
		for _, a := range all {
			if a.ErrorClass == retrylens.ClassInvalidRequest {
				continue
			}
			took := time.Duration(a.DurationMS.Value) * time.Millisecond
			if int(a.UpstreamCalls.Value) != want.calls || took < want.low || took > want.top+4*time.Second {
				t.Fatalf("%s: %d calls in %v, want %d in %v..%v", name, a.UpstreamCalls.Value, took, want.calls, want.low, want.top)
			}
		}
	}
}

// TestAnSDKWaitsAsAsked: one to three seconds twice.
func TestAnSDKWaitsAsAsked(t *testing.T) {
	w := small()
	sdk := world.SDKs["openai"]
	l := &w.Workloads[0]
	l.SDK, l.Limits = &sdk, unguarded()
	w.Faults = []world.Fault{down(failure.RateLimited)}
	all, _, _ := play(t, w)
	for _, a := range all {
		if a.ErrorClass == retrylens.ClassRateLimited && a.DurationMS.Value < 2000 {
			t.Fatalf("two asked waits took %d ms", a.DurationMS.Value)
		}
	}
}

// TestBudgetsBoundRetries: with everything failing, never more retries than the
// buckets of all processes hold.
func TestBudgetsBoundRetries(t *testing.T) {
	w := small()
	l := &w.Workloads[0]
	l.Policy, l.Processes = retry.Batch(), 3
	l.Limits.Breaker.MinSamples = 1e9
	w.Faults = []world.Fault{down(failure.BadGateway)}
	_, _, row := play(t, w)
	if row.Retries != 300 || row.StopsByReason["budget_exhausted"] == 0 {
		t.Errorf("%d retries of 3 processes with 100 tokens, stops %v", row.Retries, row.StopsByReason)
	}
}

// TestAFullLineSheds what is too much, and asks to wait.
func TestAFullLineSheds(t *testing.T) {
	w := small()
	w.Providers = []world.Provider{{Name: "openai", Utilization: 0.9, Patience: 3 * time.Second}}
	w.Surges = []world.Surge{{Window: world.Window{From: 20 * time.Minute, To: 40 * time.Minute}, Factor: 5}}
	all, stats, _ := play(t, w)
	p := stats.Providers["openai"]
	if p.Shed < 500 || p.Shed > p.Calls/2 {
		t.Errorf("%+v", p)
	}
	asked := 0
	for _, a := range all {
		if a.RetryAfterMS.Set && a.ErrorClass == retrylens.ClassUnavailable {
			asked++
		}
	}
	if uint64(asked) != p.Shed {
		t.Errorf("%d of %d shed requests were asked to wait", asked, p.Shed)
	}
	// What is served waits for at most the line: 3 s, whatever the load.
	busy := float64(p.Generated) / 60
	if busy < 30*0.7 {
		t.Errorf("%.1f answers a minute", busy)
	}
}

func TestTheRateLimitIsABucket(t *testing.T) {
	w := small()
	w.Providers = []world.Provider{{Name: "openai", RateLimit: 2}}
	w.Surges = []world.Surge{{Window: world.Window{From: 20 * time.Minute, To: 40 * time.Minute}, Factor: 4}}
	_, stats, row := play(t, w)
	p := stats.Providers["openai"]
	passed := float64(p.Calls - p.Limited)
	if want := 40*30 + 20*60.0 + 60; math.Abs(passed-want) > 150 || row.ErrorsByClass["rate_limited"] < p.Limited {
		t.Errorf("%.0f requests passed, want about %.0f; %v", passed, want, row.ErrorsByClass)
	}
}

// TestWhoHasLeftIsBilledUnlessTheProviderCancels.
func TestWhoHasLeftIsBilledUnlessTheProviderCancels(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		w := small()
		w.Workloads[0].Policy.AttemptTimeout = time.Second
		w.Providers = []world.Provider{{Name: "openai", Cancels: cancels}}
		_, stats, row := play(t, w)
		p := stats.Providers["openai"]
		timeouts := row.ErrorsByClass["timeout"]
		if timeouts < 500 || (p.Unheard == 0) != cancels || (row.OrphanedAttempts == 0) != cancels {
			t.Errorf("cancels %v: %d timeouts, %d orphaned, %+v", cancels, timeouts, row.OrphanedAttempts, p)
		}
		if !cancels && (p.Unheard != timeouts || row.OrphanedAttempts != timeouts) {
			t.Errorf("%d timeouts, %d finished all the same, %d of known usage", timeouts, p.Unheard, row.OrphanedAttempts)
		}
	}
}

// TestAGatewayGoesOnWhenItsClientHasLeft: its answers are lost, and paid for.
func TestAGatewayGoesOnWhenItsClientHasLeft(t *testing.T) {
	w := small()
	l := &w.Workloads[0]
	l.Policy.AttemptTimeout = time.Second
	l.Gateway = &world.Gateway{Policy: retry.Batch(), Limits: retry.DefaultLimits()}
	_, _, row := play(t, w)
	lost, timeouts := row.OrphanedTokensByReason["lost_reply"], row.ErrorsByClass["timeout"]
	if lost == 0 || timeouts < 500 || row.Failed != timeouts+row.ErrorsByClass["invalid_request"] {
		t.Errorf("%d tokens of lost replies, %d timeouts, %d failed", lost, timeouts, row.Failed)
	}
}

// TestAFullBulkheadQueues until the deadline, then it sheds.
func TestAFullBulkheadQueues(t *testing.T) {
	w := small()
	l := &w.Workloads[0]
	l.Policy = retry.Interactive()
	l.Processes, l.Limits.Bulkhead.Limit = 1, 1
	w.Surges = []world.Surge{{Window: world.Window{From: 20 * time.Minute, To: 40 * time.Minute}, Factor: 3}}
	all, _, row := play(t, w)
	if row.Shed < 100 || row.StopsByReason["deadline"] != row.Shed || row.Open+row.Lost > 0 {
		t.Errorf("%d shed, stops %v, %d open, %d lost", row.Shed, row.StopsByReason, row.Open, row.Lost)
	}
	for _, a := range all {
		if waited := a.StartedAt.Sub(a.OperationStartedAt); a.Outcome == retrylens.OutcomeShed && waited != 25*time.Second {
			t.Fatalf("shed after %v", waited)
		}
	}
}

// TestABrokenStreamIsNotTriedAgain, and its partial usage is a lower bound.
func TestABrokenStreamIsNotTriedAgain(t *testing.T) {
	w := small()
	l := &w.Workloads[0]
	l.Stream, l.Policy = true, retry.Interactive()
	w.Faults = []world.Fault{{Provider: "openai", Window: whole, BreakRate: 1}}
	all, _, row := play(t, w)
	for _, a := range all {
		if a.ErrorClass == retrylens.ClassStreamInterrupted && (a.Outcome != retrylens.OutcomeInterrupted || a.Delivery != retrylens.DeliveryPartial ||
			a.UsageSource != retrylens.UsagePartial || a.StopReason != retrylens.StopPartialStream || a.Status.Value != 200) {
			t.Fatal(string(a.AppendJSON(nil)))
		}
	}
	if row.Succeeded > 0 || row.OrphanedTokensByReason["interrupted"] == 0 {
		t.Errorf("%d succeeded, orphaned %v", row.Succeeded, row.OrphanedTokensByReason)
	}
}

// TestRampsComeAndGoSlowly: a quarter of the errors in a window that is all ramp up to
// the half, as much in the other half.
func TestRampsComeAndGoSlowly(t *testing.T) {
	w := small()
	w.Workloads[0].PerMinute = 300
	f := down(failure.BadGateway)
	f.Window = world.Window{To: time.Hour}
	f.RampUp, f.RampDown = 30*time.Minute, 30*time.Minute
	w.Faults = []world.Fault{f}
	w.Workloads[0].Limits = unguarded()
	all, _, _ := play(t, w)
	var failed, total [6]float64
	for _, a := range all {
		i := int(a.StartedAt.Sub(start) / (10 * time.Minute))
		if i < 6 {
			total[i]++
			if a.ErrorClass == retrylens.ClassBadGateway {
				failed[i]++
			}
		}
	}
	for i, want := range [6]float64{1.0 / 6, 0.5, 5.0 / 6, 5.0 / 6, 0.5, 1.0 / 6} {
		if got := failed[i] / total[i]; math.Abs(got-want) > 0.05 {
			t.Errorf("part %d: %.3f fail, want %.3f", i, got, want)
		}
	}
}

// TestTheSeasonHasItsMean: the mean is the one asked for, high at 15:00 and low at 3:00.
func TestTheSeasonHasItsMean(t *testing.T) {
	w := small()
	w.Duration = 24 * time.Hour
	w.Workloads[0].Season = 0.8
	var hours [24]float64
	all, stats, _ := play(t, w)
	for _, a := range all {
		if a.Attempt == 0 && a.Revision == 0 {
			hours[a.OperationStartedAt.Hour()]++
		}
	}
	if want := 24 * 60 * 30.0; math.Abs(float64(stats.Operations)-want) > 4*math.Sqrt(want) {
		t.Errorf("%d operations, want %.0f", stats.Operations, want)
	}
	if noon, night := hours[14]+hours[15], hours[2]+hours[3]; math.Abs(noon/3600-1.8) > 0.15 || math.Abs(night/3600-0.2) > 0.05 {
		t.Errorf("%.0f around 15:00, %.0f around 3:00", noon, night)
	}
}

// TestLayersMultiply: 3 attempts at a gateway of 4 are 12 calls, numbered from 100 × the
// requests that the gateway had before.
func TestLayersMultiply(t *testing.T) {
	w := small()
	l := &w.Workloads[0]
	l.Policy, l.Limits = retry.Batch(), unguarded()
	l.Policy.Attempts, l.Policy.AttemptTimeout = 3, time.Hour
	inner := retry.Batch()
	inner.Attempts = 4
	l.Gateway = &world.Gateway{Policy: inner, Limits: unguarded()}
	w.Faults = []world.Fault{down(failure.GatewayTimeout)}
	w.Providers = []world.Provider{{Name: "openai", RateLimit: 1000}}
	all, _, row := play(t, w)
	if f := row.Counters.Figures(); math.Abs(f.Amplification.Value-12) > 0.05 || math.Abs(f.LayerFactor.Value-4) > 0.02 {
		t.Errorf("amplification %.3f, layer_factor %.3f", f.Amplification.Value, f.LayerFactor.Value)
	}
	numbers := map[int32]int{}
	for _, a := range all {
		if a.Hop == retrylens.HopGateway {
			numbers[a.Attempt]++
		}
	}
	for _, n := range []int32{0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203} {
		if numbers[n] < int(row.Operations)*9/10 {
			t.Errorf("attempt %d: %d of %d operations", n, numbers[n], row.Operations)
		}
	}
	if len(numbers) != 12 {
		t.Errorf("numbers %v", numbers)
	}
}
