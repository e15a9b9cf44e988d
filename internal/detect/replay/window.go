package replay

import (
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
)

const (
	intervalMS = int64(detect.Interval / time.Millisecond)
	spanSlots  = int64(detect.SpanSlots)
	// ring holds the slots of a span, and the one that begins now for operations of clocks
	// that are ahead.
	ring = spanSlots + 1
	// keepMS is for how long after its start an operation is kept to be judged anew:
	// its hops and revisions start within 5 minutes of each other, and none changes
	// anything once it is out of the window.
	keepMS = int64((detect.Span + 10*time.Minute) / time.Millisecond)
)

// Window holds the operations of the last detect.Span, by series, as known at its
// moment. It is not safe for concurrent use.
type Window struct {
	at         int64 // slot that begins at the moment
	operations map[id]*operation
	arrived    []*operation // in order of their first record
	free       []*operation
	series     map[detect.Key]*series
	sorted     []*series // by key; nil = to be sorted
	quantiles  histogram
}

// id of an operation.
type id struct{ tenant, logicalID string }

// NewWindow begins at a moment, a multiple of detect.Interval.
func NewWindow(at time.Time) *Window {
	return &Window{
		at: slotOf(at.UnixMilli()), operations: map[id]*operation{},
		series: map[detect.Key]*series{detect.All: {key: detect.All}},
	}
}

// At is the moment.
func (w *Window) At() time.Time { return time.UnixMilli(w.at * intervalMS).UTC() }

// Add makes a record known; it is normalized and valid, and copied. Adding one again
// changes nothing; of one identity the highest version counts.
func (w *Window) Add(a *retrylens.Attempt) {
	k := id{a.Tenant, a.LogicalID}
	op := w.operations[k]
	if op == nil {
		op = w.newOperation()
		w.operations[k], w.arrived = op, append(w.arrived, op)
	} else {
		w.count(op, -1)
	}
	op.add(a)
	w.count(op, 1)
}

func (w *Window) newOperation() *operation {
	if n := len(w.free); n > 0 {
		op := w.free[n-1]
		w.free = w.free[:n-1]
		return op
	}
	return &operation{}
}

// count adds what an operation counts to its series and to all, or takes it away.
func (w *Window) count(op *operation, sign int64) {
	if !op.counts() || op.slot <= w.at-ring || op.slot > w.at || sign < 0 && !op.counted {
		return
	}
	op.counted = sign > 0
	if op.series == nil || op.series.key != op.key {
		op.series = w.seriesOf(op.key)
	}
	op.series.newest = max(op.series.newest, op.slot)
	op.series.at(op.slot).count(op, sign)
	w.series[detect.All].at(op.slot).count(op, sign)
}

// forgetAfter is for how many moments a series is kept, and has an empty sample, after its
// last operation: longer than any state outlives its operations.
const forgetAfter = int64(time.Hour / detect.Interval)

// forget drops the series that have ended.
func (w *Window) forget() {
	for k, s := range w.series {
		if k != detect.All && s.newest < w.at-forgetAfter {
			delete(w.series, k)
			w.sorted = nil
		}
	}
}

func (w *Window) seriesOf(k detect.Key) *series {
	s := w.series[k]
	if s == nil {
		s = &series{key: k}
		w.series[k], w.sorted = s, nil
	}
	return s
}

// Advance moves the moment on by one interval and forgets what is too old.
func (w *Window) Advance() {
	w.at++
	oldest := w.at*intervalMS - keepMS
	n := 0
	for n < len(w.arrived) && w.arrived[n].startMS < oldest {
		op := w.arrived[n]
		delete(w.operations, id{op.key.Tenant, op.logicalID})
		op.reset()
		w.free = append(w.free, op)
		n++
	}
	w.arrived = w.arrived[n:]
	if w.at%forgetAfter == 0 {
		w.forget()
	}
}

// empty tells that no operation is known, not even one that is too old to count.
func (w *Window) empty() bool { return len(w.operations) == 0 }

// Samples calls fn with the sample of all, then of every series that has been seen in the last
// hour, in order. A sample is valid until fn returns.
func (w *Window) Samples(fn func(*detect.Sample)) {
	if w.sorted == nil {
		for _, s := range w.series {
			w.sorted = append(w.sorted, s)
		}
		slices.SortFunc(w.sorted, func(a, b *series) int { return a.key.Compare(b.key) })
	}
	var sample detect.Sample
	for _, s := range w.sorted {
		w.sample(s, &sample)
		fn(&sample)
	}
}

func (w *Window) sample(s *series, to *detect.Sample) {
	*to = detect.Sample{Key: s.key, At: w.At()}
	first := w.at - spanSlots
	recent := w.at - int64(detect.RecentSlots)
	for i := w.at - 1; i >= first; i-- {
		if slot := s.filled(i); slot != nil {
			to.Window.Add(&slot.Counts, 1)
			to.Slots[i-first] = slot.Counts
			w.quantiles.add(slot.latencies, slot.answers)
			slot.addClasses(to)
			if i >= recent {
				to.Recent.Add(&slot.Counts, 1)
			}
		}
		if i == recent {
			w.quantiles.fill(&to.Recent)
		}
	}
	w.quantiles.fill(&to.Window)
	for i := first; i < w.at; i++ {
		if slot := s.filled(i); slot != nil {
			w.quantiles.remove(slot.latencies, slot.answers)
		}
	}
}

// eachOperation calls fn with the operations of the window of a series, in no order.
func (w *Window) eachOperation(k detect.Key, fn func(*operation)) {
	for _, op := range w.operations {
		if op.counts() && op.slot < w.at && op.slot >= w.at-spanSlots && (k == detect.All || op.key == k) {
			fn(op)
		}
	}
}

// slotOf a time in milliseconds, rounded to minus infinity.
func slotOf(ms int64) int64 {
	slot := ms / intervalMS
	if ms%intervalMS < 0 {
		slot--
	}
	return slot
}
