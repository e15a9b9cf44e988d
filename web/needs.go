package web

// What the tables and tiles of the pages are made of beside the number of operations; a report of few counters costs a
// fraction of one of all. TestPagesNeedNoMoreThanTheyAsk holds the pages to it.
var (
	triageNeeds = []string{
		"succeeded", "failed", "attempts", "failed_attempts", "retries", "retry_successes", "upstream_calls", "upstream_calls_by_cause",
		"errors_by_class", "orphaned_cost_usd", "orphan_suspects",
	}
	errorsNeeds = []string{
		"attempts", "failed_attempts", "errors_by_class", "retry_after_violations", "unkeyed_after_send", "stops_by_reason",
		"attempts_by_position", "successes_by_position",
	}
	partsNeeds  = []string{"attempts", "failed_attempts"} // which failed attempts have more often than attempts
	layersNeeds = []string{"attempts", "upstream_calls", "hidden_calls", "upstream_calls_by_cause", "layer_upstream_calls", "layer_attempts", "billed_cost_usd"}
	spendNeeds  = []string{
		"billed_cost_usd", "billed_tokens", "orphaned_cost_usd", "orphaned_prompt_tokens", "orphaned_completion_tokens", "orphan_suspects", "recovered_cost_usd", "redundant_cost_usd",
	}
	orphanNeeds = []string{
		"billed_cost_usd", "orphaned_cost_usd", "orphaned_prompt_tokens", "orphaned_completion_tokens", "orphan_suspects", "recovered_cost_usd", "redundant_cost_usd",
		"rescued", "rescue_cost_usd", "orphaned_tokens_by_reason", "orphaned_cost_usd_by_reason", "orphaned_tokens_by_usage_source",
	}
)

// needs are the counters of a page, or all where the URL sorts: it may by any figure.
func (s *state) needs(counters []string) []string {
	if s.values.Get(paramSort) != "" {
		return nil
	}
	return counters
}
