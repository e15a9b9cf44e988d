package metrics

import "github.com/retrylens/retrylens"

var attemptFormulas = []Formula{
	counter("attempts", "counted records: every try counts, hedges, redeliveries, shed and in-flight answers too",
		func(c *Counters) uint64 { return c.Attempts }),
	counter("retries", "counted records with attempt > 0 and a cause other than hedge and redelivery",
		func(c *Counters) uint64 { return c.Retries }),
	counter("retry_successes", "retries with delivery full",
		func(c *Counters) uint64 { return c.RetrySuccesses }),
}

var retryRatioFormulas = []Formula{
	ratioOf("retry_ratio", "attempts / operations",
		func(f Figures) retrylens.Opt[float64] { return f.RetryRatio }),
	ratioOf("retry_rate", "retries / attempts",
		func(f Figures) retrylens.Opt[float64] { return f.RetryRate }),
	ratioOf("amplification", "upstream_calls / operations; below 1 is not health: read it beside shed",
		func(f Figures) retrylens.Opt[float64] { return f.Amplification }),
	ratioOf("retry_success_ratio", "retry_successes / retries, per attempt on purpose: a masked outage shows here first",
		func(f Figures) retrylens.Opt[float64] { return f.RetrySuccessRatio }),
}

var errorRatioFormulas = []Formula{
	ratioOf("error_ratio", "failed / (succeeded + failed): what a success-rate dashboard shows",
		func(f Figures) retrylens.Opt[float64] { return f.ErrorRatio }),
	ratioOf("attempt_error_ratio", "counted records whose own delivery is not full / attempts: what it hides",
		func(f Figures) retrylens.Opt[float64] { return f.AttemptErrorRatio }),
}

// addAttempt counts a counted record.
func (r *Record) addAttempt(c *Counters) {
	full := r.Delivery == retrylens.DeliveryFull
	c.Attempts++
	if !full {
		c.FailedAttempts++
	}
	if r.Retry {
		c.Retries++
	}
	if r.Retry && full {
		c.RetrySuccesses++
	}
}
