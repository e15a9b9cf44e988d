package metrics

import "github.com/retrylens/retrylens"

var latencyFormulas = []Formula{
	quantilesOf("latency_ms", "end of the delivering record − start of the operation, over succeeded operations that have it",
		func(r *Row) Quantiles { return r.Latency }),
	quantilesOf("retry_tax_ms", "max(0, latency_ms − duration_ms of the delivering record)",
		func(r *Row) Quantiles { return r.RetryTax }),
}

// quantilesOf is a figure whose entries are all there, null without samples.
func quantilesOf(name, text string, get func(*Row) Quantiles) Formula {
	f := Formula{Name: name, Unit: UnitMS, Text: text, Label: "quantile", Keys: []string{"p50", "p90", "p99"}}
	f.entries = func(r *Row) []Entry {
		q := get(r)
		return []Entry{{"p50", milliseconds(q.P50)}, {"p90", milliseconds(q.P90)}, {"p99", milliseconds(q.P99)}}
	}
	return f
}

func milliseconds(v retrylens.Opt[int64]) Value {
	return Value{Unit: UnitMS, Set: v.Set, Count: v.Value}
}
