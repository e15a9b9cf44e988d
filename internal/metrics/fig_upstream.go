package metrics

import "github.com/retrylens/retrylens"

var upstreamFormulas = []Formula{
	counter("upstream_calls", "Σ upstream_calls of inner records",
		func(c *Counters) uint64 { return c.UpstreamCalls }),
	countsBy("upstream_calls_by_cause",
		"upstream_calls per cause: each inner record's first call under its cause, calls beyond the first under transport",
		"cause", retrylens.Causes, func(c *Counters) map[string]uint64 { return c.UpstreamCallsByCause }),
}

var hiddenFormulas = []Formula{
	counter("hidden_calls", "Σ max(0, upstream_calls − 1) of inner records: silent resends",
		func(c *Counters) uint64 { return c.HiddenCalls }),
}

// addUpstream counts the calls of an inner record.
func (r *Record) addUpstream(c *Counters) {
	calls := uint64(r.UpstreamCalls.Value)
	if calls == 0 {
		return
	}
	c.UpstreamCalls += calls
	c.HiddenCalls += calls - 1
	bump(&c.UpstreamCallsByCause, string(r.Cause), 1)
	bump(&c.UpstreamCallsByCause, string(retrylens.CauseTransport), calls-1)
}
