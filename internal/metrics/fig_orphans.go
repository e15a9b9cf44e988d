package metrics

import "github.com/retrylens/retrylens"

var orphanFormulas = spend(
	counter("orphaned_attempts", "undelivered executed attempts of known usage with tokens > 0 or cost > 0: paid for, never received",
		func(c *Counters) uint64 { return c.OrphanedAttempts }),
	tokenSum("orphaned_tokens", "orphaned_prompt_tokens + orphaned_completion_tokens",
		func(c *Counters) uint64 { return c.OrphanedPromptTokens + c.OrphanedCompletionTokens }),
	tokenSum("orphaned_prompt_tokens", "Σ prompt_tokens of orphaned attempts",
		func(c *Counters) uint64 { return c.OrphanedPromptTokens }),
	tokenSum("orphaned_completion_tokens", "Σ completion_tokens of orphaned attempts",
		func(c *Counters) uint64 { return c.OrphanedCompletionTokens }),
	moneySum("orphaned_cost_usd", "Σ cost_usd of orphaned attempts",
		func(c *Counters) retrylens.Money { return c.OrphanedCostUSD }),
	tokensBy("orphaned_tokens_by_reason", "orphaned_tokens by why the caller never got the response",
		"reason", OrphanReasons, func(c *Counters) map[string]uint64 { return c.OrphanedTokensByReason }),
	moneyBy("orphaned_cost_usd_by_reason", "orphaned_cost_usd by why the caller never got the response",
		"reason", OrphanReasons, func(c *Counters) map[string]retrylens.Money { return c.OrphanedCostUSDByReason }),
	tokensBy("orphaned_tokens_by_usage_source", "orphaned_tokens by usage_source",
		"usage_source", retrylens.UsageSources, func(c *Counters) map[string]uint64 { return c.OrphanedTokensByUsageSource }),
	counter("orphan_suspects", "undelivered executed attempts of unknown usage, not refused before generation; never priced",
		func(c *Counters) uint64 { return c.OrphanSuspects }),
	ratioOf("orphaned_cost_ratio", "orphaned_cost_usd / billed_cost_usd",
		func(f Figures) retrylens.Opt[float64] { return f.OrphanedCostRatio }),
)

func tokensBy[K ~string](name, text, label string, keys []K, get func(*Counters) map[string]uint64) Formula {
	f := countsBy(name, text, label, keys, get)
	f.Unit = UnitTokens
	return f
}

// addOrphaned counts an orphaned attempt or a suspect.
func (r *Record) addOrphaned(c *Counters) {
	switch r.Fate {
	case FateSuspect:
		c.OrphanSuspects++
	case FateOrphaned:
		reason, n := string(r.OrphanReason), tokens(r.Attempt)
		c.OrphanedAttempts++
		c.OrphanedPromptTokens += uint64(r.PromptTokens.Or(0))
		c.OrphanedCompletionTokens += uint64(r.CompletionTokens.Or(0))
		c.OrphanedCostUSD = c.OrphanedCostUSD.Add(r.CostUSD.Value)
		bump(&c.OrphanedTokensByReason, reason, n)
		bumpMoney(&c.OrphanedCostUSDByReason, reason, r.CostUSD.Value)
		bump(&c.OrphanedTokensByUsageSource, string(r.UsageSource), n)
	}
}
