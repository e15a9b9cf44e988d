package metrics

var operationFormulas = []Formula{
	counter("operations", "logical operations with a counted record, by their start",
		func(c *Counters) uint64 { return c.Operations }),
	counter("succeeded", "operations with a counted record of delivery full",
		func(c *Counters) uint64 { return c.Succeeded }),
	counter("failed", "operations not succeeded with a counted record that is final",
		func(c *Counters) uint64 { return c.Failed }),
	counter("open", "operations neither succeeded nor failed, last end less than 10 minutes before as_of",
		func(c *Counters) uint64 { return c.Open }),
	counter("lost", "operations neither succeeded nor failed, last end 10 minutes or more before as_of",
		func(c *Counters) uint64 { return c.Lost }),
}

// addState counts operations by state (see judge).
func (op *Operation) addState(c *Counters) {
	c.Operations++
	switch op.State {
	case StateSucceeded:
		c.Succeeded++
	case StateFailed:
		c.Failed++
	case StateOpen:
		c.Open++
	case StateLost:
		c.Lost++
	}
}
