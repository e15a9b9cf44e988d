package metrics

import (
	"cmp"
	"slices"
	"time"
)

// Key identifies a row of a report.
type Key struct {
	Dims   []string  // the values of the dimensions, parallel to GroupBy
	Bucket time.Time // start of the time bucket, UTC; zero without buckets
}

// Compare orders keys by their dimensions, then by bucket.
func (k Key) Compare(o Key) int {
	return cmp.Or(slices.Compare(k.Dims, o.Dims), k.Bucket.Compare(o.Bucket))
}

// Row holds the figures of one group.
type Row struct {
	Key
	Counters
	Latency, RetryTax Quantiles

	// Samples are what the quantiles are taken from; nil = not kept, or not known.
	Samples *Samples
}

// Samples are the latencies and retry taxes of a group of operations.
type Samples struct{ Latency, RetryTax Sketch }

// Merge returns the row of all the operations of several rows: counters added up,
// quantiles taken anew, not averaged. They are not set where a row with operations
// has no samples.
func Merge(key Key, rows ...Row) Row {
	all := Row{Key: key, Samples: &Samples{}}
	known := true
	for i := range rows {
		r := &rows[i]
		all.Add(&r.Counters)
		switch {
		case r.Samples != nil:
			all.Samples.Latency.Merge(&r.Samples.Latency)
			all.Samples.RetryTax.Merge(&r.Samples.RetryTax)
		case r.Operations > 0:
			known = false
		}
	}
	if !known {
		all.Samples = nil
		return all
	}
	all.Latency, all.RetryTax = all.Samples.Latency.Quantiles(), all.Samples.RetryTax.Quantiles()
	return all
}

// Report is the answer to a [Query].
type Report struct {
	From, To     time.Time // zero = unbounded
	AsOf         time.Time
	GroupBy      []Dimension
	Filters      map[Dimension][]string // what was asked; not in the JSON
	Bucket       time.Duration
	Provisional  bool
	Completeness *Completeness // nil = nothing is known about it
	Unknown      []string      // figures that cannot be known for this report: null in every row
	Rows         []Row         // sorted by key
}

// NewReport makes a report of the rows, which it sorts by key; open is the
// number of open operations among them. An ungrouped report without operations
// gets its one row of zeros.
func NewReport(q Query, rows []Row, open uint64, c *Completeness) *Report {
	if len(rows) == 0 && len(q.GroupBy) == 0 && q.Bucket == 0 {
		rows = []Row{{}}
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.Key.Compare(b.Key) })
	return &Report{
		From: q.From, To: q.To, AsOf: q.AsOf, GroupBy: q.GroupBy, Filters: q.Filters, Bucket: q.Bucket,
		Provisional: q.Provisional(open), Completeness: c, Rows: rows,
	}
}

// Spend tells whether the rows hold spend figures only.
func (r *Report) Spend() bool { return Query{GroupBy: r.GroupBy}.Spend() }
