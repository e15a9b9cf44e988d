package sim_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/wire"
)

var update = flag.Bool("update", false, "write the golden hash anew")

var start = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

func simulate(t testing.TB, opt sim.Options) []retrylens.Attempt {
	t.Helper()
	if opt.Start.IsZero() {
		opt.Start = start
	}
	var got []retrylens.Attempt
	if err := sim.Run(t.Context(), opt, func(a *retrylens.Attempt) error { got = append(got, *a); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func ndjson(attempts []retrylens.Attempt) []byte {
	var b []byte
	for i := range attempts {
		b = append(attempts[i].AppendJSON(b), '\n')
	}
	return b
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	const golden = "testdata/seed7-3h.sha256"
	sum := sha256.Sum256(ndjson(simulate(t, sim.Options{Seed: 7, Duration: 3 * time.Hour})))
	got := hex.EncodeToString(sum[:]) + "\n"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("hash %swant %s(go test ./internal/sim -update, if the change is meant)", got, want)
	}
	other := sha256.Sum256(ndjson(simulate(t, sim.Options{Seed: 8, Duration: 3 * time.Hour})))
	if other == sum {
		t.Error("another seed gives the same")
	}
}

func TestEveryRecordIsValidAndInOrderOfItsEnd(t *testing.T) {
	attempts := simulate(t, sim.Options{Seed: 1, Duration: 6 * time.Hour})
	back, err := wire.DecodeAll(strings.NewReader(string(ndjson(attempts))))
	if err != nil || len(back) != len(attempts) {
		t.Fatalf("%d of %d read back, %v", len(back), len(attempts), err)
	}
	seq, last := map[string]int64{}, int64(0)
	for i, a := range back {
		if err := a.Validate(retrylens.Limits{Now: start.Add(7 * time.Hour)}); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if a.Revision > 0 {
			continue
		}
		if a.Seq.Value != seq[a.Emitter] {
			t.Fatalf("record %d: seq %d of %s, want %d", i, a.Seq.Value, a.Emitter, seq[a.Emitter])
		}
		seq[a.Emitter]++
		if a.EndUnixMS() < last-1 { // both ends are cut to the millisecond
			t.Fatalf("record %d ends before the one before it", i)
		}
		last = a.EndUnixMS()
	}
}

// figures is a simple fold: enough to see an incident, not the derived metrics.
type figures struct {
	operations, failed, attempts, retries, retrySuccesses int
	latency                                               []int64
}

func (f figures) errorRatio() float64    { return float64(f.failed) / float64(f.operations) }
func (f figures) amplification() float64 { return float64(f.attempts) / float64(f.operations) }
func (f figures) retrySuccess() float64  { return float64(f.retrySuccesses) / float64(f.retries) }

func (f figures) quantile(q float64) int64 {
	slices.Sort(f.latency)
	return f.latency[int(math.Ceil(q*float64(len(f.latency))))-1]
}

func fold(attempts []retrylens.Attempt, provider string, from, to time.Duration) figures {
	var f figures
	for _, a := range attempts {
		at := a.OperationStartedAt.Sub(start)
		if a.Revision > 0 || at < from || at >= to || provider != "" && a.Provider != provider {
			continue
		}
		f.attempts++
		success := a.Outcome == retrylens.OutcomeSuccess
		if a.Attempt > 0 {
			f.retries++
			if success {
				f.retrySuccesses++
			}
		}
		if !a.Final.Value {
			continue
		}
		f.operations++
		if success {
			f.latency = append(f.latency, a.EndUnixMS()-a.OperationStartedAt.UnixMilli())
		} else {
			f.failed++
		}
	}
	return f
}

func TestTheMaskedOutageIsMasked(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		attempts := simulate(t, sim.Options{Seed: seed})
		for _, provider := range []string{"openai", ""} {
			healthy := fold(attempts, provider, 0, 8*time.Hour)
			outage := fold(attempts, provider, 8*time.Hour, 16*time.Hour)
			after := fold(attempts, provider, 16*time.Hour, 24*time.Hour)
			t.Logf("seed %d %q: error ratio %.4f → %.4f → %.4f, amplification %.3f → %.3f → %.3f, retry success %.3f → %.3f, p50 %d → %d, p99 %d → %d ms",
				seed, provider, healthy.errorRatio(), outage.errorRatio(), after.errorRatio(), healthy.amplification(), outage.amplification(), after.amplification(),
				healthy.retrySuccess(), outage.retrySuccess(), healthy.quantile(.5), outage.quantile(.5), healthy.quantile(.99), outage.quantile(.99))
			want := 1.3
			if provider == "" {
				want = 1.2 // the other provider's operations are among them
			}
			if d := math.Abs(outage.errorRatio() - healthy.errorRatio()); d > 0.01 {
				t.Errorf("seed %d %q: the error ratio moves by %.4f: not masked", seed, provider, d)
			}
			if outage.amplification() < want || healthy.amplification() > 1.05 || after.amplification() > 1.05 {
				t.Errorf("seed %d %q: amplification %.3f → %.3f → %.3f", seed, provider, healthy.amplification(), outage.amplification(), after.amplification())
			}
			if outage.retrySuccess() > healthy.retrySuccess()-0.05 {
				t.Errorf("seed %d %q: retry success %.3f → %.3f", seed, provider, healthy.retrySuccess(), outage.retrySuccess())
			}
			if provider != "" && outage.quantile(.5) < 2*healthy.quantile(.5) {
				t.Errorf("seed %d %q: p50 %d → %d ms", seed, provider, healthy.quantile(.5), outage.quantile(.5))
			}
		}
		other := fold(attempts, "anthropic", 8*time.Hour, 16*time.Hour)
		if other.amplification() > 1.05 {
			t.Errorf("seed %d: the other provider's amplification is %.3f", seed, other.amplification())
		}
	}
}

func TestWithoutFaultsThereIsNoIncident(t *testing.T) {
	f := fold(simulate(t, sim.Options{Seed: 1, Duration: 6 * time.Hour, Faults: []sim.Fault{}}), "", 0, 6*time.Hour)
	if f.amplification() > 1.05 || math.Abs(float64(f.operations)-360*60) > 1000 {
		t.Errorf("amplification %.3f, %d operations", f.amplification(), f.operations)
	}
}

func TestUsageOfSomeTimeoutsIsLearnedLater(t *testing.T) {
	var timeouts, revised int
	first := map[string]retrylens.Attempt{}
	for _, a := range simulate(t, sim.Options{Seed: 1}) {
		key := a.LogicalID + string(rune('0'+a.Attempt))
		if a.Revision == 0 {
			first[key] = a
			if a.ErrorClass == retrylens.ClassTimeout {
				timeouts++
			}
			continue
		}
		revised++
		was := first[key]
		if was.ErrorClass != retrylens.ClassTimeout || was.PromptTokens.Set || was.UsageSource != retrylens.UsageUnknown || a.Seq != was.Seq {
			t.Errorf("revised: %s", was.AppendJSON(nil))
		}
		if !a.PromptTokens.Set || !a.CostUSD.Set || a.UsageSource != retrylens.UsageProvider || a.Final != was.Final {
			t.Errorf("revision: %s", a.AppendJSON(nil))
		}
	}
	if revised < timeouts/3 || revised > timeouts*2/3 || timeouts < 50 {
		t.Errorf("%d timeouts, %d revised", timeouts, revised)
	}
}

func TestATraceDecidesArrivalsTokensAndSpan(t *testing.T) {
	trace := make([]sim.Arrival, 6000)
	for i := range trace {
		trace[i] = sim.Arrival{At: time.Duration(i) * 100 * time.Millisecond, PromptTokens: int64(i), CompletionTokens: 10}
	}
	attempts := simulate(t, sim.Options{Seed: 1, Duration: time.Hour, OperationsPerMinute: 1, Trace: trace})
	for _, third := range []struct {
		from, to time.Duration
		incident bool
	}{{0, 200 * time.Second, false}, {200 * time.Second, 400 * time.Second, true}, {400 * time.Second, time.Hour, false}} {
		f := fold(attempts, "openai", third.from, third.to)
		if (f.amplification() > 1.2) != third.incident {
			t.Errorf("from %v: amplification %.3f", third.from, f.amplification())
		}
	}
	if f := fold(attempts, "", 0, time.Hour); f.operations != len(trace) {
		t.Errorf("%d operations", f.operations)
	}
	for _, a := range attempts {
		if a.PromptTokens.Set && !a.OperationStartedAt.Equal(start.Add(trace[a.PromptTokens.Value].At)) {
			t.Fatalf("row %d starts at %v", a.PromptTokens.Value, a.OperationStartedAt)
		}
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
	for field, opt := range map[string]sim.Options{
		"Start":               {},
		"Duration":            {Start: start, Duration: -1},
		"OperationsPerMinute": {Start: start, OperationsPerMinute: math.NaN()},
		"Faults[0].Provider":  {Start: start, Faults: []sim.Fault{{Provider: "nobody"}}},
		"Faults[0]: From":     {Start: start, Faults: []sim.Fault{{Provider: "openai", From: 2, To: 1}}},
		"Faults[0]: a rate":   {Start: start, Faults: []sim.Fault{{Provider: "openai", HangRate: 2}}},
		"LatencyFactor":       {Start: start, Faults: []sim.Fault{{Provider: "openai", LatencyFactor: math.Inf(1)}}},
	} {
		if err := sim.Run(t.Context(), opt, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// BenchmarkDefaultDay makes 24 hours of 60 operations a minute and writes them out.
func BenchmarkDefaultDay(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		n := 0
		err := sim.Run(b.Context(), sim.Options{Seed: 1, Start: start}, func(a *retrylens.Attempt) error {
			buf = a.AppendJSON(buf[:0])
			n++
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n), "records")
	}
}
