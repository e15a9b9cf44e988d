package replay_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

var bySeries = []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel}

// TestWindowIsTheReferenceFold: at every moment the window says what the reference says of
// the records that have ended by then, whatever their order, duplicates included.
func TestWindowIsTheReferenceFold(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			attempts := histories.Generate(seed, 400)
			moments := 0
			f := feed(t, replay.Options{Hold: 6 * time.Hour, OnMoment: func(w *replay.Window) error {
				if r.IntN(20) == 0 {
					moments++
					compare(t, w, attempts)
				}
				return nil
			}})
			for i := range attempts {
				add(t, f, &attempts[i])
			}
			if err := f.Close(); err != nil || f.Late() != 0 || moments < 10 {
				t.Errorf("%v, %d late, %d moments", err, f.Late(), moments)
			}
		})
	}
}

// TestOperationsMoveBetweenSeries: a late first record takes an operation, and its latency,
// to another series.
func TestOperationsMoveBetweenSeries(t *testing.T) {
	base := histories.Base
	record := func(attempt int32, provider string, at time.Duration) retrylens.Attempt {
		a := retrylens.Attempt{
			Tenant: "t", LogicalID: "op", OperationStartedAt: base, Attempt: attempt, Provider: provider, StartedAt: base.Add(at),
			DurationMS: retrylens.Some[int64](2000), Outcome: retrylens.OutcomeSuccess,
		}
		a.Normalize()
		return a
	}
	second, first := record(1, "anthropic", 5*time.Second), record(0, "openai", 0)
	w := replay.NewWindow(base.Add(15 * time.Second))
	for _, a := range []*retrylens.Attempt{&second, &first, &second} {
		w.Add(a)
	}
	compare(t, w, []retrylens.Attempt{first, second})
	operations := map[string]int64{}
	w.Samples(func(s *detect.Sample) { operations[s.Key.Provider] = s.Window.Operations })
	if want := map[string]int64{"*": 1, "openai": 1, "anthropic": 0}; !maps.Equal(operations, want) {
		t.Errorf("%v, want %v", operations, want)
	}
}

// TestSeriesThatEndedAreDropped: a history in which models come and go takes the memory of
// those that are there.
func TestSeriesThatEndedAreDropped(t *testing.T) {
	most, samples := 0, 0
	f := feed(t, replay.Options{Hold: time.Minute, OnMoment: func(w *replay.Window) error {
		samples = 0
		w.Samples(func(*detect.Sample) { samples++ })
		most = max(most, samples)
		return nil
	}})
	for i := range 3000 { // a model a minute
		at := histories.Base.Add(time.Duration(i) * time.Minute)
		a := retrylens.Attempt{
			Tenant: "t", LogicalID: fmt.Sprint(i), OperationStartedAt: at, Provider: "p", Model: fmt.Sprint("m", i), StartedAt: at,
			DurationMS: retrylens.Some[int64](2000), Outcome: retrylens.OutcomeSuccess,
		}
		a.Normalize()
		add(t, f, &a)
	}
	if err := f.Close(); err != nil || most > 130 || most < 10 {
		t.Errorf("%v: %d series at once, want those of two hours at most", err, most)
	}
}

func feed(t *testing.T, o replay.Options) *replay.Feed {
	t.Helper()
	f, err := replay.NewFeed(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func add(t *testing.T, f *replay.Feed, a *retrylens.Attempt) {
	t.Helper()
	if err := f.Add(a); err != nil {
		t.Fatal(err)
	}
}

// compare holds every sample to reports of what had ended.
func compare(t *testing.T, w *replay.Window, attempts []retrylens.Attempt) {
	t.Helper()
	at := w.At()
	var ended []retrylens.Attempt
	for i := range attempts {
		if attempts[i].EndUnixMS() <= at.UnixMilli() {
			ended = append(ended, attempts[i])
		}
	}
	got := map[detect.Key]detect.Sample{}
	w.Samples(func(s *detect.Sample) {
		if s.Window.Operations > 0 {
			got[s.Key] = *s
		}
	})
	want := map[detect.Key]bool{}
	for _, groups := range [][]metrics.Dimension{nil, bySeries} {
		for _, row := range report(t, ended, metrics.Query{From: at.Add(-detect.Span), To: at, AsOf: at, GroupBy: groups}).Rows {
			if row.Operations == 0 {
				continue
			}
			k := keyOf(row)
			s := got[k]
			want[k] = true
			sameView(t, fmt.Sprint(at, k, " window"), s.Window, row)
			if !maps.Equal(s.ErrorsByClass, classes(row)) {
				t.Errorf("%s %v: classes %v, want %v", at, k, s.ErrorsByClass, classes(row))
			}
		}
		for _, row := range report(t, ended, metrics.Query{From: at.Add(-detect.Recent), To: at, AsOf: at, GroupBy: groups}).Rows {
			if s := got[keyOf(row)]; row.Operations > 0 {
				sameView(t, fmt.Sprint(at, keyOf(row), " recent"), s.Recent, row)
			}
		}
		for _, row := range report(t, ended, metrics.Query{From: at.Add(-detect.Span), To: at, AsOf: at, GroupBy: groups, Bucket: detect.Interval}).Rows {
			i := int(row.Bucket.Sub(at.Add(-detect.Span)) / detect.Interval)
			if s := got[keyOf(row)]; row.Operations > 0 && s.Slots[i] != detect.CountsOf(&row.Counters) {
				t.Errorf("%s %v slot %d: %+v, want %+v", at, keyOf(row), i, s.Slots[i], detect.CountsOf(&row.Counters))
			}
		}
	}
	if len(want) != len(got) {
		keys := slices.SortedFunc(maps.Keys(got), detect.Key.Compare)
		t.Errorf("%s: series %v, want %d", at, keys, len(want))
	}
}

func report(t *testing.T, attempts []retrylens.Attempt, q metrics.Query) *metrics.Report {
	t.Helper()
	r, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func keyOf(row metrics.Row) detect.Key {
	if len(row.Dims) == 0 {
		return detect.All
	}
	return detect.Key{Tenant: row.Dims[0], Provider: row.Dims[1], Model: row.Dims[2]}
}

func sameView(t *testing.T, what string, got detect.View, row metrics.Row) {
	t.Helper()
	want := detect.View{Counts: detect.CountsOf(&row.Counters)}
	n := int64(row.Samples.Latency.Count())
	want.SetLatencies(n, func(rank int64) int64 {
		ms, _ := row.Samples.Latency.Quantile((float64(rank) - 0.5) / float64(n))
		return sketched(ms)
	}, answers(row.Samples))
	if n > 0 && (want.P50MS != sketched(row.Latency.P50.Value) || want.P99MS != sketched(row.Latency.P99.Value)) {
		t.Errorf("%s: %+v are not the report's %+v", what, want.Latencies, row.Latency)
	}
	if got != want {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func answers(s *metrics.Samples) (sum int64) {
	s.Latency.Each(func(index uint16, n uint64) { sum += int64(n) * max(0, metrics.SketchValue(index)) })
	return sum - s.RetryTax.Sum()
}

// sketched is a latency as the window keeps it: a negative one as 0.
func sketched(ms int64) int64 {
	return metrics.SketchValue(metrics.SketchIndex(uint64(max(ms, 0))))
}

func classes(row metrics.Row) map[string]int64 {
	out := map[string]int64{}
	for class, n := range row.ErrorsByClass {
		out[class] = int64(n)
	}
	return out
}

// TestFeedOrder: what is out of order by less than Hold changes nothing; what comes later
// counts from then on and is told.
func TestFeedOrder(t *testing.T) {
	attempts := histories.Generate(7, 600)
	slices.SortFunc(attempts, func(a, b retrylens.Attempt) int {
		return cmp.Or(cmp.Compare(a.EndUnixMS(), b.EndUnixMS()), cmp.Compare(a.LogicalID, b.LogicalID), cmp.Compare(a.Attempt, b.Attempt))
	})
	seen := func(attempts []retrylens.Attempt, hold time.Duration) (out []detect.Sample, late int64) {
		f := feed(t, replay.Options{Hold: hold, OnMoment: func(w *replay.Window) error {
			w.Samples(func(s *detect.Sample) {
				if s.Key == detect.All && s.Window.Operations > 0 {
					out = append(out, *s)
				}
			})
			return nil
		}})
		for i := range attempts {
			add(t, f, &attempts[i])
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return out, f.Late()
	}
	sorted, late := seen(attempts, time.Minute)
	if late != 0 {
		t.Errorf("%d late in order", late)
	}
	shuffled := slices.Clone(attempts)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	again, late := seen(shuffled, 12*time.Hour)
	if late != 0 || !slices.EqualFunc(sorted, again, func(a, b detect.Sample) bool {
		return a.At.Equal(b.At) && a.Window == b.Window && a.Recent == b.Recent && a.Slots == b.Slots
	}) {
		t.Errorf("another order gives other samples (%d late)", late)
	}
	if _, late = seen(shuffled, time.Minute); late == 0 {
		t.Error("none late of a shuffled history with a hold of a minute")
	}
}

func TestFeedOptions(t *testing.T) {
	if _, err := replay.NewFeed(replay.Options{}); err == nil {
		t.Error("no OnMoment is no error")
	}
	if _, err := replay.NewFeed(replay.Options{Hold: -1, OnMoment: func(*replay.Window) error { return nil }}); err == nil {
		t.Error("a negative hold is no error")
	}
}

func BenchmarkReplay(b *testing.B) {
	attempts := histories.Generate(1, 20_000)
	slices.SortFunc(attempts, func(a, b retrylens.Attempt) int { return cmp.Compare(a.EndUnixMS(), b.EndUnixMS()) })
	b.ReportAllocs()
	for b.Loop() {
		f, err := replay.NewFeed(replay.Options{OnMoment: func(w *replay.Window) error { w.Samples(func(*detect.Sample) {}); return nil }})
		if err != nil {
			b.Fatal(err)
		}
		for i := range attempts {
			if err := f.Add(&attempts[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(attempts)), "ns/record")
}
