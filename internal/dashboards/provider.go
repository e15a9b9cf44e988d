package dashboards

// provider is one provider, or several, in detail.
func provider(s source) Dashboard {
	b := newBoard(s, "provider", "provider in detail", "Choose a provider: how it fails, what another attempt is worth, which layer multiplies, whether Retry-After is honoured.")
	b.section("Now")
	b.one(4, "operations")
	b.one(4, "amplification", amplificationSteps...)
	b.one(4, "error_ratio")
	b.one(4, "attempt_error_ratio")
	b.one(4, "retry_success_ratio")
	b.one(4, "hidden_calls", badAboveZero...)
	b.section("How it fails")
	b.entries(12, "Errors by class", "errors_by_class")
	b.entries(12, "Why nobody tried again", "stops_by_reason")
	b.over("Errors, seen and hidden", []string{"error_ratio", "attempt_error_ratio"})
	b.over("Operations", []string{"operations", "succeeded", "failed", "open", "lost"})
	b.section("What retries do")
	b.put(8, 8, panel{
		title: "What another attempt is worth" + s.window(), about: b.about("attempts_by_position", "successes_by_position"), unit: "short",
	}.table(s.plugin(), s.positions(), column{name: "position", unit: "string"}, column{name: "success_ratio", unit: "percentunit", decimals: ptr(1.0)}))
	b.entries(16, "Upstream calls by cause", "upstream_calls_by_cause")
	b.quantiles(12, "Latency"+slowest(s), "latency_ms", quantileNote(s))
	b.quantiles(12, "Retry tax"+slowest(s), "retry_tax_ms", quantileNote(s))
	b.section("Who behaves badly")
	b.over("Retries that came before they were allowed, or might run twice", []string{"retry_after_violations", "unkeyed_after_send"})
	b.over("Duplicates and silent resends", []string{"duplicates_served", "duplicates_refused", "key_conflicts", "hidden_calls", "shed"})
	b.rows(10, "By provider and model", []string{"provider", "model"},
		[]string{"operations", "amplification", "retry_success_ratio", "rescue_ratio", "error_ratio", "attempt_error_ratio", "layer_factor", "retry_after_violations", "orphaned_cost_usd"})
	b.section("How far to trust this")
	trust(b)
	return b.d
}
