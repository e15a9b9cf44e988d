package web

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
	"github.com/retrylens/retrylens/web/chart"
)

// spendBody is where the money went.
type spendBody struct {
	Tiles   []tile
	Groups  []navLink
	Periods []navLink
	Table   *table
	Reasons *table
	Sources *table
	Wider   []navLink
	Culprit string
	Empty   bool
	Trust   trust
}

// What spend is summed by. Both are of UTC, as bills are.
const (
	periodDay   = "day"
	periodMonth = "month"
)

func (u *UI) spend(ctx context.Context, s *state) (any, error) {
	q := s.query
	q.GroupBy, q.Bucket, q.CountersOnly, q.Needs = s.groups("spend"), 24*time.Hour, true, s.needs(spendNeeds)
	home := s.query
	home.GroupBy, home.Bucket, home.CountersOnly, home.Needs = nil, 0, true, orphanNeeds
	var spent, all *metrics.Report
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { spent, err = u.report(gctx, q); return err })
	g.Go(func() (err error) { all, err = u.report(gctx, home); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	total := metrics.Merge(metrics.Key{}, all.Rows...)
	b := &spendBody{
		Tiles: spendTiles(&total), Groups: spendGroups(s), Periods: periods(s), Table: spendTable(s, q.GroupBy, spent.Rows),
		Reasons: reasonTable(&total), Sources: sourceTable(&total), Trust: trustOf(counters(all)), Empty: len(spent.Rows) == 0, Wider: wider(s),
	}
	if b.Empty {
		b.Culprit = u.culprit(ctx, s)
	}
	return b, nil
}

func spendTiles(total *metrics.Row) []tile {
	var out []tile
	add := func(label, exact, value, formula string) {
		out = append(out, tile{Label: label, Value: value, Exact: exact, Formula: formula, Usual: "-"})
	}
	for _, t := range []struct{ label, figure string }{{"Billed, USD", "billed_cost_usd"}, {"Orphaned, USD", "orphaned_cost_usd"}, {"Orphaned of billed", "orphaned_cost_ratio"}, {"Suspects, not priced", "orphan_suspects"},
		{"Recovered, USD", "recovered_cost_usd"}, {"Redundant, USD", "redundant_cost_usd"}, {"USD per rescue", "cost_per_rescue_usd"}} {
		f, _ := metrics.LookupFormula(t.figure)
		v, _ := metrics.Figure(t.figure, *total)
		add(t.label, v.String(), format.Short(f, v), f.Text)
		if t.figure == "billed_cost_usd" {
			d := deliveredCost(&total.Counters)
			add("Delivered, USD", d.String(), format.USD(d), deliveredFormula)
		}
	}
	return out
}

const deliveredFormula = "billed_cost_usd − orphaned_cost_usd − recovered_cost_usd − redundant_cost_usd: what callers got, once"

// deliveredCost is what was billed and reached its caller at once and only once.
func deliveredCost(c *metrics.Counters) retrylens.Money {
	return c.BilledCostUSD.Sub(c.OrphanedCostUSD).Sub(c.RecoveredCostUSD).Sub(c.RedundantCostUSD)
}

func spendGroups(s *state) []navLink {
	current := s.groups("spend")
	var out []navLink
	for _, g := range []struct {
		label, group string
		dims         []metrics.Dimension
	}{
		{"provider and model, as a bill", "executed_provider,executed_model", defaultGroups["spend"]}, {"provider", "executed_provider", []metrics.Dimension{metrics.DimExecutedProvider}},
		{"tenant", "tenant", []metrics.Dimension{metrics.DimTenant}}, {"service", "service", []metrics.Dimension{metrics.DimService}}, {"operation", "operation", []metrics.Dimension{metrics.DimOperation}},
	} {
		out = append(out, navLink{Label: g.label, Href: s.with(query.Group, g.group), Current: slices.Equal(current, g.dims)})
	}
	return out
}

func periods(s *state) []navLink {
	month := s.monthly()
	return []navLink{
		{Label: "day", Href: s.with(paramPeriod, ""), Current: !month},
		{Label: "month", Href: s.with(paramPeriod, periodMonth), Current: month},
	}
}

var spendFigures = []metricColumn{
	{"billed, USD", "billed_cost_usd"}, {"orphaned, USD", "orphaned_cost_usd"}, {"of billed", "orphaned_cost_ratio"}, {"suspects", "orphan_suspects"},
	{"recovered, USD", "recovered_cost_usd"}, {"redundant, USD", "redundant_cost_usd"}, {"billed tokens", "billed_tokens"}, {"orphaned tokens", "orphaned_tokens"},
}

// spendTable has a row for each group and period, the latest period first.
func spendTable(s *state, groups []metrics.Dimension, rows []metrics.Row) *table {
	rows = slices.Clone(rows)
	if s.monthly() {
		rows = byMonth(rows)
	}
	slices.SortStableFunc(rows, func(a, b metrics.Row) int { return cmp.Or(b.Bucket.Compare(a.Bucket), slices.Compare(a.Dims, b.Dims)) })
	t := figureTable{groups: groups, figures: spendFigures, more: []column{{Label: "delivered, USD", Num: true, Title: deliveredFormula}, {Label: "period (UTC)"}}}
	t.cells = func(r *metrics.Row) []cell {
		d := deliveredCost(&r.Counters)
		return []cell{{Text: d.String(), Title: format.USD(d) + " USD"}, s.period(r.Bucket)}
	}
	out := t.make(s, rows, "Spend, exact")
	for i := range out.Rows { // the period goes first
		cells := out.Rows[i].Cells
		out.Rows[i].Cells = append([]cell{cells[len(cells)-1]}, cells[:len(cells)-1]...)
	}
	out.Columns = append([]column{out.Columns[len(out.Columns)-1]}, out.Columns[:len(out.Columns)-1]...)
	out.Empty = "nothing was executed"
	return out
}

// period names a day or a month, and which part of it the window holds if not all.
func (s *state) period(begin time.Time) cell {
	begin = begin.UTC()
	layout, end := "2006-01-02", begin.AddDate(0, 0, 1)
	if s.monthly() {
		layout, end = "2006-01", begin.AddDate(0, 1, 0)
	}
	c := cell{Text: begin.Format(layout)}
	from, to := s.query.From, s.query.To
	if from.After(begin) || to.Before(end) {
		if from.Before(begin) {
			from = begin
		}
		if to.After(end) {
			to = end
		}
		c.Text += " (part)"
		c.Title = "of it the window holds " + from.UTC().Format(time.RFC3339) + " – " + to.UTC().Format(time.RFC3339)
	}
	return c
}

// byMonth sums days to months of UTC.
func byMonth(rows []metrics.Row) []metrics.Row {
	var out []metrics.Row
	at := map[string]int{}
	for i := range rows {
		r := &rows[i]
		y, m, _ := r.Bucket.UTC().Date()
		month := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		key := safeKey(r.Dims, month)
		j, ok := at[key]
		if !ok {
			j = len(out)
			at[key] = j
			out = append(out, metrics.Row{Key: metrics.Key{Dims: r.Dims, Bucket: month}})
		}
		out[j].Add(&r.Counters)
	}
	return out
}

func safeKey(dims []string, t time.Time) string {
	key := t.Format(time.DateOnly)
	for _, d := range dims {
		key += "\x00" + d
	}
	return key
}

func reasonTable(total *metrics.Row) *table {
	t := &table{Caption: "Orphaned, by why the caller never got it", Empty: "nothing is known to be orphaned", Columns: []column{
		{Label: "reason"}, {Label: "USD", Num: true}, {Label: "tokens", Num: true}, {Label: "share of the tokens"},
	}}
	all := total.OrphanedPromptTokens + total.OrphanedCompletionTokens
	for _, reason := range metrics.OrphanReasons {
		tokens, cost := total.OrphanedTokensByReason[string(reason)], total.OrphanedCostUSDByReason[string(reason)]
		if tokens == 0 && cost.IsZero() {
			continue
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: string(reason)}, {Text: cost.String(), Title: format.USD(cost) + " USD"}, {Text: format.Grouped(tokens)}, share(float64(tokens) / float64(max(1, all)))}})
	}
	return t
}

var sourceWords = map[retrylens.UsageSource]string{
	retrylens.UsageProvider: "the provider's own final figure", retrylens.UsagePartial: "seen before an abort: a lower bound", retrylens.UsageEstimated: "computed by the emitter", retrylens.UsageUnknown: "not told",
}

func sourceTable(total *metrics.Row) *table {
	t := &table{Caption: "Orphaned tokens, by how sure it is", Empty: "nothing is known to be orphaned", Columns: []column{{Label: "usage source"}, {Label: "tokens", Num: true}, {Label: "share"}, {Label: "which is"}}}
	all := total.OrphanedPromptTokens + total.OrphanedCompletionTokens
	for _, source := range retrylens.UsageSources {
		if n := total.OrphanedTokensByUsageSource[string(source)]; n > 0 {
			f := float64(n) / float64(max(1, all))
			t.Rows = append(t.Rows, row{Cells: []cell{{Text: string(source)}, {Text: format.Grouped(n)}, {Text: format.Percent(f), Bar: chart.Bar(80, f)}, {Text: sourceWords[source]}}})
		}
	}
	return t
}
