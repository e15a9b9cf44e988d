package gauges_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/gauges"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// source answers from memory, by the reference fold.
type source struct {
	attempts []retrylens.Attempt
	err      error
	asked    int
}

func (s *source) Report(_ context.Context, q metrics.Query) (*metrics.Report, error) {
	s.asked++
	if s.err != nil {
		return nil, s.err
	}
	return metrics.Fold(s.attempts, q)
}

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func newGauges(t *testing.T, top int) (*gauges.Gauges, *source, *clock) {
	t.Helper()
	s, c := &source{attempts: histories.Generate(5, 3000)}, &clock{histories.Base.Add(30 * time.Minute)}
	g := gauges.New(gauges.Options{
		Source: s, Top: top, Now: c.now,
		Lag: func(context.Context) (time.Duration, error) { return 90 * time.Second, nil },
	})
	if err := g.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, s, c
}

// families are what a scrape finds.
func families(t *testing.T, g *gauges.Gauges) map[string][]*dto.Metric {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(g)
	got, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]*dto.Metric{}
	for _, f := range got {
		out[f.GetName()] = f.GetMetric()
	}
	return out
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// find returns the series with these labels, name=value.
func find(all []*dto.Metric, labels ...string) *dto.Metric {
	i := slices.IndexFunc(all, func(m *dto.Metric) bool {
		return !slices.ContainsFunc(labels, func(l string) bool {
			name, value, _ := strings.Cut(l, "=")
			return label(m, name) != value
		})
	})
	if i < 0 {
		return nil
	}
	return all[i]
}

// TestGaugesAreTheReportsFigures: every figure of every group of every window, under
// its own name; what is null is absent.
func TestGaugesAreTheReportsFigures(t *testing.T) {
	g, s, c := newGauges(t, 1000)
	got := families(t, g)
	compared := 0
	for _, w := range gauges.Windows {
		r, err := metrics.Fold(s.attempts, metrics.Query{
			From: c.Add(-w.Span), To: c.Time, AsOf: c.Time,
			GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			labels := []string{"window=" + w.Name, "tenant=" + row.Dims[0], "provider=" + row.Dims[1], "model=" + row.Dims[2]}
			for _, f := range metrics.Formulas {
				if f.Label != "" {
					continue
				}
				want, set := f.Value(&row).Float64()
				m := find(got["retrylens_"+f.Name], labels...)
				if (m != nil) != set || set && m.GetGauge().GetValue() != want {
					t.Errorf("%s%v: %v, want %v (set %t)", f.Name, labels, m, want, set)
				}
				compared++
			}
			compareSummary(t, find(got["retrylens_latency_seconds"], labels...), row)
			if m := find(got["retrylens_errors_by_class"], append(labels, "error_class=timeout")...); m.GetGauge().GetValue() != float64(row.ErrorsByClass["timeout"]) {
				t.Errorf("timeouts of %v: %v, want %d", labels, m, row.ErrorsByClass["timeout"])
			}
			if m := find(got["retrylens_orphaned_cost_usd_per_hour"], labels...); m.GetGauge().GetValue() != row.OrphanedCostUSD.Float64()/w.Span.Hours() {
				t.Errorf("orphaned cost of %v per hour: %v", labels, m)
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d figures were compared", compared)
	}
}

func compareSummary(t *testing.T, m *dto.Metric, row metrics.Row) {
	t.Helper()
	if (m != nil) != row.Latency.P50.Set {
		t.Errorf("latency of %v: %v", row.Dims, m)
	}
	for _, q := range m.GetSummary().GetQuantile() {
		want := map[float64]retrylens.Opt[int64]{0.5: row.Latency.P50, 0.9: row.Latency.P90, 0.99: row.Latency.P99}[q.GetQuantile()]
		if math.Abs(q.GetValue()*1000-float64(want.Value)) > 0.5+0.005*math.Abs(float64(want.Value)) {
			t.Errorf("p%v of %v is %v s, want %v ms", q.GetQuantile(), row.Dims, q.GetValue(), want)
		}
	}
}

// TestOtherIsComputedFromItsOperations: the series beyond the top are one, and all
// series together hold every operation.
func TestOtherIsComputedFromItsOperations(t *testing.T) {
	all, s, c := newGauges(t, 1000)
	few, _, _ := newGauges(t, 3)
	whole, top := families(t, all), families(t, few)
	sum := func(all []*dto.Metric) (n float64) {
		for _, m := range all {
			if label(m, "window") == "1h" {
				n += m.GetGauge().GetValue()
			}
		}
		return n
	}
	for _, name := range []string{"operations", "upstream_calls", "orphaned_tokens", "operations", "retries"} {
		if a, b := sum(whole["retrylens_"+name]), sum(top["retrylens_"+name]); a != b || a == 0 {
			t.Errorf("%s: %v in all, %v with other", name, a, b)
		}
	}
	r, err := metrics.Fold(s.attempts, metrics.Query{From: c.Add(-time.Hour), To: c.Time, AsOf: c.Time, GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel}})
	if err != nil {
		t.Fatal(err)
	}
	var rest []metrics.Row
	for _, row := range r.Rows {
		if find(top["retrylens_operations"], "window=1h", "tenant="+row.Dims[0], "provider="+row.Dims[1], "model="+row.Dims[2]) == nil {
			rest = append(rest, row)
		}
	}
	want := metrics.Merge(metrics.Key{}, rest...)
	labels := []string{"window=1h", "tenant=other", "provider=other", "model=other"}
	got := find(top["retrylens_amplification"], labels...)
	if got.GetGauge().GetValue() != want.Figures().Amplification.Value || len(rest) != len(r.Rows)-3 {
		t.Errorf("amplification of the %d others: %v, want %v", len(rest), got, want.Figures().Amplification)
	}
	compareSummary(t, find(top["retrylens_latency_seconds"], labels...), want)
}

// TestNobodyPassesForOther: a series that is called so is counted there.
func TestNobodyPassesForOther(t *testing.T) {
	a := retrylens.Attempt{Tenant: "other", Provider: "other", Model: "other", LogicalID: "x", Outcome: retrylens.OutcomeSuccess}
	b := retrylens.Attempt{Tenant: "t", Provider: "p", LogicalID: "y", Outcome: retrylens.OutcomeSuccess}
	now := histories.Base
	for _, at := range []*retrylens.Attempt{&a, &b} {
		at.StartedAt = now.Add(-10 * time.Second)
		at.Normalize()
	}
	g := gauges.New(gauges.Options{Source: &source{attempts: []retrylens.Attempt{a, b}}, Top: 1, Now: func() time.Time { return now }})
	if err := g.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := families(t, g)["retrylens_operations"]
	if len(got) != 2*len(gauges.Windows) || find(got, "tenant=t") == nil || find(got, "tenant=other") == nil {
		t.Errorf("%v", got)
	}
}

// TestStaleFiguresAreNotShown: a series that ended is gone with the next snapshot; when
// snapshots fail the figures go after some intervals, and the age tells.
func TestStaleFiguresAreNotShown(t *testing.T) {
	g, s, c := newGauges(t, 1000)
	if len(families(t, g)["retrylens_operations"]) == 0 {
		t.Fatal("nothing is shown")
	}
	s.err = errors.New("the store is away")
	c.Time = c.Add(110 * time.Second)
	if err := g.Refresh(t.Context()); err == nil {
		t.Error("a failed snapshot is no error")
	}
	if got := families(t, g); find(got["retrylens_operations"], "window=5m") == nil {
		t.Error("figures are gone after one failure")
	}
	c.Time = c.Add(20 * time.Minute)
	got := families(t, g)
	if len(got["retrylens_operations"]) > 0 || len(got["retrylens_records_missing"]) > 0 {
		t.Error("figures of 20 minutes ago are shown as if of now")
	}
	if age := find(got["retrylens_snapshot_age_seconds"], "window=5m"); age.GetGauge().GetValue() != 1310 {
		t.Errorf("age %v", age)
	}
	if n := got["retrylens_snapshot_failures_total"][0].GetCounter().GetValue(); n != 1 {
		t.Errorf("%v failures", n)
	}
	s.err, s.attempts = nil, nil
	if err := g.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(families(t, g)["retrylens_operations"]); n != 0 {
		t.Errorf("%d series of operations that there are not", n)
	}
}

// TestOnlyWhatIsDueIsAsked, so that the hour is not read every 15 s.
func TestOnlyWhatIsDueIsAsked(t *testing.T) {
	g, s, c := newGauges(t, 10)
	s.asked = 0
	for range 8 {
		c.Time = c.Add(15 * time.Second)
		if err := g.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != 8+8+2 {
		t.Errorf("%d reports in two minutes", s.asked)
	}
}

// TestPromtoolHasNoComplaint about names, types and help texts.
func TestPromtoolHasNoComplaint(t *testing.T) {
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install the package prometheus (as root: apt-get install prometheus)")
	}
	g, _, _ := newGauges(t, 5)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(g)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), "retrylens_amplification{") {
		t.Fatal("nothing to check")
	}
	cmd := exec.CommandContext(t.Context(), path, "check", "metrics")
	cmd.Stdin = bytes.NewReader(w.Body.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSeriesAreBounded: whatever the number of tenants.
func TestSeriesAreBounded(t *testing.T) {
	var attempts []retrylens.Attempt
	for i := range 500 {
		a := retrylens.Attempt{Tenant: fmt.Sprint("t", i), Provider: "p", LogicalID: "x", Outcome: retrylens.OutcomeSuccess, StartedAt: histories.Base.Add(-time.Second)}
		a.Normalize()
		attempts = append(attempts, a)
	}
	g := gauges.New(gauges.Options{Source: &source{attempts: attempts}, Top: 20, Now: func() time.Time { return histories.Base }})
	if err := g.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(families(t, g)["retrylens_operations"]); n != 21*len(gauges.Windows) {
		t.Errorf("%d series", n)
	}
}

// TestStatesOfTheDetector are shown, those that page first, no more than series are.
func TestStatesOfTheDetector(t *testing.T) {
	states := []gauges.State{}
	for i := range 50 {
		states = append(states, gauges.State{Tenant: fmt.Sprint("t", i), Provider: "p", Model: "m", State: "healthy"})
	}
	states = append(states, gauges.State{Tenant: "bad", Provider: "p", Model: "m", State: "masked_outage"}, gauges.State{Tenant: "bad", Provider: "p", Model: "m", State: "hidden_layer"})
	g := gauges.New(gauges.Options{Source: &source{}, Top: 5, Now: func() time.Time { return histories.Base }, States: func() []gauges.State { return states }})
	got := families(t, g)["retrylens_detector_state"]
	if len(got) != 10 {
		t.Errorf("%d states", len(got))
	}
	for _, state := range []string{"masked_outage", "hidden_layer"} {
		if m := find(got, "tenant=bad", "state="+state); m.GetGauge().GetValue() != 1 {
			t.Errorf("%s: %v", state, m)
		}
	}
}
