package sim_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/sim"
)

// TestTheTruthHoldsAtEverySize: the state that is claimed is the one that the figures
// have by docs/metrics.md, however bad or mild it is.
func TestTheTruthHoldsAtEverySize(t *testing.T) {
	for _, s := range sim.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= sim.Sizes; size++ {
				p := play(t, sim.Options{Scenario: s.Name, Seed: 30 + uint64(size), Size: size, Duration: 90 * time.Minute, OperationsPerMinute: 100})
				for _, truth := range p.sim.Truth {
					if truth.Size != size || truth.Scenario != s.Name || truth.From.Before(start) || truth.To.After(p.end) {
						t.Errorf("truth %v", truth)
					}
					to := truth.To
					if to.Sub(truth.From) < time.Minute { // no detector's window is so short
						to = truth.From.Add(time.Hour)
					}
					f := p.fold(truth.Provider, truth.From, to)
					if bad := states[truth.State](f); f.Operations > 0 && bad != "" {
						t.Errorf("%v: %s", truth, bad)
					}
				}
			}
		})
	}
}

// states by their figures.
var states = map[sim.State]func(figures) string{
	sim.Healthy: func(f figures) string {
		return strings.Join(wrong(amplification("", f, 0.99, 1.03+2/float64(f.Operations)), errorRatio("", f, 0, 0.01)), "; ")
	},
	sim.Flaky: func(f figures) string {
		return strings.Join(wrong(amplification("", f, 1.01, 1.13), errorRatio("", f, 0, 0.006),
			must(f.RetrySuccessRatio.Value > 0.88, "retry_success_ratio %.3f", f.RetrySuccessRatio.Value)), "; ")
	},
	sim.MaskedOutage: func(f figures) string {
		return strings.Join(wrong(amplification("", f, 1.1, 2), errorRatio("", f, 0, 0.025)), "; ")
	},
	sim.Outage: func(f figures) string { return errorRatio("", f, 0.015, 1) },
	sim.Recovering: func(f figures) string {
		return strings.Join(wrong(errorRatio("", f, 0, 0.7), must(f.AttemptErrorRatio.Value > 0.05, "attempt_error_ratio %.3f", f.AttemptErrorRatio.Value)), "; ")
	},
}

// TestEveryScenarioPlaysATraceOfOneRow: no span, no rate.
func TestEveryScenarioPlaysATraceOfOneRow(t *testing.T) {
	for _, s := range sim.Scenarios() {
		p := play(t, sim.Options{Scenario: s.Name, Trace: []sim.Arrival{{PromptTokens: 1, CompletionTokens: 1}}})
		if p.stats.Operations != 1 || len(p.attempts) == 0 && len(p.stats.Dropped) == 0 {
			t.Errorf("%s: %+v", s.Name, p.stats)
		}
	}
}

func TestTruthIsWrittenAsPeopleAndProgramsReadIt(t *testing.T) {
	s, err := sim.Build(sim.Options{Scenario: "recovery", Start: start, Duration: 6 * time.Hour, At: time.Hour, For: 10 * time.Minute, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s.Truth[1])
	want := `{"scenario":"recovery","state":"recovering","provider":"openai","from":"2026-11-28T01:10:00Z","to":"2026-11-28T01:20:00Z","size":2}`
	if err != nil || string(b) != want || len(s.Truth) != 2 {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	if line := s.Truth[0].String(); line != "recovery of openai from 2026-11-28T01:00:00Z to 2026-11-28T01:10:00Z, size 2: outage" {
		t.Error(line)
	}
}
