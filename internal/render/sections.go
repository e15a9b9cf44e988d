package render

import (
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"slices"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// section is a part of the report of one row: every figure stands in exactly
// one.
type section struct {
	title   string
	figures []string
}

var sections = []section{
	{"Success: what a dashboard shows, and what retries hide", []string{"error_ratio", "attempt_error_ratio"}},
	{"Operations", []string{"operations", "succeeded", "failed", "open", "lost"}},
	{"Retries", []string{
		"amplification", "retry_ratio", "retry_rate", "retry_success_ratio", "rescue_ratio",
		"attempts", "retries", "retry_successes", "rescued", "shed",
	}},
	{"Time", []string{"latency_ms", "retry_tax_ms"}},
	{"Spend", []string{
		"billed_cost_usd", "billed_tokens", "orphaned_cost_usd", "orphaned_cost_ratio", "orphaned_tokens",
		"orphaned_prompt_tokens", "orphaned_completion_tokens", "orphaned_attempts", "orphan_suspects",
		"orphaned_cost_usd_by_reason", "orphaned_tokens_by_reason", "orphaned_tokens_by_usage_source",
		"recovered_cost_usd", "recovered_tokens", "redundant_cost_usd", "redundant_tokens", "cost_per_rescue_usd",
	}},
	{"Upstream", []string{"upstream_calls", "upstream_calls_by_cause", "hidden_calls", "layer_factor"}},
	{"Failures", []string{"errors_by_class", "stops_by_reason", "attempts_by_position", "successes_by_position"}},
	{"Rules", []string{"retry_after_violations", "unkeyed_after_send", "duplicates_served", "duplicates_refused", "key_conflicts"}},
}

// notes say beside a value what it is a share of, or how to read it.
var notes = map[string]func(*metrics.Row) string{
	"error_ratio": func(r *metrics.Row) string {
		return "of " + format.Grouped(r.Succeeded+r.Failed) + " finished operations failed"
	},
	"attempt_error_ratio": func(r *metrics.Row) string {
		return "of " + format.Grouped(r.Attempts) + " attempts delivered nothing in full"
	},
	"amplification":       func(*metrics.Row) string { return "upstream calls an operation" },
	"retry_ratio":         func(*metrics.Row) string { return "attempts an operation" },
	"retry_rate":          func(r *metrics.Row) string { return "of " + format.Grouped(r.Attempts) + " attempts are retries" },
	"retry_success_ratio": func(r *metrics.Row) string { return "of " + format.Grouped(r.Retries) + " retries succeeded" },
	"rescue_ratio": func(r *metrics.Row) string {
		return "of " + format.Grouped(r.RetriedOperations) + " retried operations rescued"
	},
	"orphaned_cost_ratio": func(r *metrics.Row) string { return "of the billed cost was never received" },
	"billed_cost_usd":     knownUsageNote,
	"billed_tokens":       knownUsageNote,
	"orphan_suspects":     func(*metrics.Row) string { return "perhaps executed, usage unknown: not priced" },
	"layer_factor":        func(*metrics.Row) string { return "upstream calls an attempt, where both hops report" },
}

func knownUsageNote(r *metrics.Row) string {
	return "lower bound: usage known of " + format.Grouped(r.ExecutedKnownUsage) + " of " + format.Grouped(r.ExecutedAttempts) + " executed attempts"
}

func note(name string, row *metrics.Row) string {
	if n := notes[name]; n != nil {
		return n(row)
	}
	return ""
}

// entriesText writes the entries of a figure, the largest first.
func entriesText(f metrics.Formula, row *metrics.Row) []string {
	entries := f.Entries(row)
	if f.Unit != metrics.UnitMS && f.Label != "position" { // those have an order of their own
		slices.SortStableFunc(entries, func(a, b metrics.Entry) int { return larger(a.Value, b.Value) })
	}
	words := make([]string, len(entries))
	for i, e := range entries {
		words[i] = format.Safe(e.Key) + " " + format.Short(f, e.Value)
	}
	return words
}

func larger(a, b metrics.Value) int {
	if a.Unit == metrics.UnitUSD {
		return b.Money.Cmp(a.Money)
	}
	switch {
	case a.Count > b.Count:
		return -1
	case a.Count < b.Count:
		return 1
	}
	return 0
}

// counted says which rows went into a figure, and how many.
func counted(name string, r *metrics.Row) string {
	if terms, ok := quotients[name]; ok {
		return terms(r)
	}
	switch {
	case slices.Contains([]string{"operations", "succeeded", "failed", "open", "lost", "rescued"}, name):
		return countedFrom("operations", r.Operations)
	case strings.HasPrefix(name, "orphaned_") && name != "orphaned_attempts":
		return countedFrom("orphaned attempts", r.OrphanedAttempts) + " of executed " + format.Grouped(r.ExecutedAttempts)
	case strings.HasPrefix(name, "billed_"):
		return countedFrom("executed attempts with known usage", r.ExecutedKnownUsage) + " of executed " + format.Grouped(r.ExecutedAttempts)
	case slices.Contains(fromExecuted, name):
		return countedFrom("executed attempts", r.ExecutedAttempts)
	case name == "unkeyed_after_send" || name == "retry_successes":
		return countedFrom("retries", r.Retries)
	case strings.HasPrefix(name, "duplicates_"):
		return "counted: every inner record"
	case name == "key_conflicts":
		return "counted: every outer record"
	case name == "latency_ms" || name == "retry_tax_ms":
		return countedFrom("succeeded operations", r.Succeeded) + ", those whose delivering record has a duration"
	}
	return countedFrom("counted records", r.Attempts)
}

var fromExecuted = []string{
	"upstream_calls", "upstream_calls_by_cause", "hidden_calls", "orphaned_attempts", "orphan_suspects",
	"recovered_tokens", "recovered_cost_usd", "redundant_tokens", "redundant_cost_usd",
}

func countedFrom(what string, n uint64) string { return "counted: " + what + " " + format.Grouped(n) }

// quotients show the two numbers that a ratio divides.
var quotients = map[string]func(*metrics.Row) string{
	"retry_ratio": func(r *metrics.Row) string { return quotient("attempts", r.Attempts, "operations", r.Operations) },
	"retry_rate":  func(r *metrics.Row) string { return quotient("retries", r.Retries, "attempts", r.Attempts) },
	"amplification": func(r *metrics.Row) string {
		return quotient("upstream_calls", r.UpstreamCalls, "operations", r.Operations)
	},
	"retry_success_ratio": func(r *metrics.Row) string {
		return quotient("retry_successes", r.RetrySuccesses, "retries", r.Retries)
	},
	"rescue_ratio": func(r *metrics.Row) string {
		return quotient("rescued", r.Rescued, "retried operations", r.RetriedOperations)
	},
	"attempt_error_ratio": func(r *metrics.Row) string { return quotient("undelivered", r.FailedAttempts, "attempts", r.Attempts) },
	"layer_factor": func(r *metrics.Row) string {
		return quotient("upstream_calls", r.LayerUpstreamCalls, "attempts", r.LayerAttempts)
	},
	"error_ratio": func(r *metrics.Row) string {
		return fmt.Sprintf("= failed %s / (succeeded %s + failed %s)", format.Grouped(r.Failed), format.Grouped(r.Succeeded), format.Grouped(r.Failed))
	},
	"orphaned_cost_ratio": func(r *metrics.Row) string {
		return fmt.Sprintf("= orphaned_cost_usd %s / billed_cost_usd %s", r.OrphanedCostUSD, r.BilledCostUSD)
	},
	"cost_per_rescue_usd": func(r *metrics.Row) string {
		return fmt.Sprintf("= undelivered cost of rescued operations %s / rescued %s", r.RescueCostUSD, format.Grouped(r.Rescued))
	},
}

func quotient(num string, n uint64, den string, d uint64) string {
	return fmt.Sprintf("= %s %s / %s %s", num, format.Grouped(n), den, format.Grouped(d))
}
