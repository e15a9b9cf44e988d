package dashboards

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// ClickHousePlugin is the data source that the dashboards for ClickHouse are for.
const ClickHousePlugin = "grafana-clickhouse-datasource"

// SQL is a query of grafana-clickhouse-datasource, of which the foundation SDK has no type.
type SQL struct {
	Datasource    *common.DataSourceRef `json:"datasource,omitempty"`
	EditorType    string                `json:"editorType"`
	Format        int                   `json:"format"` // 0 = time series, 1 = table
	PluginVersion string                `json:"pluginVersion"`
	QueryType     string                `json:"queryType"`
	RawSQL        string                `json:"rawSql"`
	RefID         string                `json:"refId"`
}

// The methods of variants.Dataquery.

// ImplementsDataqueryVariant marks a query.
func (SQL) ImplementsDataqueryVariant() {}

// Equals tells whether another query is the same.
func (q SQL) Equals(o variants.Dataquery) bool {
	other, ok := o.(SQL)
	return ok && q.RawSQL == other.RawSQL && q.Format == other.Format && q.RefID == other.RefID
}

// DataqueryType is the plugin.
func (SQL) DataqueryType() string { return ClickHousePlugin }

// Validate has nothing to say: the tests run every query.
func (SQL) Validate() error { return nil }

func tableSQL(text string) []variants.Dataquery {
	return []variants.Dataquery{SQL{datasource(ClickHousePlugin), "sql", 1, "4.0.0", "table", text, refID(0)}}
}

func timeSQL(text string) []variants.Dataquery {
	return []variants.Dataquery{SQL{datasource(ClickHousePlugin), "sql", 0, "4.0.0", "timeseries", text, refID(0)}}
}

// Names of variables are percent-encoded wherever they stand in SQL: the formats singlequote
// and sqlstring leave a backslash as it is, which ClickHouse takes for an escape.
const (
	database = "${database:percentencode}"
	wide     = "86400"         // the step of one sum
	fine     = "$__interval_s" // the step of a chart
)

// filters are the dimensions that variables filter by.
var filters = []string{"tenant", "service", "environment", "provider", "model"}

// between is the view of the rollups of the dashboard's window. Dimensions that are free are
// not filtered by.
func between(step string, free ...string) string {
	args := []string{"from = $__fromTime, to = $__toTime, step = " + step}
	for _, f := range filters {
		list := "${" + f + ":percentencode}"
		for _, d := range free {
			if d == f {
				list = "*"
			}
		}
		args = append(args, f+" = '"+list+"'")
	}
	return database + ".rollups_between(" + strings.Join(args, ",\n    ") + ") AS r"
}

// sum adds columns up; the names may be joined by + or -. They are those of r: a bare name would
// be taken for the sum that has the same one.
func sum(columns string) string {
	names := strings.FieldsFunc(columns, func(r rune) bool { return r == '+' || r == '-' })
	for i, n := range names {
		names[i] = "sum(r." + n + ")"
	}
	sign := " + "
	if strings.Contains(columns, "-") {
		sign = " - "
	}
	text := strings.Join(names, sign)
	if len(names) > 1 {
		text = "(" + text + ")"
	}
	return text
}

// SQLOf is a figure as an expression over rows of rollups_between. A ratio of nothing is
// NULL. It panics for a figure that is none.
func SQLOf(figure string) string {
	if q, ok := lookupQuotient(figure); ok {
		under := sum(q.under)
		if strings.HasSuffix(q.under, "_usd") {
			return fmt.Sprintf("toFloat64(%s) / nullIf(toFloat64(%s), 0)", sum(q.over), under)
		}
		return fmt.Sprintf("%s / nullIf(%s, 0)", sum(q.over), under)
	}
	if columns, ok := added[figure]; ok {
		return sum(columns)
	}
	formula(figure)
	return sum(figure)
}

func selected(figures []string) string {
	terms := make([]string, len(figures))
	for i, f := range figures {
		terms[i] = SQLOf(f) + " AS " + f
	}
	return strings.Join(terms, ",\n    ")
}

const homeRows = "\nWHERE kind = 'home'"

// clickhouse asks the rollups.
type clickhouse struct{}

func (clickhouse) name() string   { return "clickhouse" }
func (clickhouse) plugin() string { return ClickHousePlugin }
func (clickhouse) window() string { return "" }
func (clickhouse) note() string {
	return "Of whole minutes that begin within the time range, as the rollups hold them: see how far the finaliser is behind."
}
func (clickhouse) quantileUnit() string { return units.Milliseconds }

func (clickhouse) one(figure string) []variants.Dataquery {
	return tableSQL("SELECT\n    " + selected([]string{figure}) + "\nFROM " + between(wide) + homeRows)
}

func (clickhouse) over(figures ...string) []variants.Dataquery {
	return timeSQL("SELECT\n    $__timeInterval(bucket) AS time,\n    " + selected(figures) + "\nFROM " + between(fine) + homeRows + "\nGROUP BY time\nORDER BY time")
}

func (clickhouse) entries(figure string) []variants.Dataquery {
	f := formula(figure)
	return timeSQL("SELECT time, tupleElement(entry, 1) AS " + f.Label + ", tupleElement(entry, 2) AS " + figure + "\nFROM\n(\n" +
		"SELECT $__timeInterval(bucket) AS time, arrayJoin([\n    " + strings.Join(entryColumns(f), ",\n    ") + "]) AS entry\nFROM " + between(fine) + homeRows +
		"\nGROUP BY time\n)\nWHERE tupleElement(entry, 2) > 0\nORDER BY time, " + f.Label)
}

func entryColumns(f metrics.Formula) []string {
	out := make([]string, len(f.Keys))
	for i, key := range f.Keys {
		out[i] = fmt.Sprintf("('%s', sum(r.%s_%s))", key, f.Name, key)
	}
	return out
}

func (clickhouse) quantiles(figure string) []variants.Dataquery {
	name := strings.TrimSuffix(figure, "_ms")
	text := "SELECT\n    $__timeInterval(bucket) AS time"
	for _, q := range []struct{ name, p string }{{"p50", "0.5"}, {"p90", "0.9"}, {"p99", "0.99"}} {
		text += fmt.Sprintf(",\n    quantileExactWeightedOrNullArray(%s)(r.%s_ms, r.%s_n) AS %s", q.p, name, name, q.name)
	}
	return timeSQL(text + "\nFROM " + between(fine, "service", "environment") + homeRows + "\nGROUP BY time\nORDER BY time")
}

func (clickhouse) rows(dimensions []string, figures ...string) query {
	groups := strings.Join(dimensions, ", ")
	return query{targets: tableSQL("SELECT\n    " + groups + ",\n    " + selected(figures) + "\nFROM " + between(wide) + homeRows +
		"\nGROUP BY " + groups + "\nORDER BY " + sum(orderOf(figures)) + " DESC\nLIMIT 200")}
}

// orderOf is the counter by which rows are sorted: the first of the figures that is one.
func orderOf(figures []string) string {
	for _, f := range figures {
		for i := range rollup.Figures {
			if rollup.Figures[i].Name == f {
				return f
			}
		}
	}
	panic("dashboards: a table needs a counter")
}

func (clickhouse) positions() query {
	var columns []string
	for _, key := range formula("attempts_by_position").Keys {
		columns = append(columns, fmt.Sprintf("('%s', sum(r.attempts_by_position_%s), sum(r.successes_by_position_%s))", key, key, key))
	}
	return query{targets: tableSQL("SELECT tupleElement(entry, 1) AS position, tupleElement(entry, 2) AS attempts, tupleElement(entry, 3) AS successes, successes / attempts AS success_ratio\nFROM\n(\n" +
		"SELECT arrayJoin([\n    " + strings.Join(columns, ",\n    ") + "]) AS entry\nFROM " + between(wide) + homeRows + "\n)\nWHERE attempts > 0\nORDER BY position")}
}

// chosenGroup is the column that the variable group names. It is no identifier in the text:
// a link can hold any value.
func chosenGroup(dimensions []string) string {
	terms := make([]string, 0, 2*len(dimensions)+1)
	for _, d := range dimensions[1:] {
		terms = append(terms, "'${group:percentencode}' = '"+d+"', "+d)
	}
	return "multiIf(" + strings.Join(append(terms, dimensions[0]), ", ") + ")"
}

func (clickhouse) filters() []string { return filters }

func (clickhouse) variables() []dashboard.VariableModel {
	out := []dashboard.VariableModel{
		datasourceVariable(ClickHousePlugin),
		{
			Type: dashboard.VariableTypeQuery, Name: "database", Label: ptr("Store"), Description: ptr("The database of Retrylens."),
			Datasource: datasource(ClickHousePlugin), Refresh: ptr(dashboard.VariableRefreshOnDashboardLoad),
			Query: text("SELECT database FROM system.tables WHERE name = 'rollups_between' ORDER BY database = 'retrylens' DESC, database"),
		},
	}
	for _, f := range filters {
		out = append(out, nameVariable(f, ClickHousePlugin, "*", text("SELECT DISTINCT "+f+" FROM "+database+".rollups_between("+
			"from = $__fromTime, to = $__toTime, step = 86400, tenant = '*', service = '*', environment = '*', provider = '*', model = '*') WHERE "+f+" != '' ORDER BY "+f+" LIMIT 1000")))
	}
	return out
}
