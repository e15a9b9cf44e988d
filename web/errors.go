package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web/chart"
)

// errorsBody is what failed, where, and what else is true of it.
type errorsBody struct {
	Classes   *table
	Honoured  *table
	Positions *table
	Differs   *table
	Empty     bool
	Wider     []navLink
	Culprit   string
	Trust     trust
}

// differing are the dimensions in which a failing set is compared with all, by the report
// that tells of them: few reports, each with few groups.
var differing = [][]metrics.Dimension{
	{metrics.DimProvider, metrics.DimModel}, {metrics.DimService, metrics.DimEnvironment, metrics.DimOperation}, {metrics.DimTenant},
}

func (u *UI) errors(ctx context.Context, s *state) (any, error) {
	q := s.query
	q.CountersOnly, q.Needs = true, s.needs(errorsNeeds)
	q.GroupBy, q.Bucket = s.homeGroups("errors"), api.NiceBucket(q.To.Sub(q.From))
	var buckets *metrics.Report
	parts := make([]*metrics.Report, len(differing))
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { buckets, err = u.report(gctx, q); return err })
	for i, d := range differing {
		if slices.Equal(d, q.GroupBy) { // the buckets tell it too
			continue
		}
		by := s.query
		by.GroupBy, by.Bucket, by.CountersOnly, by.Needs = d, 0, true, partsNeeds
		g.Go(func() (err error) { parts[i], err = u.report(gctx, by); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := range parts {
		if parts[i] == nil {
			parts[i] = buckets
		}
	}
	groups := classGroups(buckets.Rows)
	var total metrics.Row
	for i := range groups {
		total.Add(&groups[i].Counters)
	}
	b := &errorsBody{
		Classes: classTable(s, q, groups), Honoured: honouredTable(s, q.GroupBy, groups), Positions: positionTable(&total), Differs: differTable(s, parts),
		Empty: total.Operations == 0, Wider: wider(s), Trust: trustOf(counters(buckets)),
	}
	if b.Empty {
		b.Culprit = u.culprit(ctx, s)
	}
	return b, nil
}

// classGroup is a group over all buckets, with the first bucket of each class.
type classGroup struct {
	metrics.Row
	first map[string]time.Time
}

// classGroups sums the buckets of each group; rows are sorted by group, then bucket.
func classGroups(rows []metrics.Row) []classGroup {
	var out []classGroup
	for i := range rows {
		r := &rows[i]
		if len(out) == 0 || !slices.Equal(out[len(out)-1].Dims, r.Dims) {
			out = append(out, classGroup{Row: metrics.Row{Key: metrics.Key{Dims: r.Dims}}, first: map[string]time.Time{}})
		}
		g := &out[len(out)-1]
		g.Add(&r.Counters)
		for class, n := range r.ErrorsByClass {
			if _, seen := g.first[class]; !seen && n > 0 {
				g.first[class] = r.Bucket
			}
		}
	}
	return out
}

type classLine struct {
	g     *classGroup
	class string
	n     uint64
}

func classTable(s *state, q metrics.Query, groups []classGroup) *table {
	var lines []classLine
	for i := range groups {
		for class, n := range groups[i].ErrorsByClass {
			lines = append(lines, classLine{&groups[i], class, n})
		}
	}
	slices.SortFunc(lines, func(a, b classLine) int {
		return cmp.Or(cmp.Compare(b.n, a.n), slices.Compare(a.g.Dims, b.g.Dims), cmp.Compare(a.class, b.class))
	})
	t := &table{Caption: "Errors", Empty: "no attempt failed"}
	for _, d := range q.GroupBy {
		t.Columns = append(t.Columns, column{Label: string(d)})
	}
	t.Columns = append(t.Columns, column{Label: "class"}, column{Label: "attempts", Num: true, Title: "errors_by_class: counted records with this error_class"},
		column{Label: "of the group's attempts"}, column{Label: "first seen (" + s.zoneName() + ")", Title: "start of the first piece of " + format.MS(q.Bucket.Milliseconds()) + " of this window in which it was"})
	for _, l := range lines[:min(len(lines), mostRows)] {
		t.Rows = append(t.Rows, classRow(s, q, l))
	}
	t.More = len(lines) - len(t.Rows)
	return t
}

func classRow(s *state, q metrics.Query, l classLine) row {
	r := row{Href: s.about("/operations", q.GroupBy, l.g.Dims, "error_class", l.class)}
	for _, v := range l.g.Dims {
		r.Cells = append(r.Cells, textCell(v))
	}
	first := l.g.first[l.class]
	seen := cell{Text: s.clock(first)}
	if !first.After(q.From) {
		seen.Text, seen.Title = "since the window began, or before", s.clock(first)
	}
	r.Cells = append(r.Cells, cell{Text: format.Safe(l.class), Href: r.Href}, cell{Text: format.Grouped(l.n)}, share(float64(l.n)/float64(max(1, l.g.Attempts))), seen)
	return r
}

func honouredTable(s *state, groups []metrics.Dimension, rows []classGroup) *table {
	plain := make([]metrics.Row, len(rows))
	for i := range rows {
		plain[i] = rows[i].Row
	}
	t := figureTable{groups: groups, sort: "-retry_after_violations", figures: []metricColumn{
		{"Retry-After not honoured", "retry_after_violations"}, {"rate limited", "errors_by_class{rate_limited}"}, {"overloaded", "errors_by_class{overloaded}"},
		{"sent again without a key", "unkeyed_after_send"}, {"stopped by the budget", "stops_by_reason{budget_exhausted}"}, {"stopped at the most attempts", "stops_by_reason{max_attempts}"},
	}}
	return t.make(s, plain, "How the callers behaved")
}

// positionTable is what another attempt is worth, by its position in the run.
func positionTable(total *metrics.Row) *table {
	t := &table{Caption: "What another attempt is worth, by position", Empty: "no attempts", Columns: []column{
		{Label: "position", Title: "attempt mod 100; 9 = 9 and above"}, {Label: "attempts", Num: true}, {Label: "successes", Num: true}, {Label: "of them succeed"},
	}}
	for p := range 10 {
		key := strconv.Itoa(p)
		n, ok := total.AttemptsByPosition[key], total.SuccessesByPosition[key]
		if n == 0 {
			continue
		}
		name := key
		if p == 9 {
			name = "9 and above"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: name}, {Text: format.Grouped(n)}, {Text: format.Grouped(ok)}, share(float64(ok) / float64(n))}})
	}
	return t
}

// part is the operations of one value of a dimension, and its shares.
type part struct {
	dimension metrics.Dimension
	value     string
	counters  metrics.Counters
	failed    float64 // its share of failed attempts
	of        float64 // its share of attempts
}

// standsOut is by how much a part's share of failed attempts exceeds that of attempts to be told.
const standsOut = 0.05

// partsOf sums a report by one of its dimensions; nil where all of it has one value.
func partsOf(r *metrics.Report, i int) []part {
	at := map[string]int{}
	var parts []part
	var total metrics.Counters
	for j := range r.Rows {
		value := r.Rows[j].Dims[i]
		k, ok := at[value]
		if !ok {
			k = len(parts)
			at[value] = k
			parts = append(parts, part{dimension: r.GroupBy[i], value: value})
		}
		parts[k].counters.Add(&r.Rows[j].Counters)
		total.Add(&r.Rows[j].Counters)
	}
	if len(parts) < 2 {
		return nil
	}
	for k := range parts {
		p := &parts[k]
		p.failed = float64(p.counters.FailedAttempts) / float64(max(1, total.FailedAttempts))
		p.of = float64(p.counters.Attempts) / float64(max(1, total.Attempts))
	}
	return parts
}

// differTable lists the values that failed attempts have more often than attempts.
func differTable(s *state, reports []*metrics.Report) *table {
	t := &table{Caption: "What differs in the failing set", Empty: "nothing stands out", Columns: []column{
		{Label: "dimension"}, {Label: "value"}, {Label: "of failed attempts"}, {Label: "of all attempts"}, {Label: "lift", Num: true, Title: "share of failed attempts over share of attempts"}, {Label: "failed attempts", Num: true},
	}}
	var all []part
	for _, r := range reports {
		for i := range r.GroupBy {
			all = append(all, partsOf(r, i)...)
		}
	}
	all = slices.DeleteFunc(all, func(p part) bool { return p.failed-p.of <= standsOut })
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(b.failed-b.of, a.failed-a.of) })
	for _, p := range all[:min(len(all), 12)] {
		v := textCell(p.value)
		v.Href = s.with(string(p.dimension), p.value)
		t.Rows = append(t.Rows, row{Href: v.Href, Cells: []cell{
			{Text: string(p.dimension)}, v, {Text: format.Percent(p.failed), Bar: chart.Bar(80, p.failed)}, {Text: format.Percent(p.of), Bar: chart.Bar(80, p.of)},
			{Text: format.Times(p.failed / p.of)}, {Text: format.Grouped(p.counters.FailedAttempts)},
		}})
	}
	return t
}
