package web

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web/chart"
)

// causes tells which layer made the upstream calls.
func causes(total *metrics.Row) *table {
	t := &table{Caption: "Amplification by cause", Empty: "no upstream calls", Columns: []column{
		{Label: "cause", Title: "upstream_calls_by_cause: each inner record's first call under its cause, calls beyond the first under transport"},
		{Label: "calls", Num: true}, {Label: "an operation", Num: true, Title: "calls / operations; they add up to amplification"}, {Label: "share of calls"},
	}}
	for _, cause := range retrylens.Causes {
		n := total.UpstreamCallsByCause[string(cause)]
		if n == 0 {
			continue
		}
		each := format.Null
		if total.Operations > 0 {
			each = fmt.Sprintf("%.3f", float64(n)/float64(total.Operations))
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: string(cause)}, {Text: format.Grouped(n)}, {Text: each}, share(float64(n) / float64(max(1, total.UpstreamCalls))),
		}})
	}
	return t
}

var contributorFigures = []metricColumn{
	{"operations", "operations"}, {"error ratio", "error_ratio"}, {"attempt error ratio", "attempt_error_ratio"}, {"amplification", "amplification"},
	{"retry success", "retry_success_ratio"}, {"p50", "latency_ms{p50}"}, {"p99", "latency_ms{p99}"}, {"orphaned, USD", "orphaned_cost_usd"},
}

// contributors are the groups, ranked by how many more attempts failed in them than would
// have if they were like all.
func contributors(s *state, r *metrics.Report, total *metrics.Row) *table {
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b metrics.Row) int { return cmp.Compare(excess(&b, total), excess(&a, total)) })
	t := figureTable{groups: s.triageGroups(), figures: contributorFigures}
	t.more = []column{{Label: "share of failed attempts"}, {Label: "lift", Num: true, Title: "its share of failed attempts over its share of attempts"}, {Label: "top class"}}
	t.cells = func(r *metrics.Row) []cell { return contribution(s, r, total) }
	return t.make(s, rows, "Contributors, ranked")
}

// excess is how many more attempts failed than of as many attempts of all.
func excess(r, total *metrics.Row) float64 {
	return float64(r.FailedAttempts) - float64(total.FailedAttempts)*float64(r.Attempts)/float64(max(1, total.Attempts))
}

func contribution(s *state, r, total *metrics.Row) []cell {
	if total.FailedAttempts == 0 {
		return []cell{{Text: format.Null}, {Text: format.Null}, {}}
	}
	failed := float64(r.FailedAttempts) / float64(total.FailedAttempts)
	lift := format.Null
	if r.Attempts > 0 {
		lift = format.Times(failed / (float64(r.Attempts) / float64(max(1, total.Attempts))))
	}
	class := topClass(r)
	c := cell{Text: format.Safe(class)}
	if class != "" {
		c.Href = s.about("/operations", s.triageGroups(), r.Dims, "error_class", class)
	}
	return []cell{{Text: format.Percent(failed), Bar: chart.Bar(60, failed)}, {Text: lift}, c}
}
