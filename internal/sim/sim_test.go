package sim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/wire"
)

var update = flag.Bool("update", false, "write the golden hashes anew")

// TestTheSameSeedGivesTheSameBytes: every scenario, held to a hash.
func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	const golden = "testdata/seed7-1h.sha256"
	var got strings.Builder
	for _, s := range sim.Scenarios() {
		o := sim.Options{Scenario: s.Name, Seed: 7, Duration: time.Hour}
		first := ndjson(play(t, o).attempts)
		sum := sha256.Sum256(first)
		fmt.Fprintf(&got, "%s  %s\n", hex.EncodeToString(sum[:]), s.Name)
		if !bytes.Equal(first, ndjson(play(t, o).attempts)) {
			t.Errorf("%s: the second run gives other bytes", s.Name)
		}
		o.Seed = 8
		if bytes.Equal(first, ndjson(play(t, o).attempts)) {
			t.Errorf("%s: another seed gives the same bytes", s.Name)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("hashes\n%swant\n%s(go test ./internal/sim -update, if the change is meant)", got.String(), want)
	}
}

func TestEveryRecordOfEveryScenarioIsValid(t *testing.T) {
	for _, s := range sim.Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			for _, seed := range seeds {
				p := play(t, sim.Options{Scenario: s.Name, Seed: seed, Size: 1 + int(seed)*2%sim.Sizes, Duration: 75 * time.Minute})
				back, err := wire.DecodeAll(bytes.NewReader(ndjson(p.attempts)))
				if err != nil || len(back) != len(p.attempts) || uint64(len(back)) != p.stats.Records {
					t.Fatalf("seed %d: %d of %d read back, %d counted, %v", seed, len(back), len(p.attempts), p.stats.Records, err)
				}
				for i := range back {
					if err := back[i].Validate(retrylens.Limits{Now: p.end}); err != nil && back[i].StartedAt.Before(p.end) {
						t.Fatalf("seed %d, record %d: %v: %s", seed, i, err, back[i].AppendJSON(nil))
					}
				}
				checkEmitters(t, back, p)
				checkLogic(t, p)
			}
		})
	}
}

// checkEmitters: numbers run from 0 in each, revisions repeat them, and what is
// missing is what was dropped.
func checkEmitters(t *testing.T, attempts []retrylens.Attempt, p *played) {
	t.Helper()
	seen, highest := map[string]map[int64]bool{}, map[string]int64{}
	for i := range attempts {
		a := &attempts[i]
		if seen[a.Emitter] == nil {
			seen[a.Emitter] = map[int64]bool{}
		}
		if seen[a.Emitter][a.Seq.Value] && a.Revision == 0 {
			t.Fatalf("%s: seq %d twice", a.Emitter, a.Seq.Value)
		}
		seen[a.Emitter][a.Seq.Value] = true
		highest[a.Emitter] = max(highest[a.Emitter], a.Seq.Value)
	}
	for emitter, h := range highest {
		missing := uint64(h) + 1 - uint64(len(seen[emitter]))
		if missing != p.stats.Dropped[emitter] {
			t.Errorf("%s: %d missing, %d dropped", emitter, missing, p.stats.Dropped[emitter])
		}
	}
}

// checkLogic: what holds of every caller that has this policy engine.
func checkLogic(t *testing.T, p *played) {
	t.Helper()
	all := p.fold("", time.Time{}, time.Time{})
	if all.Open+all.Lost > all.Operations/50 && len(p.stats.Dropped) == 0 {
		t.Errorf("%d of %d operations have no end", all.Open+all.Lost, all.Operations)
	}
	if all.UnkeyedAfterSend > 0 {
		t.Errorf("%d unkeyed retries of what may have been sent", all.UnkeyedAfterSend)
	}
	if all.RetryAfterViolations > 0 {
		t.Errorf("%d retries came before the wait that was asked for", all.RetryAfterViolations)
	}
	if all.Operations != p.stats.Operations && len(p.stats.Dropped) == 0 {
		t.Errorf("%d operations in the records, %d were begun", all.Operations, p.stats.Operations)
	}
}

func TestErrorOfEmitAndCancelEndTheRun(t *testing.T) {
	full := errors.New("full")
	n := 0
	err := sim.Run(t.Context(), sim.Options{Start: start}, func(*retrylens.Attempt) error {
		if n++; n == 10 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 10 {
		t.Errorf("%v after %d", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := sim.Run(ctx, sim.Options{Start: start}, func(*retrylens.Attempt) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOptionsAreNamedWhenBad(t *testing.T) {
	for field, o := range map[string]sim.Options{
		"Start":                   {},
		"Duration":                {Start: start, Duration: -1},
		"OperationsPerMinute":     {Start: start, OperationsPerMinute: math.NaN()},
		"Size":                    {Start: start, Size: 6},
		"Options.At":              {Start: start, At: -1},
		"Options.At must be with": {Start: start, At: 25 * time.Hour},
		`no scenario "nothing"`:   {Start: start, Scenario: "nothing"},
		"Options.Series":          {Start: start, Incidents: []sim.Incident{{Scenario: "outage"}}},
		"Incidents[0].Series":     {Start: start, Series: 2, Incidents: []sim.Incident{{Scenario: "outage", Series: 2}}},
		"a fleet of its own":      {Start: start, Series: 2, Incidents: []sim.Incident{{Scenario: "metastable"}}},
		"Incidents[0] is out":     {Start: start, Series: 2, Incidents: []sim.Incident{{Scenario: "outage", Size: 9}}},
		`there is no scenario ""`: {Start: start, Series: 2, Incidents: []sim.Incident{{}}},
	} {
		if err := sim.Run(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestATraceDecidesArrivalsTokensAndSpan(t *testing.T) {
	trace := make([]sim.Arrival, 6000)
	for i := range trace {
		trace[i] = sim.Arrival{At: time.Duration(i) * 100 * time.Millisecond, PromptTokens: int64(i), CompletionTokens: 10}
	}
	p := play(t, sim.Options{Seed: 1, Duration: time.Hour, OperationsPerMinute: 1, Trace: trace})
	if p.stats.Operations != uint64(len(trace)) {
		t.Errorf("%d operations", p.stats.Operations)
	}
	for _, a := range p.attempts {
		if a.PromptTokens.Set && !a.OperationStartedAt.Equal(start.Add(trace[a.PromptTokens.Value].At)) {
			t.Fatalf("row %d starts at %v", a.PromptTokens.Value, a.OperationStartedAt)
		}
	}
	before, during, _ := p.phases("openai")
	if truth := p.sim.Truth[0]; !truth.From.Equal(start.Add(trace[len(trace)-1].At / 3)) {
		t.Errorf("the outage begins at %v", truth.From)
	}
	if before.Amplification.Value > 1.1 || during.Amplification.Value < 1.2 {
		t.Errorf("amplification %.3f → %.3f", before.Amplification.Value, during.Amplification.Value)
	}
}

func TestTheRateIsTheOneAskedFor(t *testing.T) {
	for _, perMinute := range []float64{1, 30, 600} {
		p := play(t, sim.Options{Scenario: "healthy", Seed: 4, Duration: 4 * time.Hour, OperationsPerMinute: perMinute})
		want := perMinute * 240
		if d := math.Abs(float64(p.stats.Operations) - want); d > 4*math.Sqrt(want) {
			t.Errorf("%d operations, want %.0f", p.stats.Operations, want)
		}
	}
}

// BenchmarkDefaultDay makes 24 hours of 60 operations a minute and writes them out.
func BenchmarkDefaultDay(b *testing.B) {
	benchmark(b, sim.Options{Seed: 1, Start: start}, true)
}

// BenchmarkSeries is a week of 20 series with an incident a day each: the ground of a
// detector's benchmark.
func BenchmarkSeries(b *testing.B) {
	o := sim.Options{Seed: 1, Start: start, Duration: 7 * 24 * time.Hour, Series: 20, OperationsPerMinute: 100}
	kinds := []string{"flaky", "masked_outage", "outage", "masked_slow_onset", "slow_model", "traffic_spike", "short_blip"}
	for i := range 140 {
		o.Incidents = append(o.Incidents, sim.Incident{
			Scenario: kinds[i%len(kinds)], Series: i % 20, At: time.Duration(i/20)*24*time.Hour + time.Duration(i%20)*time.Hour, For: 40 * time.Minute, Size: 1 + i%sim.Sizes,
		})
	}
	benchmark(b, o, false)
}

func benchmark(b *testing.B, o sim.Options, write bool) {
	b.ReportAllocs()
	s, err := sim.Build(o)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	operations := uint64(0)
	for b.Loop() {
		stats, err := s.World.Run(b.Context(), func(a *retrylens.Attempt) error {
			if write {
				buf = a.AppendJSON(buf[:0])
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		operations += stats.Operations
	}
	b.ReportMetric(float64(operations)/b.Elapsed().Seconds(), "operations/s")
}
