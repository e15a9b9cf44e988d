package dashboards

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/dashboards"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }

// scene is what a reader of a dashboard has chosen.
type scene struct {
	name    string
	w       window
	filters map[metrics.Dimension][]string
	group   string
	some    bool // of the panels, one of each kind of query
}

// kinds are panels that have one of each kind of query.
var kinds = []string{"Amplification", "Errors by class", "Latency", "By ${group}", "By executed provider and model", "By provider and model", "What another attempt is worth"}

func scenes() []scene {
	whole := window{midnight.Add(-time.Hour), midnight.Add(5 * time.Hour), 5 * time.Minute}
	out := []scene{
		{"all", whole, nil, "provider", false},
		{"one hour by the minute", window{midnight.Add(31 * time.Minute), midnight.Add(91 * time.Minute), time.Minute}, nil, "tenant", false},
		{"ninety days by the day", window{midnight.Add(-80*24*time.Hour + 7*time.Minute), midnight.Add(10 * 24 * time.Hour), 24 * time.Hour}, nil, "model", false},
		{"a week by two hours", window{midnight.Add(-3 * 24 * time.Hour), midnight.Add(4*24*time.Hour + 61*time.Minute), 2 * time.Hour}, nil, "operation", false},
		{"several of several", whole, map[metrics.Dimension][]string{"tenant": {"acme", "globex"}, "provider": {"openai", "anthropic"}, "environment": {"prod"}}, "service", false},
		{"every hostile name", whole, map[metrics.Dimension][]string{"provider": hostileNames}, "environment", true},
		{"nobody", whole, map[metrics.Dimension][]string{"tenant": {"nobody"}}, "provider", false},
	}
	for _, name := range hostileNames {
		out = append(out, scene{"named " + name, whole, map[metrics.Dimension][]string{"model": {name}, "service": {name}}, name, true})
	}
	return out
}

func (s scene) vars() chosen {
	vars := chosen{"database": {values: []string{engine.Database}}, "group": {values: []string{s.group}}}
	for _, d := range []metrics.Dimension{"tenant", "service", "environment", "provider", "model"} {
		vars[string(d)] = choice{values: s.filters[d], all: "*"}
	}
	return vars
}

func (s scene) sql(text string) (string, error) {
	text, err := interpolate(text, s.vars())
	if err != nil {
		return "", err
	}
	return expandSQL(text, s.w)
}

// TestSQLPanelsShowTheFiguresOfTheFold: every figure of every panel that reads rollups, by
// group and by time, is what the reference fold says of the same attempts.
func TestSQLPanelsShowTheFiguresOfTheFold(t *testing.T) {
	f := newFixture(t)
	compared := map[string]int{}
	for _, s := range scenes() {
		eachSQL(t, func(where string, p *dashboard.Panel, text string) {
			if s.some && !slices.Contains(kinds, *p.Title) {
				return
			}
			sql, err := s.sql(text)
			if err != nil {
				t.Fatalf("%s: %v", where, err)
			}
			got, err := f.ask(t.Context(), sql)
			if err != nil {
				t.Errorf("%s, %s: %v", where, s.name, err)
				return
			}
			if !strings.Contains(text, "rollups_between") {
				return
			}
			c := comparison{t: t, f: f, s: s, where: where + ", " + s.name, sql: text, got: got}
			for name, n := range c.run() {
				compared[name] += n
			}
		})
	}
	for _, name := range []string{"amplification", "retry_ratio", "retry_success_ratio", "orphaned_cost_usd", "duplicates_served", "effective_success_ratio", "actual_success_ratio", "cost_per_rescue_usd",
		"errors_by_class", "upstream_calls_by_cause", "orphaned_cost_usd_by_reason", "latency_ms", "retry_tax_ms", "billed_cost_usd", "layer_factor", "attempts_by_position", "known_usage_ratio"} {
		if compared[name] < 5 {
			t.Errorf("%s was compared %d times only", name, compared[name])
		}
	}
}

// eachSQL calls with every query of a panel of the dashboards for ClickHouse.
func eachSQL(t *testing.T, call func(where string, p *dashboard.Panel, text string)) {
	t.Helper()
	n := 0
	for _, file := range dashboards.All() {
		for _, p := range file.Dashboard.Panels {
			if p.Panel == nil {
				continue
			}
			for _, target := range p.Panel.Targets {
				if q, ok := target.(dashboards.SQL); ok {
					n++
					call(file.Path+": "+*p.Panel.Title, p.Panel, q.RawSQL)
				}
			}
		}
	}
	if n < 50 {
		t.Fatalf("%d queries only", n)
	}
}

// comparison holds the answer of a query to the fold.
type comparison struct {
	t     *testing.T
	f     *fixture
	s     scene
	where string
	sql   string
	got   answer
}

// run returns how many values of each figure were equal or not.
func (c *comparison) run() map[string]int {
	q := metrics.Query{From: c.s.w.from, To: c.s.w.to, AsOf: asOf, Filters: c.s.filters}
	var keys, figures []int
	for i, name := range c.got.columns {
		switch d, err := metrics.ParseDimension(name); {
		case name == "time":
			q.Bucket = c.s.w.step
		case err == nil:
			q.GroupBy, keys = append(q.GroupBy, d), append(keys, i)
		case name == "name":
			q.GroupBy, keys = append(q.GroupBy, groupOf(c.s.group)), append(keys, i)
		case isKey(name):
		default:
			figures = append(figures, i)
		}
	}
	if strings.Contains(c.sql, "service = '*'") {
		q.Filters = only(q.Filters, "tenant", "provider", "model")
	}
	report := c.f.fold(c.t, q)
	seen, counted := map[int]bool{}, map[string]int{}
	for _, cells := range c.got.rows {
		row := c.find(report, cells, keys, q.Bucket > 0)
		for i := range report.Rows {
			if &report.Rows[i] == row {
				seen[i] = true
			}
		}
		for _, i := range figures {
			name := c.name(i, cells)
			counted[strings.SplitN(name, "{", 2)[0]]++
			c.compare(name, cells[i], row)
		}
	}
	if !c.entries() && len(seen) != len(report.Rows) && !(len(report.GroupBy) == 0 && q.Bucket == 0) {
		c.t.Errorf("%s: %d of %d rows", c.where, len(seen), len(report.Rows))
	}
	return counted
}

func only(filters map[metrics.Dimension][]string, dims ...metrics.Dimension) map[metrics.Dimension][]string {
	out := map[metrics.Dimension][]string{}
	for _, d := range dims {
		if len(filters[d]) > 0 {
			out[d] = filters[d]
		}
	}
	return out
}

// groupOf is the dimension that a value of the variable group names; any other value is as
// good as the first.
func groupOf(value string) metrics.Dimension {
	if d, err := metrics.ParseDimension(value); err == nil {
		return d
	}
	return metrics.DimTenant
}

func isKey(column string) bool {
	return column == "position" || slices.ContainsFunc(metrics.Formulas, func(f metrics.Formula) bool { return f.Label == column })
}

// entries tells a panel whose rows are entries of a figure.
func (c *comparison) entries() bool { return slices.ContainsFunc(c.got.columns, isKey) }

// name is the figure that a cell holds, as metrics.Figure names it.
func (c *comparison) name(i int, cells []any) string {
	column := c.got.columns[i]
	if column == "p50" || column == "p90" || column == "p99" {
		figure := "retry_tax_ms"
		if strings.Contains(c.sql, "r.latency_ms") {
			figure = "latency_ms"
		}
		return figure + "{" + column + "}"
	}
	for k, key := range c.got.columns {
		if !isKey(key) {
			continue
		}
		if key == "position" {
			column = map[string]string{"attempts": "attempts_by_position", "successes": "successes_by_position", "success_ratio": "success_ratio"}[column]
		}
		return fmt.Sprintf("%s{%v}", column, cells[k])
	}
	return column
}

// find is the row of the report that cells are about; one of zeros, if it has none.
func (c *comparison) find(r *metrics.Report, cells []any, keys []int, timed bool) *metrics.Row {
	var bucket time.Time
	if timed {
		bucket = cells[slices.Index(c.got.columns, "time")].(time.Time)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		same := !timed || row.Bucket.Equal(bucket)
		for n, k := range keys {
			same = same && fmt.Sprint(cells[k]) == row.Dims[n]
		}
		if same {
			return row
		}
	}
	return &metrics.Row{}
}

func (c *comparison) compare(name string, cell any, row *metrics.Row) {
	c.t.Helper()
	got, gotSet := numberOf(cell)
	want, wantSet := expected(c.t, name, row)
	tolerance := 1e-12 * math.Max(1, math.Abs(want))
	if strings.Contains(name, "_ms{") {
		tolerance = 0.005 * math.Abs(want)
	}
	if gotSet != wantSet || gotSet && math.Abs(got-want) > tolerance {
		c.t.Errorf("%s: %s of %v is %v (%t), want %v (%t)", c.where, name, row.Key, got, gotSet, want, wantSet)
	}
}

// expected is what the fold says of a figure; those that only dashboards show are made of two.
func expected(t *testing.T, name string, row *metrics.Row) (float64, bool) {
	t.Helper()
	rest := func(figure string) (float64, bool) {
		v, set := expected(t, figure, row)
		return 1 - v, set
	}
	switch position, ok := strings.CutPrefix(name, "success_ratio"); {
	case name == "effective_success_ratio":
		return rest("error_ratio")
	case name == "actual_success_ratio":
		return rest("attempt_error_ratio")
	case name == "known_usage_ratio":
		return float64(row.ExecutedKnownUsage) / float64(row.ExecutedAttempts), row.ExecutedAttempts > 0
	case ok:
		attempts, _ := expected(t, "attempts_by_position"+position, row)
		successes, _ := expected(t, "successes_by_position"+position, row)
		return successes / attempts, true
	}
	v, ok := metrics.Figure(name, *row)
	if !ok {
		t.Fatalf("no figure %s", name)
	}
	return v.Float64()
}

// TestTrustIsWhatTheStoreSays: what the figures cannot have seen, by the store's own words.
func TestTrustIsWhatTheStoreSays(t *testing.T) {
	f := newFixture(t)
	want, err := f.store.Completeness(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := hostileAttempts()[0]
	late.LogicalID, late.OperationStartedAt, late.StartedAt = "late", midnight, midnight
	if err := f.store.Write(t.Context(), []retrylens.Attempt{late}); err != nil {
		t.Fatal(err)
	}
	numbers := map[string]float64{}
	s := scene{w: window{midnight, time.Now().Add(time.Minute), time.Hour}}
	eachSQL(t, func(where string, p *dashboard.Panel, text string) {
		if !strings.HasPrefix(where, "clickhouse/ingest") {
			return
		}
		sql, err := s.sql(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.ask(t.Context(), sql)
		if err != nil || len(got.rows) == 0 {
			t.Errorf("%s: %d rows, %v", where, len(got.rows), err)
			return
		}
		if len(got.rows) == 1 && len(got.columns) == 1 {
			numbers[*p.Title], _ = numberOf(got.rows[0][0])
		}
	})
	for title, is := range map[string]float64{"Coverage": want.CoverageRatio.Value, "Records missing": float64(want.RecordsMissing.Value), "Rejected lines": 3, "Dead letters": 1, "Spool age": 1.5} {
		if numbers[title] != is {
			t.Errorf("%s is %v, want %v", title, numbers[title], is)
		}
	}
	if st, err := f.store.FinaliserStatus(t.Context()); err != nil || numbers["Finaliser lag"] <= 0 || numbers["Finaliser lag"] > st.Lag.Seconds() {
		t.Errorf("finaliser lag %v, then %v, %v", numbers["Finaliser lag"], st.Lag, err)
	}
	if want.RecordsMissing.Value == 0 || numbers["Newest rollup"] <= 0 || numbers["Known usage"] <= 0.5 || numbers["Known usage"] > 1 {
		t.Errorf("%v", numbers)
	}
}

// TestSQLVariablesListNames: each lists what there is, so that something can be chosen.
func TestSQLVariablesListNames(t *testing.T) {
	f := newFixture(t)
	s := scenes()[0]
	for _, file := range dashboards.All() {
		for _, v := range file.Dashboard.Templating.List {
			if v.Type != dashboard.VariableTypeQuery || v.Query.String == nil {
				continue
			}
			sql, err := s.sql(*v.Query.String)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.ask(t.Context(), sql)
			if err != nil || len(got.rows) == 0 || len(got.columns) != 1 {
				t.Errorf("%s: %s lists %d names, %v", file.Path, v.Name, len(got.rows), err)
			}
			if v.Name == "provider" && len(got.rows) < len(hostileNames) {
				t.Errorf("%s lists %d providers", file.Path, len(got.rows))
			}
		}
	}
}
