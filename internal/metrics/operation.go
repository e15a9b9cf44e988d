package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
)

// State is how an operation ended, seen from its outer hop.
type State string

// States. An operation without any counted record has none.
const (
	StateSucceeded State = "succeeded"
	StateFailed    State = "failed"
	StateOpen      State = "open"
	StateLost      State = "lost"
)

// States are all of them.
var States = []State{StateSucceeded, StateFailed, StateOpen, StateLost}

// lostAfter is how long after its last end an open operation is given up.
const lostAfter = 10 * time.Minute

// Home is what an operation is filed under: the words of its first counted
// record. A failover to a second provider stays with the home provider.
type Home struct{ Service, Environment, Operation, Provider, Model string }

// Record is one attempt of an operation and what became of it.
type Record struct {
	*retrylens.Attempt

	Outer, Inner       bool // of the caller's view; of the provider's load
	Counted            bool // outer and no key_mismatch
	Retry              bool // counted, attempt > 0, cause neither hedge nor redelivery
	Fate               Fate // of an executed attempt, else empty
	OrphanReason       OrphanReason
	RetryAfterViolated bool // its successor did not wait long enough
	UnkeyedAfterSend   bool
}

// Executed tells whether the attempt may have been executed by the provider.
func (r *Record) Executed() bool { return r.Inner && r.UpstreamCalls.Value > 0 }

// Operation is the verdict on one logical operation.
type Operation struct {
	Tenant, LogicalID string
	Start             time.Time // smallest operation_started_at of either hop
	Home              Home
	State             State    // empty = no counted record: it adds to key_conflicts only
	Records           []Record // one per identity, by hop (client first), then attempt
	TwoHops           bool     // client and gateway both report
	Attempts          int      // counted records
	Retries           int
	Rescued           bool
	Delivering        int // index of the delivering record, −1 without
	LatencyMS         retrylens.Opt[int64]
	RetryTaxMS        retrylens.Opt[int64]
}

// Operations folds attempts into operations, sorted by tenant and logical id.
// The attempts are normalized, in any order, duplicates included; they are not
// changed, and the records point to them.
func Operations(attempts []retrylens.Attempt, asOf time.Time) []Operation {
	all := make([]*retrylens.Attempt, len(attempts))
	for i := range attempts {
		all[i] = &attempts[i]
	}
	var ops []Operation
	eachOperation(all, asOf, func(op *Operation) { ops = append(ops, *op) })
	return ops
}

// eachOperation sorts the attempts and calls fn with every operation; its
// records are fn's to keep.
func eachOperation(all []*retrylens.Attempt, asOf time.Time, fn func(*Operation)) {
	slices.SortFunc(all, compareIdentity)
	for len(all) > 0 {
		n := 1
		for n < len(all) && sameOperation(all[0], all[n]) {
			n++
		}
		fn(newOperation(deduplicate(all[:n]), asOf))
		all = all[n:]
	}
}

func compareIdentity(a, b *retrylens.Attempt) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.LogicalID, b.LogicalID),
		cmp.Compare(a.Hop, b.Hop), cmp.Compare(a.Attempt, b.Attempt))
}

func sameOperation(a, b *retrylens.Attempt) bool {
	return a.LogicalID == b.LogicalID && a.Tenant == b.Tenant
}

// deduplicate keeps of each identity the record with the highest version: the
// highest revision, of equal ones the larger content hash. The attempts are one
// operation's, sorted by identity.
func deduplicate(sorted []*retrylens.Attempt) []Record {
	records := make([]Record, 0, len(sorted))
	version := uint64(0) // of the last record; 0 = not computed yet
	for _, a := range sorted {
		last := len(records) - 1
		if last < 0 || compareIdentity(records[last].Attempt, a) != 0 {
			records, version = append(records, Record{Attempt: a}), 0
			continue
		}
		if version == 0 {
			version = records[last].Version()
		}
		if v := a.Version(); v > version {
			records[last].Attempt, version = a, v
		}
	}
	return records
}

func newOperation(records []Record, asOf time.Time) *Operation {
	op := &Operation{
		Tenant: records[0].Tenant, LogicalID: records[0].LogicalID, Records: records, Delivering: -1,
	}
	op.markHops()
	op.Start, op.Home = op.start(), op.home()
	op.judge(asOf)
	op.settleFates()
	op.checkSpacing()
	return op
}

// markHops tells outer from inner. outer = the client records if there are any,
// else the gateway's; inner = the gateway records if any, else the client's:
// a client and a gateway that both report never double-count.
func (op *Operation) markHops() {
	first, last := op.Records[0].Hop, op.Records[len(op.Records)-1].Hop
	op.TwoHops = first != last
	for i := range op.Records {
		r := &op.Records[i]
		r.Outer, r.Inner = r.Hop == first, r.Hop == last
		r.Counted = r.Outer && r.Outcome != retrylens.OutcomeKeyMismatch
		r.Retry = r.Counted && r.Attempt.Attempt > 0 && !fromOutside(r.Cause)
		op.Attempts += count(r.Counted)
		op.Retries += count(r.Retry)
	}
}

// fromOutside tells causes that are no retry: copies sent on purpose and
// operations submitted again.
func fromOutside(c retrylens.Cause) bool {
	return c == retrylens.CauseHedge || c == retrylens.CauseRedelivery
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// start is the smallest operation_started_at of either hop, key_mismatch records
// left aside unless there are no others.
func (op *Operation) start() time.Time {
	var own, all time.Time
	for i := range op.Records {
		r := &op.Records[i]
		all = earliest(all, r.OperationStartedAt)
		if r.Outcome != retrylens.OutcomeKeyMismatch {
			own = earliest(own, r.OperationStartedAt)
		}
	}
	if own.IsZero() {
		return all
	}
	return own
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// home is that of the counted record with the smallest attempt; of the outer
// records if none is counted.
func (op *Operation) home() Home {
	r := &op.Records[0] // the outer hop sorts first
	if i := slices.IndexFunc(op.Records, func(r Record) bool { return r.Counted }); i >= 0 {
		r = &op.Records[i]
	}
	return Home{r.Service, r.Environment, r.Operation, r.Provider, r.Model}
}

// dim returns the value of a home dimension.
func (op *Operation) dim(d Dimension) string {
	switch d {
	case DimTenant:
		return op.Tenant
	case DimService:
		return op.Home.Service
	case DimEnvironment:
		return op.Home.Environment
	case DimOperation:
		return op.Home.Operation
	case DimProvider:
		return op.Home.Provider
	case DimModel:
		return op.Home.Model
	}
	return ""
}
