package metrics

import (
	"cmp"
	"slices"

	"github.com/retrylens/retrylens"
)

// replays follows references among the inner records of one operation: a
// served_by or replay_of names an inner attempt; a replayed one is followed
// through its own replay_of to the executed attempt behind it. A cycle, a null
// or an unknown target leads nowhere.
type replays struct {
	inner []Record // by attempt
	memo  []int    // index of the executed attempt behind each record, or nowhere, or unvisited
}

const (
	nowhere   = -1
	unvisited = -2
)

func newReplays(inner []Record) *replays {
	return &replays{inner: inner, memo: slices.Repeat([]int{unvisited}, len(inner))}
}

// find returns the index of the inner record with that attempt, or nowhere.
func (p *replays) find(attempt int32) int {
	i, ok := slices.BinarySearchFunc(p.inner, attempt, func(r Record, n int32) int { return cmp.Compare(r.Attempt.Attempt, n) })
	if !ok {
		return nowhere
	}
	return i
}

// behind returns the index of the executed attempt that an inner record stands
// for, or nowhere. All calls together visit each record once.
func (p *replays) behind(i int) int {
	var path []int
	for i != nowhere && p.memo[i] == unvisited && !p.inner[i].Executed() {
		p.memo[i] = nowhere // until known better: a cycle ends here
		path = append(path, i)
		i = p.target(i)
	}
	if i != nowhere && !p.inner[i].Executed() {
		i = p.memo[i]
	}
	for _, j := range path {
		p.memo[j] = i
	}
	return i
}

func (p *replays) target(i int) int {
	if r := &p.inner[i]; r.Outcome == retrylens.OutcomeReplayed && r.ReplayOf.Set {
		return p.find(r.ReplayOf.Value)
	}
	return nowhere
}

// deliver marks an executed record delivered, the executed attempt behind a
// replayed one recovered unless it is delivered itself.
func (p *replays) deliver(i int) {
	if p.inner[i].Executed() {
		p.inner[i].Fate = FateDelivered
		return
	}
	if j := p.behind(i); j != nowhere && p.inner[j].Fate == "" {
		p.inner[j].Fate = FateRecovered
	}
}

// latestUnused returns up to n unused inner records with delivery full, latest
// end first, of equal ends the larger attempt.
func (p *replays) latestUnused(used []bool, n int) []int {
	if n == 0 {
		return nil
	}
	var free []int
	for i := range p.inner {
		if !used[i] && p.inner[i].Delivery == retrylens.DeliveryFull {
			free = append(free, i)
		}
	}
	slices.SortFunc(free, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.inner[b].EndUnixMS(), p.inner[a].EndUnixMS()), cmp.Compare(b, a))
	})
	return free[:min(n, len(free))]
}
