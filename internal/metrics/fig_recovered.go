package metrics

import "github.com/retrylens/retrylens"

var recoveredFormulas = spend(
	tokenSum("recovered_tokens", "tokens of recovered attempts: what draining and replaying saved",
		func(c *Counters) uint64 { return c.RecoveredTokens }),
	moneySum("recovered_cost_usd", "Σ cost_usd of recovered attempts",
		func(c *Counters) retrylens.Money { return c.RecoveredCostUSD }),
)

// addRecovered counts an executed attempt whose response was served from the
// dedupe store.
func (r *Record) addRecovered(c *Counters) {
	if r.Fate == FateRecovered {
		c.RecoveredTokens += tokens(r.Attempt)
		c.RecoveredCostUSD = c.RecoveredCostUSD.Add(r.CostUSD.Value)
	}
}
