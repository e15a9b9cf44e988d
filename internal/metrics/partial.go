package metrics

import (
	"fmt"

	"github.com/retrylens/retrylens"
)

// Group is what some operations add to one row of a report.
type Group struct {
	Key
	Counters
	Latency, RetryTax Sketch
}

// Partial is what some operations add to a report: groups that can be merged
// with those of other operations, and what counts whatever the groups.
type Partial struct {
	Groups []Group
	Total  Counters
}

// FoldPartial is [Fold] for a part of the operations that a query asks for. Each
// operation must be given whole.
func FoldPartial(attempts []retrylens.Attempt, q Query) (*Partial, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	f := newFolder(q)
	eachOperation(candidates(attempts, q), q.AsOf, f.add)
	return f.partial(), nil
}

func (f *folder) partial() *Partial {
	p := &Partial{Total: f.total, Groups: make([]Group, 0, len(f.groups))}
	for _, g := range f.groups {
		s := newSamples(g.latencies, g.taxes)
		p.Groups = append(p.Groups, Group{Key: g.Key, Counters: g.Counters, Latency: s.Latency, RetryTax: s.RetryTax})
	}
	return p
}
