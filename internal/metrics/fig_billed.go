package metrics

import "github.com/retrylens/retrylens"

var billedFormulas = spend(
	tokenSum("billed_tokens", "prompt_tokens + completion_tokens of executed attempts with known usage: a lower bound",
		func(c *Counters) uint64 { return c.BilledTokens }),
	moneySum("billed_cost_usd", "Σ cost_usd of executed attempts with known usage: a lower bound",
		func(c *Counters) retrylens.Money { return c.BilledCostUSD }),
)

// addBilled counts an executed attempt. Its usage is known unless both token
// fields and the cost are null; one null field counts as 0.
func (r *Record) addBilled(c *Counters) {
	c.ExecutedAttempts++
	if !knownUsage(r.Attempt) {
		return
	}
	c.ExecutedKnownUsage++
	c.BilledTokens += tokens(r.Attempt)
	c.BilledCostUSD = c.BilledCostUSD.Add(r.CostUSD.Value)
}
