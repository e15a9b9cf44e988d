package metrics

import "github.com/retrylens/retrylens"

var rescueFormulas = []Formula{
	counter("rescued", "succeeded operations with retries > 0 and no counted attempt 0 with delivery full",
		func(c *Counters) uint64 { return c.Rescued }),
	ratioOf("rescue_ratio", "rescued / operations with retries > 0",
		func(f Figures) retrylens.Opt[float64] { return f.RescueRatio }),
}

var costPerRescueFormulas = []Formula{{
	Name: "cost_per_rescue_usd", Unit: UnitUSD,
	Text: "known cost of undelivered executed attempts of rescued operations / rescued, rounded half-even to 12 decimals",
	value: func(r *Row) Value {
		v := r.Figures().CostPerRescueUSD
		return Value{Unit: UnitUSD, Set: v.Set, Money: v.Value}
	},
}}

// addRescue counts what retries saved, and what that cost: the cost of an
// undelivered attempt that is known and not 0 makes it an orphan.
func (op *Operation) addRescue(c *Counters) {
	if op.Retries > 0 {
		c.RetriedOperations++
	}
	if !op.Rescued {
		return
	}
	c.Rescued++
	for i := range op.Records {
		if r := &op.Records[i]; r.Fate == FateOrphaned {
			c.RescueCostUSD = c.RescueCostUSD.Add(r.CostUSD.Value)
		}
	}
}
