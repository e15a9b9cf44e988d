package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	promql "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// PrometheusPlugin is the data source that the dashboards for Prometheus are for.
const PrometheusPlugin = "prometheus"

// prometheus asks the gauges of analyze serve. Its numbers are those of the last minutes, as
// wide as the variable window says.
type prometheus struct{ fixed string } // the window where it is not a variable

func (prometheus) name() string   { return "prometheus" }
func (prometheus) plugin() string { return PrometheusPlugin }
func (p prometheus) window() string {
	if p.fixed != "" {
		return ", last " + p.fixed
	}
	return ", last ${window}"
}

func (prometheus) note() string {
	return "Of a window that ends now, as analyze serve last took it; ratios are summed over series before they are divided."
}
func (prometheus) quantileUnit() string { return units.Seconds }

// labels are those of every gauge of a figure beside the window.
const labels = "tenant, provider, model"

// selector is a gauge of a figure. Values stand in backquotes, in which PromQL knows no escape,
// and in the format regex: the usual way leaves double quotes as they are.
func (p prometheus) selector(metric string, more ...string) string {
	window := p.fixed
	if window == "" {
		window = "${window:percentencode}"
	}
	matchers := append([]string{`window="` + window + `"`}, more...)
	for _, l := range p.filters() {
		matchers = append(matchers, l+"=~`${"+l+":regex}`")
	}
	return "retrylens_" + metric + "{" + strings.Join(matchers, ", ") + "}"
}

// each is a counter by series: analyzers that are scraped both tell the same. One that is not
// exported is made of the ratio that is.
func (p prometheus) each(column string) string {
	once := func(metric string) string { return "max by (" + labels + ") (" + p.selector(metric) + ")" }
	switch column {
	case "failed_attempts":
		return once("attempt_error_ratio") + " * " + once("attempts")
	case "rescue_cost_usd":
		return once("cost_per_rescue_usd") + " * " + once("rescued")
	}
	return once(column)
}

// total adds series up, by labels or into one.
func (p prometheus) total(columns, by string) string {
	op, parts := " + ", strings.FieldsFunc(columns, func(r rune) bool { return r == '+' || r == '-' })
	if strings.Contains(columns, "-") {
		op = " - "
	}
	head := "sum"
	if by != "" {
		head = "sum by (" + by + ")"
	}
	for i, c := range parts {
		parts[i] = head + " (" + p.each(c) + ")"
	}
	text := strings.Join(parts, op)
	if len(parts) > 1 {
		text = "(" + text + ")"
	}
	return text
}

// notExported are the figures whose parts Prometheus does not have: only series have them.
var notExported = map[string]bool{"rescue_ratio": true, "layer_factor": true, knownUsage: true}

// expr is a figure, by labels or of all; a ratio of nothing is absent.
func (p prometheus) expr(figure, by string) string {
	if q, ok := lookupQuotient(figure); ok {
		if notExported[figure] {
			panic("dashboards: Prometheus has " + figure + " by series only")
		}
		return p.total(q.over, by) + " / (" + p.total(q.under, by) + " > 0)"
	}
	formula(figure)
	return p.total(figure, by)
}

func instant(i int, expr string) variants.Dataquery {
	return promql.Dataquery{Datasource: datasource(PrometheusPlugin), Expr: expr, Instant: ptr(true), Range: ptr(false), RefId: ptr(refID(i)), EditorMode: ptr(promql.QueryEditorModeCode)}
}

func cells(i int, expr string) variants.Dataquery {
	q := instant(i, expr).(promql.Dataquery)
	q.Format = ptr(promql.PromQueryFormatTable)
	return q
}

func ranged(i int, expr, legend string) variants.Dataquery {
	return promql.Dataquery{Datasource: datasource(PrometheusPlugin), Expr: expr, LegendFormat: ptr(legend), Instant: ptr(false), Range: ptr(true), RefId: ptr(refID(i)), EditorMode: ptr(promql.QueryEditorModeCode)}
}

func (p prometheus) one(figure string) []variants.Dataquery {
	return []variants.Dataquery{instant(0, p.expr(figure, ""))}
}

func (p prometheus) over(figures ...string) []variants.Dataquery {
	var out []variants.Dataquery
	for i, f := range figures {
		out = append(out, ranged(i, p.expr(f, ""), f))
	}
	return out
}

func (p prometheus) entries(figure string) []variants.Dataquery {
	label := formula(figure).Label
	return []variants.Dataquery{ranged(0, fmt.Sprintf("sum by (%s) (max by (%s, %s) (%s))", label, labels, label, p.selector(figure)), "{{"+label+"}}")}
}

// quantiles are those of the slowest series: quantiles of several cannot be joined.
func (p prometheus) quantiles(figure string) []variants.Dataquery {
	metric := strings.TrimSuffix(figure, "_ms") + "_seconds"
	var out []variants.Dataquery
	for i, q := range []struct{ name, quantile string }{{"p50", "0.5"}, {"p90", "0.9"}, {"p99", "0.99"}} {
		out = append(out, ranged(i, "max("+p.selector(metric, `quantile="`+q.quantile+`"`)+")", q.name))
	}
	return out
}

func (p prometheus) rows(dimensions []string, figures ...string) query {
	by := strings.Join(dimensions, ", ")
	exprs := make([]string, len(figures))
	for i, f := range figures {
		if notExported[f] {
			exprs[i] = "max by (" + by + ") (" + p.selector(f) + ")"
			continue
		}
		exprs[i] = p.expr(f, by)
	}
	return merged(figures, exprs)
}

// merged are instant queries whose answers become columns of one table.
func merged(names, exprs []string) query {
	var q query
	renamed := map[string]string{}
	for i, e := range exprs {
		q.targets = append(q.targets, cells(i, e))
		renamed["Value #"+refID(i)] = names[i]
	}
	if len(exprs) == 1 {
		renamed["Value"] = names[0]
	}
	q.transforms = []dashboard.DataTransformerConfig{
		{Id: "merge", Options: map[string]any{}},
		{Id: "organize", Options: map[string]any{"excludeByName": map[string]bool{"Time": true}, "renameByName": renamed}},
	}
	return q
}

func (p prometheus) positions() query {
	by := func(figure string) string {
		return fmt.Sprintf("sum by (position) (max by (%s, position) (%s))", labels, p.selector(figure))
	}
	attempts, successes := by("attempts_by_position"), by("successes_by_position")
	return merged([]string{"attempts", "successes", "success_ratio"}, []string{attempts, successes, successes + " / " + attempts})
}

func (prometheus) filters() []string { return strings.Split(labels, ", ") }

func (p prometheus) variables() []dashboard.VariableModel {
	out := []dashboard.VariableModel{datasourceVariable(PrometheusPlugin)}
	if p.fixed == "" {
		out = append(out, choiceVariable("window", "Window", "How far back each point looks.", "5m", "1m", "1h"))
	}
	for _, l := range p.filters() {
		v := nameVariable(l, PrometheusPlugin, ".*", &dashboard.StringOrMap{Map: map[string]any{
			"query": "label_values(retrylens_operations, " + l + ")", "refId": "PrometheusVariableQueryEditor-VariableQuery",
		}})
		v.Regex = ptr("/^[^`]+$/") // a backquote would end the matcher
		out = append(out, v)
	}
	return out
}
