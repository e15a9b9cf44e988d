package metrics

var unkeyedFormulas = []Formula{
	counter("unkeyed_after_send",
		"retries without idempotency_key whose predecessor in the run had upstream_calls ≥ 1: might execute twice",
		func(c *Counters) uint64 { return c.UnkeyedAfterSend }),
}

// addUnkeyed counts a retry that nothing protects (see checkSpacing).
func (r *Record) addUnkeyed(c *Counters) {
	if r.UnkeyedAfterSend {
		c.UnkeyedAfterSend++
	}
}
