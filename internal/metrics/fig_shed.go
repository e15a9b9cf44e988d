package metrics

import "github.com/retrylens/retrylens"

var shedFormulas = []Formula{
	counter("shed", "counted records with outcome shed: not sent",
		func(c *Counters) uint64 { return c.Shed }),
}

// addShed counts a counted record that was not sent.
func (r *Record) addShed(c *Counters) {
	if r.Outcome == retrylens.OutcomeShed {
		c.Shed++
	}
}
