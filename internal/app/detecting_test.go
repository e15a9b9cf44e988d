package app

import (
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
