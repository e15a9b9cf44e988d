package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	promql "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// source asks a data source for figures. Dimensions are those of internal/metrics.
type source interface {
	// name is a word for paths, uids and tags; plugin is what Grafana calls the data source.
	name() string
	plugin() string

	// one asks for one number, of the window.
	one(figure string) []variants.Dataquery
	// over asks for figures over time.
	over(figures ...string) []variants.Dataquery
	// entries asks for the entries of a figure over time.
	entries(figure string) []variants.Dataquery
	// quantiles asks for p50, p90 and p99 over time.
	quantiles(figure string) []variants.Dataquery
	// rows asks for a table of figures, a row for each group.
	rows(dimensions []string, figures ...string) query
	// positions asks for a table of attempts and successes by position.
	positions() query

	// window says what the numbers are of, for titles; note what a reader must know.
	window() string
	note() string
	variables() []dashboard.VariableModel
	// filters are the dimensions that variables filter by.
	filters() []string
	// quantileUnit is the unit of quantiles.
	quantileUnit() string
}

// query is what a table asks, and what Grafana makes of the answers.
type query struct {
	targets    []variants.Dataquery
	transforms []dashboard.DataTransformerConfig
}

// datasource is the variable that holds the data source: no uid is written anywhere.
func datasource(plugin string) *common.DataSourceRef {
	return &common.DataSourceRef{Type: ptr(plugin), Uid: ptr("${datasource}")}
}

// refID names the queries of a panel.
func refID(i int) string { return string(rune('A' + i)) }

// Text is what a query asks: SQL or PromQL.
func Text(q variants.Dataquery) string {
	switch q := q.(type) {
	case SQL:
		return q.RawSQL
	case promql.Dataquery:
		return q.Expr
	}
	return ""
}
