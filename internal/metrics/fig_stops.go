package metrics

import "github.com/retrylens/retrylens"

var stopFormulas = []Formula{
	countsBy("stops_by_reason", "counted records with a stop_reason, by it",
		"stop_reason", retrylens.StopReasons, func(c *Counters) map[string]uint64 { return c.StopsByReason }),
}

// addStop counts a counted record by why no further attempt was made.
func (r *Record) addStop(c *Counters) {
	if r.StopReason != "" {
		bump(&c.StopsByReason, string(r.StopReason), 1)
	}
}
