package web

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
)

// triageBody is the page that an alert opens.
type triageBody struct {
	Empty        bool
	Wider        []navLink
	Culprit      string
	Quiet        string // since when nothing has started, "" = things do
	Verdict      verdictLine
	Success      []tile // effective beside actual
	Gap          string
	Tiles        []tile
	Baseline     string // what the bands are made of
	Charts       []figure
	Causes       *table
	Contributors *table
	Alerts       []alertLine
	AlertsError  string
	Trust        trust
}

// verdictLine is one sentence.
type verdictLine struct {
	State, Word, Text string
	From              string // who says so
	Who               []navLink
	Since             string
	Example           string
	ExampleID         string
	Why               []string
}

// tile is a figure with what is usual beside it.
type tile struct {
	Label, Value, Exact, Formula string
	Usual                        string // "" = not known
	Off                          string // "above usual", "below usual"
	Spark                        template.HTML
	Class                        string
}

// triageData are the answers that the page is made of.
type triageData struct {
	views
	before    views
	alerts    api.AlertList
	alertsErr error
	verdicts  []Verdict
}

func (u *UI) triage(ctx context.Context, s *state) (any, error) {
	d, err := u.askTriage(ctx, s)
	if err != nil {
		return nil, err
	}
	total := metrics.Merge(metrics.Key{}, d.series.Rows...)
	d.series = everyBucket(d.series)
	b := &triageBody{Empty: total.Operations == 0, Wider: wider(s), Baseline: s.clock(d.before.series.From) + " – " + s.clock(d.before.series.To), Trust: trustOf(d.series)}
	bands := func(name string) band { return bandOf(d.before.series.Rows, name) }
	b.Quiet = s.quiet(d.series)
	if b.Empty {
		b.Culprit = u.culprit(ctx, s)
	}
	b.Verdict = u.verdict(ctx, s, d, &total, bands)
	b.Success, b.Gap = successTiles(d, &total, bands)
	b.Tiles = tiles(d, &total, bands)
	b.Charts = triageCharts(s, d.series, bands)
	b.Causes = causes(&total)
	b.Contributors = contributors(s, d.groups, &total)
	b.Alerts = firing(s, api.Visible(ctx, d.alerts.Alerts, s.asked), u.o.RunbookURL)
	if d.alertsErr != nil {
		b.AlertsError = "The alerts cannot be told now."
		u.o.Logger.Warn("alerts", "error", d.alertsErr)
	}
	return b, nil
}

// askTriage asks everything at once.
func (u *UI) askTriage(ctx context.Context, s *state) (*triageData, error) {
	d := &triageData{}
	g, ctx := errgroup.WithContext(ctx)
	q := s.query
	q.Needs = s.needs(triageNeeds)
	before := usual(q)
	g.Go(func() (err error) {
		d.views, err = u.views(ctx, q, api.NiceBucket(q.To.Sub(q.From)), s.triageGroups(), memoAge)
		return err
	})
	g.Go(func() (err error) {
		d.before, err = u.views(ctx, before, bandBucket(before.To.Sub(before.From)), s.triageGroups(), usualAge)
		return err
	})
	g.Go(func() error { d.alerts, d.alertsErr = u.o.Source.Alerts(ctx); return nil })
	if u.o.Detector != nil && s.live() {
		g.Go(func() (err error) { d.verdicts, err = u.o.Detector.Verdicts(ctx); return err })
	}
	return d, g.Wait()
}

// quietAfter is how long nothing may start before a page says so.
const quietAfter = 10 * time.Minute

// quiet is when the last operation of a window that reaches to now started, where that is
// long ago.
func (s *state) quiet(r *metrics.Report) string {
	for i := len(r.Rows) - 1; i >= 0; i-- {
		if r.Rows[i].Operations == 0 {
			continue
		}
		if last := r.Rows[i].Bucket.Add(r.Bucket); s.live() && s.now.Sub(last) > quietAfter {
			return s.clock(last)
		}
		return ""
	}
	return ""
}

// triageGroups are the contributors' dimensions: home ones, spend figures are no verdict.
func (s *state) triageGroups() []metrics.Dimension {
	groups := s.groups("triage")
	if slices.ContainsFunc(groups, metrics.Dimension.Executed) {
		return defaultGroups["triage"]
	}
	return groups
}

var stateWords = map[string]string{
	stateHealthy: "Healthy", stateFlaky: "Flaky", stateMasked: "Masked outage", stateOutage: "Outage", stateRecovering: "Recovering",
	stateUnknown: "Too little to say",
}

// verdict is the graver of what the detector says of now, of the gravest series that is
// asked about, and of what the figures of the window say: an hour can have been bad whose
// last minutes are not.
func (u *UI) verdict(ctx context.Context, s *state, d *triageData, total *metrics.Row, bands func(string) band) verdictLine {
	now, watched := gravest(ctx, s, d.verdicts)
	j := worst(d.groups.Rows, matching(d.before.groups.Rows))
	if watched && worse(now.State, stateHealthy) && !worse(j.State, now.State) {
		return detected(s, now, d.groups, total)
	}
	if j.Row == nil {
		return verdictLine{State: stateUnknown, Word: "No operations", From: "the figures of this window"}
	}
	line := verdictLine{State: j.State, Word: stateWords[j.State], From: "the figures of this window against those before it", Why: j.Votes}
	if watched {
		line.From += "; the detector says of now: " + strings.ToLower(stateWords[now.State])
	}
	switch j.State {
	case stateUnknown:
		line.Text = fmt.Sprintf("Fewer than %d operations in every group.", fewest)
		return line
	case stateHealthy:
		line.Text = sentence(j.State, total)
		return line
	}
	line.Text = sentence(j.State, j.Row)
	class := topClass(j.Row)
	line.Who = who(s, s.triageGroups(), j.Row.Dims, class)
	if began := since(d.series.Rows, bands("amplification"), bands("error_ratio")); !began.IsZero() && j.State != stateFlaky {
		line.Since = s.clock(began)
	}
	line.example(s, u.example(ctx, s, d.views, j.Row.Dims, class))
	return line
}

// detected is the detector's verdict, with the window's figures of what it is about.
func detected(s *state, v Verdict, groups *metrics.Report, total *metrics.Row) verdictLine {
	line := verdictLine{State: v.State, Word: stateWords[v.State], From: "the detector, now; the figures are those of this window", Since: s.clock(v.Since)}
	line.Who = who(s, []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel}, []string{v.Tenant, v.Provider, v.Model}, v.Class)
	about := total
	if r := matching(groups.Rows)(&metrics.Row{Key: metrics.Key{Dims: []string{v.Provider, v.Model}}}); r != nil && slices.Equal(groups.GroupBy, defaultGroups["triage"]) {
		about = r
	}
	line.Text = sentence(v.State, about)
	line.example(s, v.Example)
	return line
}

// matching finds the row of the same group.
func matching(rows []metrics.Row) func(*metrics.Row) *metrics.Row {
	return func(r *metrics.Row) *metrics.Row {
		i, found := slices.BinarySearchFunc(rows, r.Dims, func(x metrics.Row, dims []string) int { return slices.Compare(x.Dims, dims) })
		if !found {
			return nil
		}
		return &rows[i]
	}
}

// gravest is the worst verdict on a series that the filters and the viewer allow.
func gravest(ctx context.Context, s *state, all []Verdict) (Verdict, bool) {
	tenants, restricted := api.Tenants(ctx)
	best, found := Verdict{}, false
	for _, v := range all {
		if restricted && !slices.Contains(tenants, v.Tenant) || !s.allows(metrics.DimTenant, v.Tenant) ||
			!s.allows(metrics.DimProvider, v.Provider) || !s.allows(metrics.DimModel, v.Model) || s.narrower() {
			continue
		}
		if !found || worse(v.State, best.State) || v.State == best.State && v.Since.Before(best.Since) {
			best, found = v, true
		}
	}
	return best, found
}

func (s *state) allows(d metrics.Dimension, value string) bool {
	asked := s.asked[d]
	return len(asked) == 0 || slices.Contains(asked, value)
}

// narrower tells filters by what no series of a detector is about.
func (s *state) narrower() bool {
	return len(s.asked[metrics.DimService])+len(s.asked[metrics.DimEnvironment])+len(s.asked[metrics.DimOperation]) > 0
}

func sentence(state string, r *metrics.Row) string {
	f := func(name string) string { return format.Figure(name, r) }
	failed := "No operation failed"
	if r.Failed > 0 {
		failed = f("error_ratio") + " of operations failed"
	}
	switch state {
	case stateMasked:
		return fmt.Sprintf("%s, but %s of attempts did: %s calls an operation, retries succeed in %s, p50 %s.",
			failed, f("attempt_error_ratio"), f("amplification"), f("retry_success_ratio"), f("latency_ms{p50}"))
	case stateFlaky:
		return fmt.Sprintf("%s of attempts failed and a retry helps (%s succeed): %s calls an operation.", f("attempt_error_ratio"), f("retry_success_ratio"), f("amplification"))
	case stateOutage:
		return fmt.Sprintf("%s, and %s of attempts.", failed, f("attempt_error_ratio"))
	}
	return fmt.Sprintf("%s, %s of attempts: %s calls an operation.", failed, f("attempt_error_ratio"), f("amplification"))
}

// who names a group, each part a link that narrows the page to it.
func who(s *state, dims []metrics.Dimension, values []string, class string) []navLink {
	var links []navLink
	for i, d := range dims {
		if i < len(values) && values[i] != "" && !d.Executed() {
			links = append(links, navLink{Label: format.Safe(values[i]), Title: string(d), Href: s.with(string(d), values[i])})
		}
	}
	if class != "" {
		links = append(links, navLink{Label: format.Safe(class), Title: "error class", Href: s.about("/operations", dims, values, "error_class", class)})
	}
	return links
}

func (l *verdictLine) example(s *state, id string) {
	if id != "" {
		l.ExampleID, l.Example = format.Safe(id), s.op(id)
	}
}

// example is an operation of a group that shows its class, of the latest ones that with
// most attempts; "" where none is found.
func (u *UI) example(ctx context.Context, s *state, v views, values []string, class string) string {
	q := s.query
	q.GroupBy, q.Needs, q.Filters = nil, nil, cloneFilters(q.Filters)
	for i, d := range s.triageGroups() {
		q.Filters[d] = []string{values[i]}
	}
	for _, w := range v.exampleWindows(q, values, class) {
		q.From, q.To = w[0], w[1]
		search := metrics.Search{Query: q, Limit: 20}
		if class != "" {
			search.ErrorClasses = []retrylens.ErrorClass{retrylens.ErrorClass(class)}
		}
		asked := q
		asked.AsOf = time.Time{} // an example stays one
		id, err := u.shown.within(ctx, exampleAge, class+" "+askedFor(asked), func(ctx context.Context) (string, error) { return u.worstOf(ctx, search) }, exampleKept)
		if err != nil {
			return "" // a page without its example is better than none
		}
		if id != "" {
			return id
		}
	}
	return ""
}

// exampleKept is how long an answer is kept: soon there may be an example where there is none.
func exampleKept(id string) time.Duration {
	if id == "" {
		return memoAge
	}
	return exampleAge
}

// worstOf is the operation of most attempts of those that a search finds; "" = it finds none.
func (u *UI) worstOf(ctx context.Context, search metrics.Search) (string, error) {
	ops, err := u.o.Source.Operations(ctx, search)
	if err != nil || len(ops) == 0 {
		return "", err
	}
	return slices.MaxFunc(ops, func(a, b metrics.Operation) int { return a.Attempts - b.Attempts }).LogicalID, nil
}

func cloneFilters(f map[metrics.Dimension][]string) map[metrics.Dimension][]string {
	c := make(map[metrics.Dimension][]string, len(f))
	for d, v := range f {
		c[d] = v
	}
	return c
}

// successTiles are the two success rates: the gap between them is what retries hide.
func successTiles(d *triageData, total *metrics.Row, bands func(string) band) ([]tile, string) {
	var out []tile
	for _, t := range []struct{ label, figure, class string }{
		{"Effective success", "error_ratio", "of operations"}, {"Actual success", "attempt_error_ratio", "of attempts"},
	} {
		f, _ := metrics.LookupFormula(t.figure)
		x := tile{Label: t.label, Value: format.Null, Formula: "1 − " + t.figure + "; " + f.Text, Class: t.class}
		if v, ok := number(t.figure, total); ok {
			x.Value, x.Exact = format.Percent(1-v), fmt.Sprint(1-v)
		}
		if b := bands(t.figure); b.Set {
			x.Usual = format.Percent(1-b.High) + " – " + format.Percent(1-b.Low)
			if v, ok := number(t.figure, total); ok && v > b.top() {
				x.Off = "below usual"
			}
		}
		x.Spark = spark(d.series.Rows, t.figure, bands(t.figure), true)
		out = append(out, x)
	}
	e, ok1 := number("error_ratio", total)
	a, ok2 := number("attempt_error_ratio", total)
	if !ok1 || !ok2 {
		return out, ""
	}
	return out, fmt.Sprintf("%.2f", (a-e)*100)
}

var tileFigures = []struct{ label, figure string }{
	{"Amplification", "amplification"}, {"Retry success", "retry_success_ratio"}, {"Latency p50", "latency_ms{p50}"}, {"Latency p99", "latency_ms{p99}"},
	{"Retry tax p99", "retry_tax_ms{p99}"}, {"Orphaned spend, USD", "orphaned_cost_usd"}, {"Orphan suspects", "orphan_suspects"}, {"Operations", "operations"},
}

func tiles(d *triageData, total *metrics.Row, bands func(string) band) []tile {
	var out []tile
	for _, t := range tileFigures {
		base, _, _ := strings.Cut(t.figure, "{")
		f, _ := metrics.LookupFormula(base)
		v, _ := metrics.Figure(t.figure, *total)
		x := tile{Label: t.label, Value: format.Short(f, v), Exact: v.String(), Formula: f.Text}
		b := bands(t.figure)
		sums := f.Unit == metrics.UnitUSD || f.Unit == metrics.UnitCount
		if b.Set && !sums {
			x.Usual = write(f, b.Low) + " – " + write(f, b.High)
			x.Off = off(t.figure, total, b)
		} else if b.Set {
			perHour := float64(time.Hour) / float64(d.before.series.Bucket)
			x.Usual = write(f, b.Low*perHour) + " – " + write(f, b.High*perHour) + " an hour"
			if span := d.series.To.Sub(d.series.From); span > 0 && v.Set {
				n, _ := v.Float64()
				x.Class = write(f, n/span.Hours()) + " an hour"
			}
		}
		x.Spark = spark(d.series.Rows, t.figure, b, false)
		if sums {
			x.Spark = spark(d.series.Rows, t.figure, band{Low: math.NaN(), High: math.NaN()}, false)
		}
		out = append(out, x)
	}
	return out
}

func off(name string, r *metrics.Row, b band) string {
	v, ok := number(name, r)
	slack := max((b.High-b.Low)/2, math.Abs(b.High)*0.02)
	switch {
	case !ok:
		return ""
	case v > b.High+slack:
		return "above usual"
	case v < b.Low-slack:
		return "below usual"
	}
	return ""
}
