package detect

import (
	"cmp"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// How time is cut.
const (
	Interval = 15 * time.Second // between evaluations, which lie on whole multiples of it
	Span     = 5 * time.Minute  // of the operations that one is about
	// Recent is the newest part of the span: what an onset and an end show in first.
	Recent = 2 * time.Minute

	// SpanSlots and RecentSlots are these in intervals.
	SpanSlots   = int(Span / Interval)
	RecentSlots = int(Recent / Interval)
)

// Key names a series. [All] is all of them together.
type Key struct {
	Tenant   string `json:"tenant"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// All is the series of all operations. No tenant is called so: * is no character of a
// provider, and a tenant or model of that name is not treated as this.
var All = Key{"*", "*", "*"}

// Compare orders keys by tenant, provider and model, All first.
func (k Key) Compare(o Key) int {
	switch {
	case k == o:
		return 0
	case k == All:
		return -1
	case o == All:
		return 1
	}
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.Provider, o.Provider), cmp.Compare(k.Model, o.Model))
}

// Counts are counters of operations, by the names of docs/metrics.md. They add up.
type Counts struct {
	Operations, Succeeded, Failed       int64
	Attempts, Retries, RetrySuccesses   int64
	FirstAttempts, FirstSuccesses       int64 // of position 0
	FailedAttempts                      int64 // counted records whose delivery is not full
	UpstreamCalls, HiddenCalls          int64
	DuplicatesServed, DuplicatesRefused int64
	LayerUpstreamCalls, LayerAttempts   int64
	Hedges                              int64 // calls whose cause is a hedge
	Cancelled                           int64 // counted records of that class: losers of hedges have it
}

// CountsOf takes what is needed from the counters of a report.
func CountsOf(c *metrics.Counters) Counts {
	n := func(v uint64) int64 { return int64(v) } //nolint:gosec // counts of operations of five minutes
	return Counts{
		Operations: n(c.Operations), Succeeded: n(c.Succeeded), Failed: n(c.Failed),
		Attempts: n(c.Attempts), Retries: n(c.Retries), RetrySuccesses: n(c.RetrySuccesses),
		FirstAttempts: n(c.AttemptsByPosition["0"]), FirstSuccesses: n(c.SuccessesByPosition["0"]),
		FailedAttempts: n(c.FailedAttempts), UpstreamCalls: n(c.UpstreamCalls), HiddenCalls: n(c.HiddenCalls),
		DuplicatesServed: n(c.DuplicatesServed), DuplicatesRefused: n(c.DuplicatesRefused),
		LayerUpstreamCalls: n(c.LayerUpstreamCalls), LayerAttempts: n(c.LayerAttempts),
		Hedges: n(c.UpstreamCallsByCause[string(retrylens.CauseHedge)]), Cancelled: n(c.ErrorsByClass[string(retrylens.ClassCancelled)]),
	}
}

// Add adds o, times sign.
func (c *Counts) Add(o *Counts, sign int64) {
	c.Operations += sign * o.Operations
	c.Succeeded += sign * o.Succeeded
	c.Failed += sign * o.Failed
	c.Attempts += sign * o.Attempts
	c.Retries += sign * o.Retries
	c.RetrySuccesses += sign * o.RetrySuccesses
	c.FirstAttempts += sign * o.FirstAttempts
	c.FirstSuccesses += sign * o.FirstSuccesses
	c.FailedAttempts += sign * o.FailedAttempts
	c.UpstreamCalls += sign * o.UpstreamCalls
	c.HiddenCalls += sign * o.HiddenCalls
	c.DuplicatesServed += sign * o.DuplicatesServed
	c.DuplicatesRefused += sign * o.DuplicatesRefused
	c.LayerUpstreamCalls += sign * o.LayerUpstreamCalls
	c.LayerAttempts += sign * o.LayerAttempts
	c.Hedges += sign * o.Hedges
	c.Cancelled += sign * o.Cancelled
}

// View is what is known of the operations that start in a part of time.
type View struct {
	Counts
	Latencies
}

// Latencies are quantiles of the operations that have a latency, by the nearest rank; all
// are 0 without any.
type Latencies struct {
	Delivered    int64 // operations that have one
	P50MS, P99MS int64
	P25MS        int64
	// AnswerP50MS and AnswerP99MS are those of the operations answered at their first
	// attempt, if the others were the slowest: what answers take without retries, at least.
	AnswerP50MS, AnswerP99MS int64
	// AnswerMS is the mean of latency_ms − retry_tax_ms: what the answers themselves took. It
	// does not grow with retries alone.
	AnswerMS int64
}

// SetLatencies fills in what n operations have taken, once everything is counted.
// nearest is sorted[rank − 1] of their latencies, answers the sum of them less their retry taxes.
func (v *View) SetLatencies(n int64, nearest func(rank int64) int64, answers int64) {
	v.Latencies = Latencies{Delivered: n}
	if n == 0 {
		return
	}
	answered := n
	if first := v.FirstSuccesses - v.below(); v.Succeeded > first {
		answered = max(1, n*max(0, first)/v.Succeeded)
	}
	v.AnswerMS = max(0, answers) / n
	at := func(percent, of int64) int64 { return nearest((percent*of + 99) / 100) }
	v.P25MS, v.P50MS, v.P99MS = at(25, n), at(50, n), at(99, n)
	v.AnswerP50MS, v.AnswerP99MS = at(50, answered), at(99, answered)
}

// Sample is what an evaluation is made from.
type Sample struct {
	Key    Key
	At     time.Time         // the end of the window and its as_of; a multiple of Interval
	Window View              // the last Span
	Recent View              // the last Recent
	Slots  [SpanSlots]Counts // of Window, the oldest first

	ErrorsByClass map[string]int64 // of Window; nil = none
}
