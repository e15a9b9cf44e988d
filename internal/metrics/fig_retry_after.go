package metrics

var retryAfterFormulas = []Formula{
	counter("retry_after_violations",
		"counted records with retry_after_ms and duration_ms whose successor in the run started more than 50 ms before end + min(retry_after_ms, 20,000 ms)",
		func(c *Counters) uint64 { return c.RetryAfterViolations }),
}

// addRetryAfter counts a record whose wish was not granted (see checkSpacing).
func (r *Record) addRetryAfter(c *Counters) {
	if r.RetryAfterViolated {
		c.RetryAfterViolations++
	}
}
