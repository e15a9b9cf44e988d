package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/retrylens/retrylens/internal/metrics"
)

// quotient is a figure that does not add up: the sum of one counter over that of another.
// Both are columns of a rollup, or sums of them.
type quotient struct{ name, over, under, text string }

// quotients are the ratios of internal/metrics, and those that only dashboards show.
var quotients = []quotient{
	{name: "retry_ratio", over: "attempts", under: "operations"},
	{name: "retry_rate", over: "retries", under: "attempts"},
	{name: "amplification", over: "upstream_calls", under: "operations"},
	{name: "retry_success_ratio", over: "retry_successes", under: "retries"},
	{name: "rescue_ratio", over: "rescued", under: "retried_operations"},
	{name: "error_ratio", over: "failed", under: "succeeded+failed"},
	{name: "attempt_error_ratio", over: "failed_attempts", under: "attempts"},
	{name: "orphaned_cost_ratio", over: "orphaned_cost_usd", under: "billed_cost_usd"},
	{name: "layer_factor", over: "layer_upstream_calls", under: "layer_attempts"},
	{name: "cost_per_rescue_usd", over: "rescue_cost_usd", under: "rescued"},
	{name: effective, over: "succeeded", under: "succeeded+failed", text: "1 - error_ratio: of the operations that ended, those that succeeded in the end. What a success-rate dashboard shows"},
	{name: actual, over: "attempts-failed_attempts", under: "attempts", text: "1 - attempt_error_ratio: of all attempts, those that delivered. The gap to effective success is what retries hide"},
	{name: knownUsage, over: "executed_known_usage", under: "executed_attempts", text: "share of executed attempts whose usage is known; billed and orphaned figures are a lower bound by the rest"},
}

// Figures that are shown and are no formula of internal/metrics.
const (
	effective  = "effective_success_ratio"
	actual     = "actual_success_ratio"
	knownUsage = "known_usage_ratio"
)

// added are the counters that are sums of columns.
var added = map[string]string{"orphaned_tokens": "orphaned_prompt_tokens+orphaned_completion_tokens"}

func lookupQuotient(name string) (quotient, bool) {
	for _, q := range quotients {
		if q.name == name {
			return q, true
		}
	}
	return quotient{}, false
}

// formula is that of a figure; it panics for a name that internal/metrics does not have, so
// that a dashboard cannot be made of it.
func formula(name string) metrics.Formula {
	f, ok := metrics.LookupFormula(name)
	if !ok {
		panic("dashboards: no figure " + name)
	}
	return f
}

// describe is the definition of figures, one a line.
func describe(names ...string) string {
	lines := make([]string, len(names))
	for i, name := range names {
		q, _ := lookupQuotient(name)
		if q.text == "" {
			q.text = formula(name).Text
		}
		lines[i] = "`" + name + "`: " + q.text + "."
	}
	return strings.Join(lines, "\n\n")
}

// around are the ratios that are near 1 and no shares.
var around = map[string]bool{"retry_ratio": true, "amplification": true, "layer_factor": true}

// unitOf is the unit of a figure as Grafana names it.
func unitOf(name string) string {
	if _, own := lookupQuotient(name); own && !around[name] && name != "cost_per_rescue_usd" {
		return units.PercentUnit
	}
	switch formula(name).Unit {
	case metrics.UnitUSD:
		return units.Dollars
	case metrics.UnitMS:
		return units.Milliseconds
	case metrics.UnitRatio:
		return units.Number
	default:
		return units.Short
	}
}

// decimalsOf is how many decimals are shown; nil = Grafana decides.
func decimalsOf(name string) *float64 {
	switch unit := unitOf(name); {
	case around[name]:
		return ptr(3.0)
	case unit == units.PercentUnit:
		return ptr(2.0)
	case unit == units.Dollars:
		return ptr(4.0)
	}
	return nil
}

// titleOf is a figure's name as a title.
func titleOf(name string) string {
	words := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(name, "_usd"), "_ratio"), "_", " ")
	switch name { // where the ratio is not clear without the word
	case "retry_ratio", "error_ratio", "attempt_error_ratio", "orphaned_cost_ratio", "rescue_ratio":
		words += " ratio"
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

func ptr[T any](v T) *T { return &v }
