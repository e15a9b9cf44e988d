package replay

import (
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/metrics"
)

const noLatency = -1

// operation is what is known of one: its records, and what they come to.
type operation struct {
	logicalID string
	records   []retrylens.Attempt // duplicates and revisions included

	startMS int64
	slot    int64 // of its start
	key     detect.Key
	service string
	series  *series // of key; nil = not looked up yet
	counted bool    // in its slot
	detect.Counts
	latency int32 // bucket, noLatency without
	answer  int64 // ms; 0 without a latency
	classes []string
}

// counts tells whether it has a counted record.
func (op *operation) counts() bool { return op.Attempts > 0 }

func (op *operation) reset() {
	clear(op.records)
	*op = operation{records: op.records[:0], classes: op.classes[:0]}
}

// add makes a record known and judges anew.
func (op *operation) add(a *retrylens.Attempt) {
	op.records = append(op.records, *a)
	op.classes, op.Counts, op.latency = op.classes[:0], detect.Counts{}, noLatency
	op.answer = 0
	if len(op.records) == 1 {
		op.single(&op.records[0])
	} else {
		op.fold()
	}
	op.slot = slotOf(op.startMS)
}

// fold judges by the reference.
func (op *operation) fold() {
	o := &metrics.Operations(op.records, time.UnixMilli(0))[0]
	op.startMS = o.Start.UnixMilli()
	op.key, op.service = detect.Key{Tenant: o.Tenant, Provider: o.Home.Provider, Model: o.Home.Model}, o.Home.Service
	if o.Attempts == 0 {
		return
	}
	var c metrics.Counters
	o.AddTo(&c)
	op.Counts = detect.CountsOf(&c)
	if o.LatencyMS.Set {
		op.latency = bucketOf(o.LatencyMS.Value)
		op.answer = answerOf(op.latency, o.RetryTaxMS.Value)
	}
	for i := range o.Records {
		if r := &o.Records[i]; r.Counted && r.ErrorClass != "" {
			op.classes = append(op.classes, string(r.ErrorClass))
		}
	}
}

// single is fold for one record, which is what most operations have: it is outer and
// inner.
func (op *operation) single(a *retrylens.Attempt) {
	op.logicalID, op.startMS = a.LogicalID, a.OperationStartedAt.UnixMilli()
	op.key, op.service = detect.Key{Tenant: a.Tenant, Provider: a.Provider, Model: a.Model}, a.Service
	if a.Outcome == retrylens.OutcomeKeyMismatch {
		return
	}
	full, calls := a.Delivery == retrylens.DeliveryFull, int64(a.UpstreamCalls.Value)
	retry := a.Attempt > 0 && a.Cause != retrylens.CauseHedge && a.Cause != retrylens.CauseRedelivery
	first := a.Position() == 0
	op.Counts = detect.Counts{
		Operations: 1, Succeeded: one(full), Failed: one(!full && a.Final.Value),
		Attempts: 1, Retries: one(retry), RetrySuccesses: one(retry && full), FailedAttempts: one(!full),
		FirstAttempts: one(first), FirstSuccesses: one(first && full),
		UpstreamCalls: calls, HiddenCalls: max(0, calls-1),
		DuplicatesServed: one(a.Outcome == retrylens.OutcomeReplayed), DuplicatesRefused: one(a.Outcome == retrylens.OutcomeInFlight),
		Hedges: one(calls > 0 && a.Cause == retrylens.CauseHedge), Cancelled: one(a.ErrorClass == retrylens.ClassCancelled),
	}
	if full && a.DurationMS.Set {
		latency := a.EndUnixMS() - op.startMS
		op.latency = bucketOf(latency)
		op.answer = answerOf(op.latency, max(0, latency-a.DurationMS.Value))
	}
	if a.ErrorClass != "" {
		op.classes = append(op.classes, string(a.ErrorClass))
	}
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
