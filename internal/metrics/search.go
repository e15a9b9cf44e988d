package metrics

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
)

// Search says which operations are listed: those of the query's window and
// filters of which, for every condition given, at least one record (of either hop)
// meets it. Groups and buckets of the query mean nothing here.
type Search struct {
	Query
	LogicalIDs         []string
	IdempotencyKeys    []string
	ProviderRequestIDs []string
	ErrorClasses       []retrylens.ErrorClass
	Outcomes           []retrylens.Outcome
	States             []State // of the operation
	After              Cursor  // list what comes after it; zero = from the beginning
	Limit              int     // 1..MaxSearchLimit
}

// MaxSearchLimit is the most operations that one search lists.
const MaxSearchLimit = 1000

// Validate returns what is wrong with the search, or nil.
func (s Search) Validate() error {
	if s.Limit < 1 || s.Limit > MaxSearchLimit {
		return fmt.Errorf("limit must be within 1..%d, got %d", MaxSearchLimit, s.Limit)
	}
	return s.Query.Validate()
}

// Cursor is a place in the order of a search: the latest start first, of equal
// starts the larger tenant, then the larger logical id.
type Cursor struct {
	Start             time.Time
	Tenant, LogicalID string
}

// IsZero tells the place before every operation.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Compare orders places as a search lists them.
func (c Cursor) Compare(o Cursor) int {
	return cmp.Or(o.Start.Compare(c.Start), cmp.Compare(o.Tenant, c.Tenant), cmp.Compare(o.LogicalID, c.LogicalID))
}

// Place is where a search lists the operation.
func (op *Operation) Place() Cursor { return Cursor{op.Start.UTC(), op.Tenant, op.LogicalID} }

// Matches tells whether the search lists the operation, Limit aside.
func (s *Search) Matches(op *Operation) bool {
	switch {
	case !s.Contains(op.Start) || !s.Query.matches(op):
		return false
	case !s.After.IsZero() && s.After.Compare(op.Place()) >= 0:
		return false
	case len(s.LogicalIDs) > 0 && !slices.Contains(s.LogicalIDs, op.LogicalID):
		return false
	case len(s.States) > 0 && !slices.Contains(s.States, op.State):
		return false
	}
	return anyRecord(op, s.IdempotencyKeys, func(r *Record) string { return r.IdempotencyKey }) &&
		anyRecord(op, s.ProviderRequestIDs, func(r *Record) string { return r.ProviderRequestID }) &&
		anyRecord(op, s.ErrorClasses, func(r *Record) retrylens.ErrorClass { return r.ErrorClass }) &&
		anyRecord(op, s.Outcomes, func(r *Record) retrylens.Outcome { return r.Outcome })
}

// anyRecord tells whether a record has one of the wanted values; none are wanted of
// an empty list.
func anyRecord[T comparable](op *Operation, wanted []T, get func(*Record) T) bool {
	return len(wanted) == 0 || slices.ContainsFunc(op.Records, func(r Record) bool { return slices.Contains(wanted, get(&r)) })
}

// Find answers a search from attempts, as Fold answers a query: it is what other
// implementations are held to.
func Find(attempts []retrylens.Attempt, s Search) ([]Operation, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	var found []Operation
	eachOperation(candidates(attempts, s.Query), s.AsOf, func(op *Operation) {
		if s.Matches(op) {
			found = append(found, *op)
		}
	})
	SortFound(found)
	return found[:min(len(found), s.Limit)], nil
}

// SortFound sorts operations as a search lists them.
func SortFound(ops []Operation) {
	slices.SortFunc(ops, func(a, b Operation) int { return a.Place().Compare(b.Place()) })
}

// Pages walks through every page of a search, from its After on, by asking find for one
// after the other. An error ends it.
func (s Search) Pages(ctx context.Context, find func(context.Context, Search) ([]Operation, error)) iter.Seq2[Summary, error] {
	s.Limit = MaxSearchLimit
	return func(yield func(Summary, error) bool) {
		for {
			ops, err := find(ctx, s)
			if err != nil {
				yield(Summary{}, err)
				return
			}
			for i := range ops {
				if !yield(NewSummary(&ops[i]), nil) {
					return
				}
			}
			if len(ops) < s.Limit {
				return
			}
			s.After = ops[len(ops)-1].Place()
		}
	}
}
