package metrics

import (
	"time"

	"github.com/retrylens/retrylens"
)

// judge finds how the operation ended:
//
//	succeeded   a counted record has delivery full
//	failed      else any counted record is final, even if later ones exist
//	open        else; lost once as_of − the last end is ≥ 10 minutes
func (op *Operation) judge(asOf time.Time) {
	if op.Attempts == 0 {
		return
	}
	op.Delivering = op.delivering()
	switch {
	case op.Delivering >= 0:
		op.State = StateSucceeded
		op.clock()
		op.Rescued = op.Retries > 0 && !op.firstDelivered()
	case op.anyFinal():
		op.State = StateFailed
	case asOf.UnixMilli()-op.lastEnd() >= lostAfter.Milliseconds():
		op.State = StateLost
	default:
		op.State = StateOpen
	}
}

// delivering is the index of the counted record with delivery full that ends
// first, of equal ends the smaller attempt; −1 without one.
func (op *Operation) delivering() int {
	best := -1
	for i := range op.Records {
		r := &op.Records[i]
		if !r.Counted || r.Delivery != retrylens.DeliveryFull {
			continue
		}
		if best < 0 || r.EndUnixMS() < op.Records[best].EndUnixMS() {
			best = i
		}
	}
	return best
}

// clock measures the delivering record:
//
//	latency_ms    its end − the operation's start: backoff sleeps are inside
//	retry_tax_ms  max(0, latency_ms − its duration_ms)
//
// Both are absent when its duration_ms is. Clock skew of up to a second can make
// a latency negative; it is reported as it is.
func (op *Operation) clock() {
	r := &op.Records[op.Delivering]
	if !r.DurationMS.Set {
		return
	}
	latency := r.EndUnixMS() - op.Start.UnixMilli()
	op.LatencyMS = retrylens.Some(latency)
	op.RetryTaxMS = retrylens.Some(max(0, latency-r.DurationMS.Value))
}

func (op *Operation) anyFinal() bool {
	for i := range op.Records {
		if r := &op.Records[i]; r.Counted && r.Final.Value {
			return true
		}
	}
	return false
}

// firstDelivered tells whether a counted attempt 0 has delivery full.
func (op *Operation) firstDelivered() bool {
	for i := range op.Records {
		if r := &op.Records[i]; r.Counted && r.Attempt.Attempt == 0 {
			return r.Delivery == retrylens.DeliveryFull
		}
	}
	return false
}

// lastEnd is the last end over the records of both hops, key_mismatch aside, in
// Unix milliseconds. There is at least one counted record.
func (op *Operation) lastEnd() int64 {
	last, found := int64(0), false
	for i := range op.Records {
		r := &op.Records[i]
		if r.Outcome == retrylens.OutcomeKeyMismatch {
			continue
		}
		if end := r.EndUnixMS(); !found || end > last {
			last, found = end, true
		}
	}
	return last
}
