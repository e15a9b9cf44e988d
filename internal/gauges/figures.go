package gauges

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrylens/retrylens/internal/metrics"
)

var labels = []string{"window", "tenant", "provider", "model"}

// perHour are sums that are shown as a rate too, so that windows can be compared.
var perHour = map[string]bool{"orphaned_cost_usd": true, "billed_cost_usd": true}

// exported is one figure as Prometheus has it.
type exported struct {
	desc    *prometheus.Desc
	formula metrics.Formula
	hourly  *prometheus.Desc // nil = none
	summary bool             // quantiles in milliseconds, shown as a summary in seconds
}

// figures are all of a report, under retrylens_ and their own name; milliseconds
// become seconds, as Prometheus has it.
var figures = exportAll()

func exportAll() []exported {
	var out []exported
	for _, f := range metrics.Formulas {
		e := exported{formula: f, summary: f.Unit == metrics.UnitMS}
		switch {
		case e.summary:
			e.desc = desc(secondsName(f.Name), help(f)+" Count and sum are of the window.", labels...)
		case f.Label != "":
			e.desc = desc(f.Name, help(f), append(labels[:len(labels):len(labels)], f.Label)...)
		default:
			e.desc = desc(f.Name, help(f), labels...)
		}
		if perHour[f.Name] {
			e.hourly = desc(f.Name+"_per_hour", help(f)+" As a rate.", labels...)
		}
		out = append(out, e)
	}
	return out
}

// help says that a figure is of the window, not since the start.
func help(f metrics.Formula) string { return "Of the window: " + f.Text + "." }

// secondsName is the name of a figure in milliseconds, told in seconds.
func secondsName(name string) string { return name[:len(name)-len("_ms")] + "_seconds" }

func (v *view) collect(ch chan<- prometheus.Metric) {
	for i := range v.rows {
		row := &v.rows[i]
		values := append([]string{v.window.Name}, row.Dims...)
		for _, f := range figures {
			f.collect(ch, row, values, v.window.Span)
		}
	}
}

// collect shows a figure of a row; one without value is absent.
func (e *exported) collect(ch chan<- prometheus.Metric, row *metrics.Row, values []string, span time.Duration) {
	switch {
	case e.summary:
		e.collectSummary(ch, row, values)
	case e.formula.Label != "":
		for _, entry := range e.formula.Entries(row) {
			if n, ok := entry.Value.Float64(); ok {
				ch <- gauge(e.desc, n, append(values[:len(values):len(values)], entry.Key)...)
			}
		}
	default:
		if n, ok := e.formula.Value(row).Float64(); ok {
			ch <- gauge(e.desc, n, values...)
			if e.hourly != nil {
				ch <- gauge(e.hourly, n/span.Hours(), values...)
			}
		}
	}
}

// quantileOf are the keys of quantiles.
var quantileOf = map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99}

func (e *exported) collectSummary(ch chan<- prometheus.Metric, row *metrics.Row, values []string) {
	if row.Samples == nil {
		return
	}
	samples := &row.Samples.Latency
	if e.formula.Name == "retry_tax_ms" {
		samples = &row.Samples.RetryTax
	}
	quantiles := map[float64]float64{}
	for _, entry := range e.formula.Entries(row) {
		if ms, ok := entry.Value.Float64(); ok {
			quantiles[quantileOf[entry.Key]] = ms / 1000
		}
	}
	if len(quantiles) > 0 {
		ch <- prometheus.MustNewConstSummary(e.desc, samples.Count(), float64(samples.Sum())/1000, quantiles, values...)
	}
}
