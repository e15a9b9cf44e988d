package app

import (
	"strconv"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// TestSamplesOfAReportAreThoseOfAReplay: live and history see the same at every moment.
func TestSamplesOfAReportAreThoseOfAReplay(t *testing.T) {
	for seed := range uint64(10) {
		attempts := histories.Generate(seed, 400)
		at := histories.Base.Add(time.Duration(seed) * 17 * detect.Interval)
		w := replay.NewWindow(at)
		var known []retrylens.Attempt
		for i := range attempts {
			if attempts[i].EndUnixMS() <= at.UnixMilli() {
				known = append(known, attempts[i])
				w.Add(&attempts[i])
			}
		}
		report, err := metrics.Fold(known, detectQuery(at))
		if err != nil {
			t.Fatal(err)
		}
		live := map[detect.Key]detect.Sample{}
		for _, s := range samplesOf(report) {
			live[s.Key] = s
		}
		w.Samples(func(s *detect.Sample) {
			got := live[s.Key]
			if s.Window.Operations > 0 && (got.Window != s.Window || got.Recent != s.Recent || got.Slots != s.Slots || len(got.ErrorsByClass) != len(s.ErrorsByClass)) {
				t.Errorf("seed %d, %v:\n got %+v\nwant %+v", seed, s.Key, got, *s)
			}
		})
	}
}

func TestVerdictsAnswerRules(t *testing.T) {
	v := &verdicts{}
	series := map[metrics.Dimension]string{metrics.DimTenant: "t", metrics.DimProvider: "p", metrics.DimModel: "m"}
	k := detect.Key{Tenant: "t", Provider: "p", Model: "m"}
	if got := v.State(series, "masked_outage"); got != expr.Unknown {
		t.Errorf("before the first round: %v", got)
	}
	v.set([]detect.Evaluation{
		{Key: k, State: detect.MaskedOutage, Judged: true, Signs: []detect.Sign{detect.SignHiddenLayer}},
		{Key: detect.All, State: detect.Healthy, Judged: false},
	})
	for name, want := range map[string]expr.Truth{"masked_outage": expr.True, "hidden_layer": expr.True, "outage": expr.False} {
		if got := v.State(series, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := v.State(nil, "healthy"); got != expr.Unknown {
		t.Errorf("not judged: %v", got)
	}
}

// BenchmarkSamplesOf is what a live round costs before it is judged: 2,000 series with
// operations in each of 20 intervals.
func BenchmarkSamplesOf(b *testing.B) {
	at := histories.Base
	r := &metrics.Report{To: at}
	for i := range 2000 {
		for slot := range detect.SpanSlots {
			row := metrics.Row{Key: metrics.Key{Dims: []string{"t", "p", strconv.Itoa(i)}, Bucket: at.Add(-time.Duration(slot+1) * detect.Interval)}, Samples: &metrics.Samples{}}
			row.Operations, row.Succeeded, row.Attempts, row.UpstreamCalls = 4, 4, 4, 4
			row.AttemptsByPosition, row.SuccessesByPosition = map[string]uint64{"0": 4}, map[string]uint64{"0": 4}
			for n := range int64(4) {
				row.Samples.Latency.Add(1000 + 97*n + int64(slot))
			}
			r.Rows = append(r.Rows, row)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := samplesOf(r); len(got) != 2001 {
			b.Fatal(len(got))
		}
	}
}
