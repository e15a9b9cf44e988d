package metrics

import (
	"fmt"
	"math"
	"slices"

	"github.com/retrylens/retrylens"
)

// HomeDimensions are the dimensions of an operation.
var HomeDimensions = Dimensions[:6:6]

// NoLoss is the NextLossMS of operations none of which is open.
const NoLoss = math.MaxInt64

// RollupPart is what some operations add to the rollups: groups by home
// dimensions and bucket, the spend of their executed attempts by home and
// executed dimensions where these differ, and what their states depend on.
type RollupPart struct {
	Home   []Group // Dims as HomeDimensions
	Spend  []Group // Dims as Dimensions; spend figures only
	Losses []LossTimes
}

// LossTimes says until when the states of the operations of a bucket hold: those
// open become lost from NextLossMS on, and before LastLossMS one of those lost was
// still open. Unix milliseconds.
type LossTimes struct {
	BucketMS   int64
	NextLossMS int64 // NoLoss = none is open
	LastLossMS int64 // 0 = none is lost
}

// Merge makes l hold for the operations of both.
func (l *LossTimes) Merge(o LossTimes) {
	l.NextLossMS, l.LastLossMS = min(l.NextLossMS, o.NextLossMS), max(l.LastLossMS, o.LastLossMS)
}

// FoldRollup is [FoldPartial] for rollups. The window, as_of and bucket are those
// of q; it must have no groups and no filters.
func FoldRollup(attempts []retrylens.Attempt, q Query) (*RollupPart, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if len(q.GroupBy) > 0 || len(q.Filters) > 0 || q.Bucket <= 0 {
		return nil, fmt.Errorf("metrics: a rollup has buckets, and no groups or filters of its own")
	}
	home, spend := q, q
	home.GroupBy, spend.GroupBy = HomeDimensions, Dimensions
	h, s := newFolder(home), newFolder(spend)
	losses := map[int64]*LossTimes{}
	eachOperation(candidates(attempts, q), q.AsOf, func(op *Operation) {
		h.add(op)
		s.add(op)
		if q.Contains(op.Start) {
			op.addLoss(losses, q.bucketOf(op.Start).UnixMilli())
		}
	})
	p := &RollupPart{Home: h.partial().Groups}
	for _, g := range s.partial().Groups {
		if g.Dims[4] != g.Dims[6] || g.Dims[5] != g.Dims[7] { // home and executed provider, model
			p.Spend = append(p.Spend, g)
		}
	}
	for _, l := range losses {
		p.Losses = append(p.Losses, *l)
	}
	slices.SortFunc(p.Losses, func(a, b LossTimes) int { return int(a.BucketMS - b.BucketMS) })
	return p, nil
}

// addLoss notes when an unfinished operation becomes, or became, lost.
func (op *Operation) addLoss(losses map[int64]*LossTimes, bucket int64) {
	if op.State != StateOpen && op.State != StateLost {
		return
	}
	l := losses[bucket]
	if l == nil {
		l = &LossTimes{BucketMS: bucket, NextLossMS: NoLoss}
		losses[bucket] = l
	}
	at := op.lastEnd() + lostAfter.Milliseconds()
	if op.State == StateOpen {
		l.NextLossMS = min(l.NextLossMS, at)
		return
	}
	l.LastLossMS = max(l.LastLossMS, at)
}
