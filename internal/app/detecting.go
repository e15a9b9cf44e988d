package app

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/metrics"
)

// detectQuery asks for what the detector judges at a moment, a whole multiple of
// detect.Interval: the operations of detect.Span by series and interval, as of then.
func detectQuery(at time.Time) metrics.Query {
	return metrics.Query{
		From: at.Add(-detect.Span), To: at, AsOf: at, Bucket: detect.Interval,
		GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel},
	}
}

// samplesOf makes the samples of a moment from the answer to detectQuery: one of all, and
// one of every series. Quantiles are those of the samples that rows keep; of rows without
// them there are none.
func samplesOf(r *metrics.Report) []detect.Sample {
	bySeries := map[detect.Key][]metrics.Row{}
	for _, row := range r.Rows {
		k := keyOf(&row)
		bySeries[k] = append(bySeries[k], row)
	}
	out := []detect.Sample{sampleOf(detect.All, r.To, r.Rows)}
	for k, rows := range bySeries {
		out = append(out, sampleOf(k, r.To, rows))
	}
	return out
}

func sampleOf(k detect.Key, at time.Time, rows []metrics.Row) detect.Sample {
	s := detect.Sample{Key: k, At: at}
	var window, recent latencies
	for i := range rows {
		row := &rows[i]
		slot := int(row.Bucket.Sub(at.Add(-detect.Span)) / detect.Interval)
		if slot < 0 || slot >= detect.SpanSlots {
			continue
		}
		counts := detect.CountsOf(&row.Counters)
		s.Slots[slot].Add(&counts, 1)
		s.Window.Add(&counts, 1)
		window.add(row)
		if slot >= detect.SpanSlots-detect.RecentSlots {
			s.Recent.Add(&counts, 1)
			recent.add(row)
		}
		for class, n := range row.ErrorsByClass {
			if s.ErrorsByClass == nil {
				s.ErrorsByClass = map[string]int64{}
			}
			s.ErrorsByClass[class] += int64(n) //nolint:gosec // a count of five minutes
		}
	}
	window.fill(&s.Window)
	recent.fill(&s.Recent)
	return s
}

// latencies of several rows.
type latencies struct {
	sketch  metrics.Sketch
	answers int64 // ms: their sum less that of retry taxes
	unknown bool  // a row with operations keeps none
}

func (l *latencies) add(row *metrics.Row) {
	switch {
	case row.Samples != nil:
		l.sketch.Merge(&row.Samples.Latency)
		l.answers += row.Samples.Latency.Sum() - row.Samples.RetryTax.Sum()
	case row.Operations > 0:
		l.unknown = true
	}
}

func (l *latencies) fill(v *detect.View) {
	if l.unknown {
		return
	}
	type bucket struct{ ms, n int64 }
	var sorted []bucket
	l.sketch.Each(func(index uint16, n uint64) {
		sorted = append(sorted, bucket{metrics.SketchValue(index), int64(n)}) //nolint:gosec // a count of five minutes
	})
	slices.SortFunc(sorted, func(a, b bucket) int { return cmp.Compare(a.ms, b.ms) })
	v.SetLatencies(int64(l.sketch.Count()), func(rank int64) int64 { //nolint:gosec // a count of five minutes
		i := 0
		for rank -= sorted[0].n; rank > 0; rank -= sorted[i].n {
			i++
		}
		return max(0, sorted[i].ms) // clocks that disagree make it negative
	}, l.answers)
}

// verdicts are the latest evaluations, for the conditions of alert rules. It is safe for
// concurrent use.
type verdicts struct {
	mu     sync.Mutex
	latest map[detect.Key]detect.Evaluation
	sorted []detect.Evaluation // the same, in order
}

func (v *verdicts) set(evaluations []detect.Evaluation) {
	latest := make(map[detect.Key]detect.Evaluation, len(evaluations))
	for _, e := range evaluations {
		latest[e.Key] = e
	}
	v.mu.Lock()
	v.latest, v.sorted = latest, evaluations
	v.mu.Unlock()
}

// State implements alerts.Verdicts: names of states, and of signs. What is not judged is
// not known.
func (v *verdicts) State(series map[metrics.Dimension]string, name string) expr.Truth {
	k := detect.All
	if len(series) > 0 {
		k = detect.Key{Tenant: series[metrics.DimTenant], Provider: series[metrics.DimProvider], Model: series[metrics.DimModel]}
	}
	v.mu.Lock()
	e, ok := v.latest[k]
	v.mu.Unlock()
	switch {
	case !ok || !e.Judged && !e.State.Pages():
		return expr.Unknown
	case e.Is(name):
		return expr.True
	}
	return expr.False
}
