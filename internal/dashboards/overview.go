package dashboards

// overview is what an SRE opens first.
func overview(s source) Dashboard {
	b := newBoard(s, "overview", "overview", "Is an outage hidden by retries, of whom, and what does it cost? Effective success beside actual success: the gap is what retries hide.")
	b.section("Now")
	b.one(3, effective)
	b.one(3, actual)
	b.one(3, "amplification", amplificationSteps...)
	b.one(3, "retry_ratio")
	b.one(3, "retry_success_ratio")
	b.one(3, "orphaned_cost_usd")
	b.one(3, "duplicates_served")
	b.one(3, "operations")
	b.section("Over time")
	b.over("Success, effective and actual", []string{effective, actual})
	b.over("Amplification and retry ratio", []string{"amplification", "retry_ratio"}, amplificationSteps...)
	b.entries(12, "Upstream calls by cause: which layer multiplies", "upstream_calls_by_cause")
	b.entries(12, "Errors by class", "errors_by_class")
	b.over("What a retry is worth", []string{"retry_success_ratio", "retry_rate"})
	b.quantiles(12, "Latency"+slowest(s), "latency_ms", quantileNote(s))
	b.section("Of whom")
	b.rows(10, "By tenant, provider and model", []string{"tenant", "provider", "model"},
		[]string{"operations", "amplification", "retry_ratio", "retry_success_ratio", "error_ratio", "attempt_error_ratio", "duplicates_served", "orphaned_cost_usd", "orphaned_cost_ratio"})
	if s.name() == "clickhouse" {
		b.section("Alerts of analyze serve")
		b.alerts()
	} else {
		b.section("The detector of masked outages")
		b.states()
	}
	b.section("How far to trust this")
	trust(b)
	return b.d
}

func slowest(s source) string {
	if s.name() == "prometheus" {
		return " of the slowest series"
	}
	return ""
}

func quantileNote(s source) string {
	if s.name() == "prometheus" {
		return "Of the slowest tenant, provider and model: quantiles of several series cannot be joined."
	}
	return "Kept by tenant, provider and model: service and environment do not filter it. Within 0.4 % of the nearest rank."
}
