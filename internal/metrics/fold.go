package metrics

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
)

// Fold answers a query from attempts: normalized, in any order, duplicates
// included. Records further than 10 minutes outside the window are not looked
// at; completeness is that of all the attempts given, of the tenants asked for.
// Quantiles are exact.
func Fold(attempts []retrylens.Attempt, q Query) (*Report, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	f := newFolder(q)
	eachOperation(candidates(attempts, q), q.AsOf, f.add)
	c := &Completeness{KnownUsageRatio: f.total.knownUsage()}
	c.SetGaps(EmitterGaps(attempts, q.Filters[DimTenant]...))
	return NewReport(q, f.rows(), f.total.Open, c), nil
}

func candidates(attempts []retrylens.Attempt, q Query) []*retrylens.Attempt {
	var out []*retrylens.Attempt
	for i := range attempts {
		if q.candidate(attempts[i].OperationStartedAt) {
			out = append(out, &attempts[i])
		}
	}
	return out
}

// folder adds operations up by group.
type folder struct {
	q      Query
	groups map[string]*group
	total  Counters // of the figures that belong to the whole report
}

func newFolder(q Query) *folder { return &folder{q: q, groups: map[string]*group{}} }

type group struct {
	Row
	latencies, taxes []int64
}

func (f *folder) add(op *Operation) {
	if !f.q.Contains(op.Start) || !f.q.matches(op) {
		return
	}
	op.addWhole(&f.total)
	if f.q.Spend() {
		f.addSpend(op)
		return
	}
	g := f.group(op, nil)
	op.AddTo(&g.Counters)
	if op.LatencyMS.Set {
		g.latencies = append(g.latencies, op.LatencyMS.Value)
		g.taxes = append(g.taxes, op.RetryTaxMS.Value)
	}
}

// addWhole counts what a report says as a whole, whatever its groups.
func (op *Operation) addWhole(c *Counters) {
	if op.Attempts == 0 {
		return
	}
	op.addState(c)
	op.eachExecuted(func(r *Record) { r.addBilled(c) })
}

// addSpend files every executed attempt under its own provider and model.
func (f *folder) addSpend(op *Operation) {
	if op.Attempts == 0 {
		return
	}
	op.eachExecuted(func(r *Record) { r.addSpend(&f.group(op, r).Counters) })
}

// matches tells whether the operation's home passes every filter.
func (q Query) matches(op *Operation) bool {
	for d, values := range q.Filters {
		if !slices.Contains(values, op.dim(d)) {
			return false
		}
	}
	return true
}

// group returns the group of an operation, or of one of its executed attempts.
func (f *folder) group(op *Operation, r *Record) *group {
	dims := make([]string, len(f.q.GroupBy))
	for i, d := range f.q.GroupBy {
		switch d {
		case DimExecutedProvider:
			dims[i] = r.Provider
		case DimExecutedModel:
			dims[i] = r.Model
		default:
			dims[i] = op.dim(d)
		}
	}
	bucket := f.q.bucketOf(op.Start)
	// Values hold no control characters, so the joined key is unique.
	key := strings.Join(dims, "\x00") + "\x00" + bucket.Format(time.RFC3339)
	g := f.groups[key]
	if g == nil {
		g = &group{Row: Row{Key: Key{Dims: dims, Bucket: bucket}}}
		f.groups[key] = g
	}
	return g
}

func (f *folder) rows() []Row {
	rows := make([]Row, 0, len(f.groups))
	for _, g := range f.groups {
		g.Latency, g.RetryTax = exactQuantiles(g.latencies), exactQuantiles(g.taxes)
		g.Samples = newSamples(g.latencies, g.taxes)
		rows = append(rows, g.Row)
	}
	return rows
}

func newSamples(latencies, taxes []int64) *Samples {
	s := &Samples{}
	for i, ms := range latencies {
		s.Latency.Add(ms)
		s.RetryTax.Add(taxes[i])
	}
	return s
}

// AddTo adds everything about the operation to c. Without any counted record
// that is its key_conflicts and nothing else.
func (op *Operation) AddTo(c *Counters) {
	op.addConflicts(c)
	if op.Attempts == 0 {
		return
	}
	op.addState(c)
	op.addRescue(c)
	op.addLayer(c)
	for i := range op.Records {
		op.Records[i].addTo(c)
	}
}

func (r *Record) addTo(c *Counters) {
	if r.Counted {
		for _, add := range [...]func(*Record, *Counters){
			(*Record).addAttempt, (*Record).addShed, (*Record).addError, (*Record).addStop,
			(*Record).addPosition, (*Record).addRetryAfter, (*Record).addUnkeyed,
		} {
			add(r, c)
		}
	}
	if r.Inner {
		r.addUpstream(c)
		r.addDuplicate(c)
	}
	if r.Executed() {
		r.addSpend(c)
	}
}

// addSpend counts an executed attempt.
func (r *Record) addSpend(c *Counters) {
	r.addBilled(c)
	r.addOrphaned(c)
	r.addRecovered(c)
	r.addRedundant(c)
}

func (op *Operation) eachExecuted(fn func(*Record)) {
	for i := range op.Records {
		if r := &op.Records[i]; r.Executed() {
			fn(r)
		}
	}
}
