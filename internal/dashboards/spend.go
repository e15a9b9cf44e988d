package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// groups are the dimensions that spend can be grouped by.
var groups = []string{"tenant", "service", "environment", "operation", "provider", "model"}

var spendFigures = []string{"billed_cost_usd", "orphaned_cost_usd", "orphaned_cost_ratio", "recovered_cost_usd", "redundant_cost_usd", "orphaned_tokens", "orphan_suspects"}

// spend is what retries cost.
func spend(s source) Dashboard {
	about := "What was billed, what nobody received, and why. Grafana shows money as floating point: the exact figures are in the pages' Spend and in exports."
	if s.name() == "prometheus" {
		about += " These are of the last hour: sums of days are in the dashboard for ClickHouse and in the pages."
	}
	b := newBoard(s, "spend", "spend", about)
	b.section("Sums")
	b.one(4, "billed_cost_usd")
	b.one(4, "orphaned_cost_usd")
	b.one(4, "orphaned_cost_ratio")
	b.one(4, "recovered_cost_usd")
	b.one(4, "redundant_cost_usd")
	b.one(4, "cost_per_rescue_usd")
	b.section("Over time")
	b.over("Billed and orphaned", []string{"billed_cost_usd", "orphaned_cost_usd"})
	b.over("Recovered by replays, and bought twice", []string{"recovered_cost_usd", "redundant_cost_usd"})
	b.entries(12, "Orphaned cost by reason", "orphaned_cost_usd_by_reason")
	b.entries(12, "Orphaned tokens by reason", "orphaned_tokens_by_reason")
	b.entries(12, "Orphaned tokens by how sure their number is", "orphaned_tokens_by_usage_source")
	b.over("Attempts that cost and delivered nothing, and those of unknown cost", []string{"orphaned_attempts", "orphan_suspects"})
	b.section("Of whom")
	if s.name() == "clickhouse" {
		b.variable(choiceVariable("group", "Group by", "What the table of spend is grouped by.", "provider", "model", "tenant", "service", "environment", "operation"))
		b.grouped()
		b.executed()
	} else {
		b.rows(10, "By tenant, provider and model", []string{"tenant", "provider", "model"}, spendFigures)
	}
	b.section("How far to trust this")
	trust(b)
	return b.d
}

// grouped is spend by the variable group.
func (b *board) grouped() {
	q := query{targets: tableSQL(lines(
		"SELECT", "    "+chosenGroup(groups)+" AS name,", "    "+selected(spendFigures), "FROM "+between(wide)+homeRows,
		"GROUP BY name", "ORDER BY sum(r.orphaned_cost_usd) DESC", "LIMIT 200"))}
	triage := link("Triage in Retrylens", `${ui}/?${__url_time_range}&var-${group}=${__data.fields["name"]:percentencode}`)
	cols := append([]column{{name: "name", unit: "string", links: []dashboard.DashboardLink{triage}}}, figureColumns(spendFigures)...)
	b.put(columns, 10, panel{title: "By ${group}", about: b.about(spendFigures...), unit: "currencyUSD"}.table(b.plugin(), q, cols...))
}

// executed is spend by what was executed, which is not always what an operation began with.
func (b *board) executed() {
	dims := []string{"executed_provider", "executed_model"}
	figures := []string{"billed_cost_usd", "billed_tokens", "orphaned_cost_usd", "recovered_cost_usd", "redundant_cost_usd"}
	q := query{targets: tableSQL(lines(
		"SELECT", "    if(r.kind = 'spend', r.executed_provider, r.provider) AS executed_provider,", "    if(r.kind = 'spend', r.executed_model, r.model) AS executed_model,",
		"    "+selected(figures), "FROM "+between(wide),
		"GROUP BY executed_provider, executed_model", "HAVING sum(r.executed_attempts) > 0", "ORDER BY sum(r.billed_cost_usd) DESC", "LIMIT 200"))}
	cols := append([]column{{name: dims[0], unit: "string"}, {name: dims[1], unit: "string"}}, figureColumns(figures)...)
	about := "By the provider and model of the attempts themselves, which is what reconciles with a bill; the filters are of the operations.\n\n" + b.about(figures...)
	b.put(columns, 10, panel{title: "By executed provider and model", about: about, unit: "currencyUSD"}.table(b.plugin(), q, cols...))
}
