package dashboards

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	promql "github.com/grafana/grafana-foundation-sdk/go/prometheus"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/dashboards"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/test/promtest"
)

// calm are panels that may be empty: what they show did not happen.
var calm = map[string]string{
	"Inserts that failed and are tried again": "the store was there all the time",
	"What the detector sees":                  "it judges what comes, not what came at once",
	"Why nobody tried again":                  "only if somebody stopped within the hour",
}

// eachPromQL calls with every query of a panel of the dashboards for Prometheus.
func eachPromQL(t *testing.T, call func(where string, p *dashboard.Panel, expr string)) {
	t.Helper()
	n := 0
	for _, file := range dashboards.All() {
		for _, p := range file.Dashboard.Panels {
			if p.Panel == nil {
				continue
			}
			for _, target := range p.Panel.Targets {
				if q, ok := target.(promql.Dataquery); ok {
					n++
					call(file.Path+": "+*p.Panel.Title, p.Panel, q.Expr)
				}
			}
		}
	}
	if n < 80 {
		t.Fatalf("%d queries only", n)
	}
}

// promVars are all variables of the dashboards for Prometheus.
func promVars(window string, filters map[string][]string) chosen {
	vars := chosen{"window": {values: []string{window}}}
	for _, name := range []string{"tenant", "provider", "model", "job", "instance"} {
		vars[name] = choice{values: filters[name], all: ".*"}
	}
	return vars
}

// TestPromQLPanels: on a Prometheus that scrapes ingest serve and analyze serve, every panel
// shows something, names no metric or label that they do not expose, and has the figures of
// the reference fold of the attempts that were sent.
func TestPromQLPanels(t *testing.T) {
	s := startServices(t)
	t.Run("every panel shows something", func(t *testing.T) { everyPanel(t, s) })
	t.Run("no metric or label is unknown", func(t *testing.T) { knownNames(t, s.exposed(t)) })
	t.Run("the figures are those of the fold", func(t *testing.T) { sameFigures(t, s) })
	t.Run("names stay names", func(t *testing.T) { namesStayNames(t, s) })
	t.Run("variables list names", func(t *testing.T) { listNames(t, s) })
}

func (s *services) ask(t *testing.T, expr string, vars chosen) ([]promtest.Sample, error) {
	t.Helper()
	text, err := interpolate(expr, vars)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	got, err := s.prometheus.Query(t.Context(), expandPromQL(text, "5m"))
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, text)
	}
	return got, err
}

func everyPanel(t *testing.T, s *services) {
	filled := map[string]bool{}
	eachPromQL(t, func(where string, p *dashboard.Panel, expr string) {
		got, err := s.ask(t, expr, promVars("1h", nil))
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
		filled[where] = filled[where] || len(got) > 0 || calm[*p.Title] != ""
		for _, sample := range got {
			if math.IsNaN(sample.Value) && !strings.Contains(expr, "histogram_quantile") {
				t.Errorf("%s: %v", where, sample)
			}
		}
	})
	for where, ok := range filled {
		if !ok {
			t.Errorf("%s shows nothing", where)
		}
	}
}

var (
	quoted   = regexp.MustCompile("`[^`]*`|\"[^\"]*\"")
	grouping = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	matchers = regexp.MustCompile(`(\w+)\s*\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
)

// unknown are the metrics and labels of an expression that nobody exposes.
func unknown(expr string, exposed map[string]map[string]bool) []string {
	expr = quoted.ReplaceAllString(expr, "x")
	var out []string
	all := map[string]bool{"le": true}
	for _, name := range metricName.FindAllString(expr, -1) {
		if exposed[name] == nil {
			out = append(out, name)
		}
		for l := range exposed[name] {
			all[l] = true
		}
	}
	for _, m := range matchers.FindAllStringSubmatch(expr, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !exposed[m[1]][l[1]] {
				out = append(out, m[1]+"{"+l[1]+"}")
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if !all[strings.TrimSpace(l)] {
				out = append(out, "by "+l)
			}
		}
	}
	return out
}

func knownNames(t *testing.T, exposed map[string]map[string]bool) {
	eachPromQL(t, func(where string, _ *dashboard.Panel, expr string) {
		if bad := unknown(expr, exposed); len(bad) > 0 {
			t.Errorf("%s: nobody exposes %v", where, bad)
		}
	})
	for expr, want := range map[string]string{
		"sum(retrylens_amplifications)": "retrylens_amplifications", `retrylens_amplification{vendor="x"}`: "retrylens_amplification{vendor}",
		"sum by (vendor) (retrylens_amplification)": "by vendor", `sum(retrylens_errors_by_class{class=~"${x}"})`: "retrylens_errors_by_class{class}",
	} {
		if got := unknown(expr, exposed); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v, want %s", expr, got, want)
		}
	}
}

// shown is the figure that a panel of one number is about: its description begins with it.
var shown = regexp.MustCompile("^`(\\w+)`: ")

func sameFigures(t *testing.T, s *services) {
	report, err := metrics.Fold(s.attempts, metrics.Query{AsOf: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]bool{}
	eachPromQL(t, func(where string, p *dashboard.Panel, expr string) {
		m := shown.FindStringSubmatch(*p.Description)
		if p.Type != "stat" || m == nil {
			return
		}
		got, err := s.ask(t, expr, promVars("1h", nil))
		want, set := expected(t, m[1], &report.Rows[0])
		if err != nil || !set || len(got) != 1 || math.Abs(got[0].Value-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %s is %v, %v; want %v", where, m[1], got, err, want)
		}
		compared[m[1]] = true
	})
	for _, name := range []string{"amplification", "retry_ratio", "retry_success_ratio", "orphaned_cost_usd", "duplicates_served", "effective_success_ratio", "actual_success_ratio", "cost_per_rescue_usd", "orphaned_cost_ratio"} {
		if !compared[name] {
			t.Errorf("no panel of one number shows %s", name)
		}
	}
}

// namesStayNames: a panel filtered by a hostile name shows that name's operations alone. One
// with a backquote is not offered as a choice, and is no error to fear: it can only break the
// expression of who chose it.
func namesStayNames(t *testing.T, s *services) {
	tried := 0
	for _, name := range hostileNames {
		sent := slices.ContainsFunc(s.attempts, func(a retrylens.Attempt) bool { return a.Provider == name })
		if strings.Contains(name, "`") || !sent {
			continue
		}
		tried++
		for _, names := range [][]string{{name}, {name, "nobody"}} {
			vars := promVars("1h", map[string][]string{"provider": names, "tenant": {"strange"}})
			eachPromQL(t, func(where string, p *dashboard.Panel, expr string) {
				if !slices.Contains([]string{"Operations", "Operations, last ${window}", "Errors by class", "By tenant, provider and model, last ${window}"}, *p.Title) {
					return
				}
				got, err := s.ask(t, expr, vars)
				if err != nil {
					t.Errorf("%s with %q: %v", where, names, err)
				}
				if *p.Title == "Operations, last ${window}" && (len(got) != 1 || got[0].Value != 1) {
					t.Errorf("%s with %q: %v, want 1", where, names, got)
				}
			})
		}
	}
	if tried < 12 {
		t.Errorf("%d names were tried", tried)
	}
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func listNames(t *testing.T, s *services) {
	for _, file := range dashboards.All() {
		for _, v := range file.Dashboard.Templating.List {
			if v.Type != dashboard.VariableTypeQuery || v.Query.Map == nil {
				continue
			}
			m := labelValues.FindStringSubmatch(v.Query.Map["query"].(string))
			if m == nil {
				t.Fatalf("%s: %v", file.Path, v.Query.Map)
			}
			var answer struct{ Data []string }
			if err := promtest.Get(t.Context(), s.prometheus.URL+"/api/v1/label/"+m[2]+"/values?match[]="+m[1], &answer); err != nil || len(answer.Data) == 0 {
				t.Errorf("%s: %s lists %v, %v", file.Path, v.Name, answer.Data, err)
			}
		}
	}
}
