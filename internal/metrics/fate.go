package metrics

import (
	"github.com/retrylens/retrylens"
)

// Fate is what became of an executed attempt: an inner record with
// upstream_calls ≥ 1.
type Fate string

// Fates. Orphaned, suspect and unspent attempts are undelivered.
const (
	FateDelivered Fate = "delivered" // the caller got its response
	FateRedundant Fate = "redundant" // delivered too, beyond the one that ended first
	FateRecovered Fate = "recovered" // the caller got its response later, from the dedupe store
	FateOrphaned  Fate = "orphaned"  // paid for, never received
	FateSuspect   Fate = "suspect"   // usage unknown, may have been executed: counted, never priced
	FateUnspent   Fate = "unspent"   // refused before generation, or known to be free
)

// OrphanReason tells why an orphaned attempt never reached the caller.
type OrphanReason string

// Orphan reasons, the first that holds.
const (
	OrphanHedgeLost      OrphanReason = "hedge_lost"      // by outcome
	OrphanInterrupted    OrphanReason = "interrupted"     // by outcome
	OrphanAbandoned      OrphanReason = "abandoned"       // by outcome
	OrphanLostReply      OrphanReason = "lost_reply"      // its own delivery is full, the caller never got it
	OrphanTimeout        OrphanReason = "timeout"         // by class
	OrphanRejectedOutput OrphanReason = "rejected_output" // classes content_filter, refusal, empty_response
	OrphanError          OrphanReason = "error"           // the rest
)

// OrphanReasons are all orphan reasons.
var OrphanReasons = []OrphanReason{
	OrphanHedgeLost, OrphanInterrupted, OrphanAbandoned, OrphanLostReply, OrphanTimeout, OrphanRejectedOutput, OrphanError,
}

// settleFates gives every executed attempt its fate.
func (op *Operation) settleFates() {
	replays := newReplays(op.inner())
	if op.TwoHops {
		op.deliverAcross(replays)
	} else {
		op.deliverDirectly(replays)
	}
	markRedundant(replays.inner)
	for i := range replays.inner {
		r := &replays.inner[i]
		if r.Executed() && r.Fate == "" {
			r.settleUndelivered()
		}
	}
}

// inner are the inner records, by attempt: the last hop in the order of Records.
func (op *Operation) inner() []Record {
	for i := range op.Records {
		if op.Records[i].Inner {
			return op.Records[i:]
		}
	}
	return nil
}

// deliverDirectly is the case outer = inner: an executed attempt with delivery
// full is delivered; a replayed record with delivery full recovers the executed
// attempt behind it, unless that is delivered itself.
func (op *Operation) deliverDirectly(replays *replays) {
	for i := range replays.inner {
		if replays.inner[i].Delivery == retrylens.DeliveryFull {
			replays.deliver(i)
		}
	}
}

// deliverAcross is the case outer ≠ inner: each counted client record with
// delivery full delivers the inner record that its served_by names. Those
// without served_by then deliver one more inner record with delivery full each,
// that nothing has used yet, latest end first. Nothing else is delivered,
// whatever the gateway believes.
func (op *Operation) deliverAcross(replays *replays) {
	used := make([]bool, len(replays.inner))
	unnamed := 0
	for i := range op.Records {
		r := &op.Records[i]
		switch {
		case !r.Counted || r.Delivery != retrylens.DeliveryFull:
		case !r.ServedBy.Set:
			unnamed++
		default:
			if j := replays.find(r.ServedBy.Value); j >= 0 {
				used[j] = true
				replays.deliver(j)
			}
		}
	}
	for _, j := range replays.latestUnused(used, unnamed) {
		replays.deliver(j)
	}
}

// markRedundant marks the delivered executed attempts beyond the first-ending
// one (of equal ends the smaller attempt).
func markRedundant(inner []Record) {
	var first *Record
	for i := range inner {
		r := &inner[i]
		if r.Fate != FateDelivered {
			continue
		}
		r.Fate = FateRedundant
		if first == nil || r.EndUnixMS() < first.EndUnixMS() {
			first = r
		}
	}
	if first != nil {
		first.Fate = FateDelivered
	}
}

// settleUndelivered tells orphans, suspects and attempts that cost nothing
// apart.
func (r *Record) settleUndelivered() {
	switch {
	case knownUsage(r.Attempt) && hasSpent(r.Attempt):
		r.Fate, r.OrphanReason = FateOrphaned, r.orphanReason()
	case knownUsage(r.Attempt) || refusedBeforeGeneration(r.ErrorClass):
		r.Fate = FateUnspent
	default:
		r.Fate = FateSuspect
	}
}

// knownUsage tells whether the usage of an attempt is known: not so when both
// token fields and the cost are null. One null field counts as 0.
func knownUsage(a *retrylens.Attempt) bool {
	return a.PromptTokens.Set || a.CompletionTokens.Set || a.CostUSD.Set
}

func hasSpent(a *retrylens.Attempt) bool { return tokens(a) > 0 || !a.CostUSD.Value.IsZero() }

// tokens is the sum of both token fields, what was not reported as 0.
func tokens(a *retrylens.Attempt) uint64 {
	return uint64(a.PromptTokens.Or(0)) + uint64(a.CompletionTokens.Or(0))
}

func (r *Record) orphanReason() OrphanReason {
	switch r.Outcome {
	case retrylens.OutcomeHedgeLost:
		return OrphanHedgeLost
	case retrylens.OutcomeInterrupted:
		return OrphanInterrupted
	case retrylens.OutcomeAbandoned:
		return OrphanAbandoned
	}
	if r.Delivery == retrylens.DeliveryFull {
		return OrphanLostReply
	}
	switch r.ErrorClass {
	case retrylens.ClassTimeout:
		return OrphanTimeout
	case retrylens.ClassContentFilter, retrylens.ClassRefusal, retrylens.ClassEmptyResponse:
		return OrphanRejectedOutput
	}
	return OrphanError
}

// refusedBeforeGeneration tells the classes with which a provider refuses a
// request before it generates anything.
func refusedBeforeGeneration(c retrylens.ErrorClass) bool {
	switch c {
	case retrylens.ClassRateLimited, retrylens.ClassQuotaExhausted, retrylens.ClassOverloaded, retrylens.ClassAuth,
		retrylens.ClassPermission, retrylens.ClassNotFound, retrylens.ClassInvalidRequest,
		retrylens.ClassPayloadTooLarge, retrylens.ClassContextLength, retrylens.ClassConflict:
		return true
	}
	return false
}
