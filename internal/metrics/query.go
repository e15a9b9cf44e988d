package metrics

import (
	"fmt"
	"slices"
	"time"
)

// Dimension is something that operations, or the spend of their attempts, can
// be grouped by.
type Dimension string

// Dimensions. The first six are home dimensions, those of the operation; the
// executed ones are the attempt's own and give spend figures only.
const (
	DimTenant           Dimension = "tenant"
	DimService          Dimension = "service"
	DimEnvironment      Dimension = "environment"
	DimOperation        Dimension = "operation"
	DimProvider         Dimension = "provider"
	DimModel            Dimension = "model"
	DimExecutedProvider Dimension = "executed_provider"
	DimExecutedModel    Dimension = "executed_model"
)

// Dimensions are all dimensions, home dimensions first.
var Dimensions = []Dimension{
	DimTenant, DimService, DimEnvironment, DimOperation, DimProvider, DimModel, DimExecutedProvider, DimExecutedModel,
}

// ParseDimension returns the dimension of that name.
func ParseDimension(s string) (Dimension, error) {
	if d := Dimension(s); slices.Contains(Dimensions, d) {
		return d, nil
	}
	return "", fmt.Errorf("unknown dimension %.40q", s)
}

// Executed tells whether the dimension is the executed attempt's own: grouped by
// it, a report holds spend figures only.
func (d Dimension) Executed() bool { return d == DimExecutedProvider || d == DimExecutedModel }

const (
	// windowMargin is how far around the window records are looked at: further
	// than the hops and revisions of one operation may lie apart (5 minutes).
	windowMargin = 10 * time.Minute
	// settleTime is the youngest part of a window, still expected to change.
	settleTime = 2 * time.Minute
)

// Query says which operations a report is about and how they are grouped.
type Query struct {
	From, To time.Time              // half-open on the operation's start; zero = unbounded on that side
	AsOf     time.Time              // ages unfinished operations; it hides no record. Never zero
	GroupBy  []Dimension            // no dimension twice; executed ones not beside provider and model
	Bucket   time.Duration          // whole seconds, aligned to the Unix epoch; 0 = none
	Filters  map[Dimension][]string // by home dimension: the operation's value is one of them

	// CountersOnly allows for quantiles to be left out, named in Report.Unknown, where they would
	// cost much: the answer is about counters and what is derived from them.
	CountersOnly bool

	// Needs are the counters that the answer must hold, by their names in rollups, of maps
	// without the key. Others are left zero, which is cheaper: a rollup has over a hundred. None = all.
	Needs []string
}

// Validate returns what is wrong with the query, or nil.
func (q Query) Validate() error {
	switch {
	case q.AsOf.IsZero():
		return fmt.Errorf("as_of is missing")
	case !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From):
		return fmt.Errorf("to is before from")
	case q.Bucket < 0 || q.Bucket%time.Second != 0:
		return fmt.Errorf("bucket must be whole seconds, got %s", q.Bucket)
	}
	if err := q.validateGroups(); err != nil {
		return err
	}
	for d := range q.Filters {
		if !slices.Contains(Dimensions, d) || d.Executed() {
			return fmt.Errorf("cannot filter by %.40q", d)
		}
	}
	return nil
}

func (q Query) validateGroups() error {
	for i, d := range q.GroupBy {
		switch {
		case !slices.Contains(Dimensions, d):
			return fmt.Errorf("unknown dimension %.40q", d)
		case slices.Contains(q.GroupBy[:i], d):
			return fmt.Errorf("group_by names %s twice", d)
		case q.Spend() && (d == DimProvider || d == DimModel):
			return fmt.Errorf("group_by cannot join %s with an executed dimension", d)
		}
	}
	return nil
}

// Spend tells whether the query groups by what was executed: its rows then hold
// spend figures only.
func (q Query) Spend() bool { return slices.ContainsFunc(q.GroupBy, Dimension.Executed) }

// Provisional tells whether a report with that many open operations may still
// change by itself: its window reaches into the last 2 minutes before as_of
// (a missing to does), or an operation is open.
func (q Query) Provisional(open uint64) bool {
	return open > 0 || q.To.IsZero() || q.To.After(q.AsOf.Add(-settleTime))
}

// Contains tells whether an operation that starts then is in the window.
func (q Query) Contains(start time.Time) bool {
	return (q.From.IsZero() || !start.Before(q.From)) && (q.To.IsZero() || start.Before(q.To))
}

// candidate tells whether a record may belong to an operation in the window.
func (q Query) candidate(operationStart time.Time) bool {
	return (q.From.IsZero() || !operationStart.Before(q.From.Add(-windowMargin))) &&
		(q.To.IsZero() || operationStart.Before(q.To.Add(windowMargin)))
}

// bucketOf returns the start of the bucket that t lies in; zero without buckets.
func (q Query) bucketOf(t time.Time) time.Time {
	if q.Bucket == 0 {
		return time.Time{}
	}
	width, ms := q.Bucket.Milliseconds(), t.UnixMilli()
	offset := ms % width
	if offset < 0 {
		offset += width
	}
	return time.UnixMilli(ms - offset).UTC()
}
