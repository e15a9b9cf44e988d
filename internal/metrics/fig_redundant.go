package metrics

import "github.com/retrylens/retrylens"

var redundantFormulas = spend(
	tokenSum("redundant_tokens", "tokens of delivered executed attempts beyond the first-ending one of their operation",
		func(c *Counters) uint64 { return c.RedundantTokens }),
	moneySum("redundant_cost_usd", "Σ cost_usd of delivered executed attempts beyond the first-ending one of their operation",
		func(c *Counters) retrylens.Money { return c.RedundantCostUSD }),
)

// addRedundant counts an answer that was bought and delivered a second time.
func (r *Record) addRedundant(c *Counters) {
	if r.Fate == FateRedundant {
		c.RedundantTokens += tokens(r.Attempt)
		c.RedundantCostUSD = c.RedundantCostUSD.Add(r.CostUSD.Value)
	}
}
