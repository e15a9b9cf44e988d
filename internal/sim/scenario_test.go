package sim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/sim/world"
	"github.com/retrylens/retrylens/retry"
)

// shape tells what is wrong with what came of a scenario, nothing if all is right.
type shape func(p *played, before, during, after figures) []string

// wrong collects what does not hold.
func wrong(checks ...string) (out []string) {
	for _, c := range checks {
		if c != "" {
			out = append(out, c)
		}
	}
	return out
}

// must is "" if ok.
func must(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func amplification(name string, f figures, low, high float64) string {
	v := f.Amplification.Value
	return must(v >= low && v <= high, "amplification %s %.3f, want %.2f..%.2f", name, v, low, high)
}

func errorRatio(name string, f figures, low, high float64) string {
	v := f.ErrorRatio.Value
	return must(v >= low && v <= high, "error_ratio %s %.4f, want %.3f..%.3f", name, v, low, high)
}

func p50Grows(before, during figures, factor float64) string {
	a, b := before.Latency.P50.Value, during.Latency.P50.Value
	return must(float64(b) >= factor*float64(a), "p50 %d → %d ms, want %.1f times", a, b, factor)
}

func p50Stays(before, during figures) string {
	a, b := float64(before.Latency.P50.Value), float64(during.Latency.P50.Value)
	return must(math.Abs(b-a) < 0.25*a, "p50 %.0f → %.0f ms", a, b)
}

// calm is a phase in which nothing is wrong.
func calm(name string, f figures) string {
	return strings.Join(wrong(amplification(name, f, 0.999, 1.02), errorRatio(name, f, 0, 0.006)), "; ")
}

// retrySuccess of several phases: on good days retries are few.
func retrySuccess(phases ...figures) float64 {
	retries, successes := 0.0, 0.0
	for _, f := range phases {
		retries += float64(f.Retries)
		successes += float64(f.RetrySuccesses)
	}
	return successes / retries
}

// maskedShape is that of docs/metrics.md: the error ratio flat, everything else up.
func maskedShape(_ *played, before, during, after figures) []string {
	return wrong(calm("before", before), calm("after", after),
		errorRatio("during", during, 0, before.ErrorRatio.Value+0.015),
		amplification("during", during, 1.3, 1.7),
		must(during.AttemptErrorRatio.Value > 0.2, "attempt_error_ratio %.3f", during.AttemptErrorRatio.Value),
		must(during.RetrySuccessRatio.Value < retrySuccess(before, after)-0.05, "retry_success_ratio %.3f → %.3f", retrySuccess(before, after), during.RetrySuccessRatio.Value),
		p50Grows(before, during, 1.8),
		must(during.Latency.P99.Value > 2*before.Latency.P99.Value, "p99 %d → %d", before.Latency.P99.Value, during.Latency.P99.Value),
		must(during.OrphanedAttempts > 0 && during.OrphanSuspects > 0, "%d orphaned, %d suspects", during.OrphanedAttempts, during.OrphanSuspects))
}

// shapes are of the provider that the truth names.
var shapes = map[string]shape{
	"healthy": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("during", during), calm("after", after), p50Stays(before, during))
	},
	"flaky": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("after", after), errorRatio("during", during, 0, 0.006), amplification("during", during, 1.03, 1.1),
			must(during.RetrySuccessRatio.Value > 0.88, "retry_success_ratio %.3f", during.RetrySuccessRatio.Value), p50Stays(before, during))
	},
	"masked_outage":       maskedShape,
	"masked_one_of_three": maskedShape,
	"side_by_side": func(p *played, before, during, after figures) []string {
		flaky := p.fold("anthropic", p.sim.Truth[0].From, p.sim.Truth[0].To)
		return append(maskedShape(p, before, during, after), wrong(
			must(math.Abs(flaky.ErrorRatio.Value-during.ErrorRatio.Value) < 0.015, "error ratios %.4f and %.4f do not look alike", flaky.ErrorRatio.Value, during.ErrorRatio.Value),
			amplification("of the flaky one", flaky, 1.03, 1.1),
			must(flaky.RetrySuccessRatio.Value > during.RetrySuccessRatio.Value+0.03, "retry_success_ratio %.3f and %.3f", flaky.RetrySuccessRatio.Value, during.RetrySuccessRatio.Value),
			must(flaky.OrphanedTokens() < during.OrphanedTokens(), "orphaned tokens %d and %d", flaky.OrphanedTokens(), during.OrphanedTokens()))...)
	},
	"masked_slow_onset": func(p *played, before, _, after figures) []string {
		t := p.sim.Truth[0]
		half := t.From.Add(t.To.Sub(t.From) / 2)
		early, late := p.fold(t.Provider, t.From, t.From.Add(t.To.Sub(t.From)/8)), p.fold(t.Provider, half, t.To)
		return append(maskedShape(p, before, late, after), wrong(amplification("at first", early, 1, 1.2))...)
	},
	"outage": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), errorRatio("during", during, 0.8, 1), errorRatio("after", after, 0, 0.03),
			must(during.Shed > 0 && during.StopsByReason["breaker_open"] > 0, "no breaker opened"))
	},
	"recovery": func(p *played, before, during, _ figures) []string {
		back := p.sim.Truth[1]
		third := back.To.Sub(back.From) / 3
		early, late := p.fold(back.Provider, back.From, back.From.Add(third)), p.fold(back.Provider, back.To.Add(-third), back.To)
		return wrong(calm("before", before), errorRatio("during", during, 0.8, 1), calm("at last", p.fold(back.Provider, back.To.Add(5*time.Minute), p.end)),
			must(early.ErrorRatio.Value > 2*late.ErrorRatio.Value, "error_ratio %.3f → %.3f while it recovers", early.ErrorRatio.Value, late.ErrorRatio.Value))
	},
	"metastable": func(_ *played, before, during, _ figures) []string {
		return wrong(calm("before", before), amplification("ever after", during, 2.5, 3))
	},
	"short_blip": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("after", after), must(during.AttemptErrorRatio.Value > 0.8, "attempt_error_ratio %.3f", during.AttemptErrorRatio.Value))
	},
	"quota_wall": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("after", after), errorRatio("during", during, 1, 1), amplification("during", during, 1, 1),
			must(during.Retries == 0 && during.ErrorsByClass["quota_exhausted"] == during.Attempts, "%d retries, %v", during.Retries, during.ErrorsByClass),
			must(during.OrphanSuspects == 0, "%d suspects", during.OrphanSuspects))
	},
	"slow_model": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("during", during), calm("after", after), p50Grows(before, during, 1.7))
	},
	"traffic_spike": func(p *played, before, during, after figures) []string {
		t := p.sim.Truth[0]
		usual := float64(before.Operations) / t.From.Sub(p.sim.World.Start).Minutes()
		now := float64(during.Operations) / t.To.Sub(t.From).Minutes()
		return wrong(calm("before", before), calm("during", during), calm("after", after),
			must(now > 3*usual, "%.0f → %.0f operations a minute", usual, now))
	},
	"quiet_night": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("after", after), must(during.Operations < before.Operations/10, "%d operations, before %d", during.Operations, before.Operations))
	},
	"deploy": func(p *played, before, during, _ figures) []string {
		t := p.sim.Truth[0]
		old, started := emitters(p, p.sim.World.Start, t.From), emitters(p, t.From.Add(time.Minute), p.end)
		for e := range started {
			delete(old, e)
		}
		return wrong(calm("before", before), calm("during", during), p50Grows(before, during, 1.4),
			must(len(old) > 0 && len(started) > 0, "processes did not start anew"))
	},
	"hidden_sdk_layer": func(p *played, before, during, after figures) []string {
		own := p.service("reports-by-gateway", p.sim.Truth[0])
		return wrong(amplification("before", before, 1, 1.03), amplification("after", after, 1, 1.03),
			amplification("during", during, 11.8, 12),
			must(during.HiddenCalls > 3*during.Operations, "hidden_calls %d of %d operations", during.HiddenCalls, during.Operations),
			must(math.Abs(during.LayerFactor.Value-3) < 0.02, "layer_factor %.3f", during.LayerFactor.Value),
			must(own["sdk"] > 7*own["first"], "causes at the gateway: %v", own))
	},
	"client_timeout": func(_ *played, before, during, after figures) []string {
		return wrong(amplification("before", before, 1, 1.03), amplification("after", after, 1, 1.03), amplification("during", during, 1.1, 2),
			must(during.OrphanedTokensByReason["timeout"] > 100*before.OrphanedTokensByReason["timeout"]/10+10_000, "orphaned tokens %v → %v", before.OrphanedTokensByReason, during.OrphanedTokensByReason),
			must(during.OrphanSuspects > 100, "%d suspects", during.OrphanSuspects),
			must(during.ErrorsByClass["timeout"] > during.Attempts/10, "errors %v", during.ErrorsByClass))
	},
	"duplicate_submissions": func(_ *played, before, during, after figures) []string {
		return wrong(calm("before", before), calm("during", during), calm("after", after),
			must(during.DuplicatesServed > 100 && during.DuplicatesRefused > 100, "served %d, refused %d", during.DuplicatesServed, during.DuplicatesRefused),
			must(during.RetryRatio.Value > 1.5, "retry_ratio %.3f", during.RetryRatio.Value),
			must(during.RedundantTokens == 0, "%d tokens bought twice", during.RedundantTokens))
	},
	"queue_redelivery": func(p *played, before, during, after figures) []string {
		return append(redeliveries(p), wrong(calm("before", before), calm("after", after), errorRatio("during", during, 0, 0.01),
			amplification("during", during, 1.15, 2), p50Grows(before, during, 5),
			must(during.RedundantTokens > 100_000, "%d tokens bought twice", during.RedundantTokens))...)
	},
	"daily_season": func(p *played, _, _, _ figures) []string {
		night, noon := p.fold("", start.Add(2*time.Hour), start.Add(4*time.Hour)), p.fold("", start.Add(14*time.Hour), start.Add(16*time.Hour))
		return wrong(calm("at night", night), calm("at noon", noon), must(noon.Operations > 5*night.Operations, "%d at noon, %d at night", noon.Operations, night.Operations))
	},
	"emitter_drops": func(p *played, before, during, after figures) []string {
		dropped := uint64(0)
		for _, n := range p.stats.Dropped {
			dropped += n
		}
		missing := during.report.Completeness.RecordsMissing
		return wrong(calm("before", before), calm("after", after), must(dropped > 100, "%d dropped", dropped),
			must(missing.Set && missing.Value == dropped, "missing %v, dropped %d", missing, dropped))
	},
}

// OrphanedTokens of both kinds.
func (f figures) OrphanedTokens() uint64 { return f.OrphanedPromptTokens + f.OrphanedCompletionTokens }

// service counts the causes of a service's gateway records during a truth.
func (p *played) service(name string, t sim.Truth) map[retrylens.Cause]int {
	out := map[retrylens.Cause]int{}
	for i := range p.attempts {
		a := &p.attempts[i]
		if a.Service == name && a.Hop == retrylens.HopGateway && !a.OperationStartedAt.Before(t.From) && a.OperationStartedAt.Before(t.To) {
			out[a.Cause]++
		}
	}
	return out
}

// emitters of the operations that start within a window.
func emitters(p *played, from, to time.Time) map[string]bool {
	out := map[string]bool{}
	for i := range p.attempts {
		if at := p.attempts[i].OperationStartedAt; !at.Before(from) && at.Before(to) {
			out[p.attempts[i].Emitter] = true
		}
	}
	return out
}

// redeliveries begin at 100 × the deliveries before, each with that cause.
func redeliveries(p *played) []string {
	n := 0
	for i := range p.attempts {
		a := &p.attempts[i]
		if again := a.Attempt >= 100 && a.Attempt%100 == 0; again != (a.Cause == retrylens.CauseRedelivery) {
			return []string{fmt.Sprintf("attempt %d has cause %s", a.Attempt, a.Cause)}
		} else if again {
			n++
		}
	}
	return wrong(must(n > 100, "%d redeliveries", n))
}

// TestEveryScenarioHasItsShape: the figures that follow are those that the definition
// of what happens asks for, whatever the seed.
func TestEveryScenarioHasItsShape(t *testing.T) {
	for _, s := range sim.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if shapes[s.Name] == nil {
				t.Fatal("no shape is asked of it")
			}
			for _, seed := range seeds {
				o := sim.Options{Scenario: s.Name, Seed: seed}
				switch {
				case s.Name == "daily_season":
					o.Duration = 24 * time.Hour
				case strings.HasPrefix(s.Name, "masked"): // on good days there is a retry for each 200 operations
					o.OperationsPerMinute = 160
				}
				p := play(t, o)
				truth := p.sim.Truth[0]
				before, during, after := p.phases(truth.Provider)
				for _, what := range shapes[s.Name](p, before, during, after) {
					t.Errorf("seed %d, %s: %s", seed, truth, what)
				}
			}
		})
	}
}

// TestWhatHappensToOneProviderLeavesTheOthersAlone: the bystanders of every fault.
func TestWhatHappensToOneProviderLeavesTheOthersAlone(t *testing.T) {
	for _, name := range []string{"masked_outage", "outage", "quota_wall", "slow_model"} {
		p := play(t, sim.Options{Scenario: name, Seed: 5})
		_, during, _ := p.phases("anthropic")
		if bad := calm("of anthropic", during); bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
	}
}

// TestMaskedOutagesGrowWithTheirSize and stay masked while the budgets last.
func TestMaskedOutagesGrowWithTheirSize(t *testing.T) {
	var last figures
	for size := 1; size <= sim.Sizes; size++ {
		p := play(t, sim.Options{Seed: 6, Size: size, For: 20 * time.Minute, OperationsPerMinute: 240})
		before, during, _ := p.phases("openai")
		t.Logf("size %d: amplification %.3f, retry_success_ratio %.3f, error_ratio %.4f, p50 %d → %d", size,
			during.Amplification.Value, during.RetrySuccessRatio.Value, during.ErrorRatio.Value, before.Latency.P50.Value, during.Latency.P50.Value)
		if d := during.ErrorRatio.Value - before.ErrorRatio.Value; d > 0.02 {
			t.Errorf("size %d: the error ratio grows by %.4f", size, d)
		}
		if during.Amplification.Value < 1.25 || size > 1 && during.Amplification.Value <= last.Amplification.Value {
			t.Errorf("size %d: amplification %.3f after %.3f", size, during.Amplification.Value, last.Amplification.Value)
		}
		last = during
	}
}

// TestAMaskedOutageOutlastsItsBudgets: the policy lets it be masked for as long as the
// retry budgets of the processes last, then it shows.
func TestAMaskedOutageOutlastsItsBudgets(t *testing.T) {
	p := play(t, sim.Options{Seed: 1, Duration: 12 * time.Hour, At: time.Hour, For: 10 * time.Hour, Size: 4})
	from := start.Add(time.Hour)
	early, late := p.fold("openai", from, from.Add(30*time.Minute)), p.fold("openai", from.Add(8*time.Hour), from.Add(10*time.Hour))
	if early.ErrorRatio.Value > 0.02 || late.ErrorRatio.Value < 0.1 || late.StopsByReason["budget_exhausted"] == 0 || early.StopsByReason["budget_exhausted"] > 0 {
		t.Errorf("error_ratio %.4f → %.4f, stops %v → %v", early.ErrorRatio.Value, late.ErrorRatio.Value, early.StopsByReason, late.StopsByReason)
	}
}

// TestTheMetastableStateIsTheRetriesOwn: after the trigger the provider completes more
// answers than there are operations, and nobody is there to take them. With the
// policy's guards the same trigger passes.
func TestTheMetastableStateIsTheRetriesOwn(t *testing.T) {
	for _, seed := range seeds {
		o := sim.Options{Scenario: "metastable", Seed: seed}
		p := play(t, o)
		short := o
		short.At, short.For, short.Duration = time.Hour, 10*time.Minute, 90*time.Minute
		upTo := play(t, short)
		operations := p.stats.Operations - upTo.stats.Operations
		generated := p.stats.Providers["openai"].Generated - upTo.stats.Providers["openai"].Generated
		late := p.fold("", p.end.Add(-30*time.Minute), p.end)
		if generated < operations || late.ErrorRatio.Value < 0.9 || late.Amplification.Value < 2.5 {
			t.Errorf("seed %d: %d answers for %d operations, late error_ratio %.3f, amplification %.3f", seed, generated, operations, late.ErrorRatio.Value, late.Amplification.Value)
		}

		s, err := sim.Build(sim.Options{Scenario: "metastable", Seed: seed, Start: start, Duration: 3 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		s.World.Workloads[0].Limits = retry.DefaultLimits()
		guarded := playWorld(t, s)
		late = guarded.fold("", guarded.end.Add(-30*time.Minute), guarded.end)
		if late.ErrorRatio.Value > 0.02 || late.Amplification.Value > 1.05 {
			t.Errorf("seed %d with guards: late error_ratio %.3f, amplification %.3f", seed, late.ErrorRatio.Value, late.Amplification.Value)
		}
	}
}

// TestUsageOfSomeTimeoutsIsLearnedLater, by revision 1 of the same record.
func TestUsageOfSomeTimeoutsIsLearnedLater(t *testing.T) {
	var timeouts, revised int
	first := map[string]retrylens.Attempt{}
	for _, a := range play(t, sim.Options{Scenario: "client_timeout", Seed: 1}).attempts {
		key := fmt.Sprint(a.LogicalID, a.Attempt)
		if a.Revision == 0 {
			first[key] = a
			if a.ErrorClass == retrylens.ClassTimeout {
				timeouts++
			}
			continue
		}
		revised++
		was := first[key]
		if was.ErrorClass != retrylens.ClassTimeout || was.PromptTokens.Set || was.UsageSource != retrylens.UsageUnknown || a.Seq != was.Seq || a.Emitter != was.Emitter {
			t.Errorf("revised: %s", was.AppendJSON(nil))
		}
		if !a.PromptTokens.Set || !a.CostUSD.Set || a.UsageSource != retrylens.UsageProvider || a.CostSource != retrylens.CostPriceBook || a.Final != was.Final {
			t.Errorf("revision: %s", a.AppendJSON(nil))
		}
	}
	if revised < timeouts*2/5 || revised > timeouts*3/5 || timeouts < 500 {
		t.Errorf("%d timeouts, %d revised", timeouts, revised)
	}
}

// TestIncidentsHappenToTheirSeriesOnly: many series, each with its own truth.
func TestIncidentsHappenToTheirSeriesOnly(t *testing.T) {
	kinds := []string{"flaky", "masked_outage", "outage", "slow_model", "traffic_spike", "quota_wall", "deploy", "quiet_night"}
	o := sim.Options{Seed: 9, Series: len(kinds), OperationsPerMinute: 30 * float64(len(kinds)), Duration: 4 * time.Hour}
	for i, kind := range kinds {
		o.Incidents = append(o.Incidents, sim.Incident{Scenario: kind, Series: i, At: 2 * time.Hour, For: 30 * time.Minute})
	}
	p := play(t, o)
	if len(p.sim.Truth) != len(kinds) {
		t.Fatalf("truth %v", p.sim.Truth)
	}
	for i, kind := range kinds {
		provider, model := sim.SeriesName(i)
		truth := p.sim.Truth[i]
		if truth.Provider != provider || truth.Model != model || !truth.From.Equal(start.Add(2*time.Hour)) {
			t.Errorf("%s: truth %v", kind, truth)
		}
		before, during := p.model(model, start, truth.From), p.model(model, truth.From, truth.To)
		if bad := calm("before", before); bad != "" {
			t.Errorf("%s: %s", kind, bad)
		}
		if incident := truth.State == sim.MaskedOutage || truth.State == sim.Outage; incident != (during.AttemptErrorRatio.Value > 0.2) {
			t.Errorf("%s: attempt_error_ratio %.3f", kind, during.AttemptErrorRatio.Value)
		}
	}
}

// model's figures: of a world of series it is enough to tell them.
func (p *played) model(name string, from, to time.Time) figures {
	own := *p
	own.attempts = nil
	for i := range p.attempts {
		if p.attempts[i].Model == name {
			own.attempts = append(own.attempts, p.attempts[i])
		}
	}
	return own.fold("", from, to)
}

// TestAWorldIsNamedWhenBad: what a world of one's own can get wrong.
func TestAWorldIsNamedWhenBad(t *testing.T) {
	good := func() world.World {
		s, err := sim.Build(sim.Options{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		return s.World
	}
	for what, spoil := range map[string]func(*world.World){
		"Faults[0]: no workload calls": func(w *world.World) { w.Faults[0].Provider = "nobody" },
		"Faults[0]: From":              func(w *world.World) { w.Faults[0].From = w.Faults[0].To + 1 },
		"Faults[0]: a rate":            func(w *world.World) { w.Faults[0].HangRate = 2 },
		"Faults[0].LatencyFactor":      func(w *world.World) { w.Faults[0].LatencyFactor = math.Inf(1) },
		"Workloads[1].Season":          func(w *world.World) { w.Workloads[1].Season = math.NaN() },
		"Workloads[2].Policy":          func(w *world.World) { w.Workloads[2].Policy.Attempts = 0 },
		"Workloads[0].Queue":           func(w *world.World) { w.Workloads[0].Queue = &world.Redelivery{} },
		"Workloads[0].Gateway.Policy":  func(w *world.World) { w.Workloads[0].Gateway = &world.Gateway{} },
		"1..10000 workloads":           func(w *world.World) { w.Workloads = nil },
		"Providers[1].Name":            func(w *world.World) { w.Providers = []world.Provider{{Name: "a"}, {Name: "a"}} },
		"Surges[0]":                    func(w *world.World) { w.Surges = []world.Surge{{Factor: -1}} },
		"SinkOutages[0]":               func(w *world.World) { w.SinkOutages = []world.SinkOutage{{Buffer: -1}} },
		"Resubmissions[0]":             func(w *world.World) { w.Resubmissions = []world.Resubmission{{}} },
		"Restarts[0]":                  func(w *world.World) { w.Restarts = []world.Restart{{At: -1}} },
	} {
		w := good()
		spoil(&w)
		if _, err := w.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
