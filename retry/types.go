package retry

import (
	"context"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
)

// Op is one logical operation as the engine needs to know it.
type Op struct {
	ID             string // for observers only
	Provider       string // where the first attempt goes; lower-case provider name
	SecondProvider string // where a failover or a hedge may go; empty = nowhere. A key that one provider honours means nothing to another

	Keyed     bool // sent under an idempotency key: a try whose outcome is unknown may be repeated
	Stream    bool // the answer is a stream: never hedged, gap timeout
	Cheap     bool // costs little should it fail: preferred as the probe of a half-open breaker
	HedgeSafe bool // its caller says that a second copy does no harm

	Policy   *Policy   // nil = the engine's; must be valid
	Deadline time.Time // no attempt starts at or after it; zero = the wall-clock budget alone
	// StartedAt is the start of the first attempt, from which the wall-clock budget
	// counts. Zero = now. A later run of the same operation (see FirstAttempt) has a
	// budget of its own: StartedAt is then the start of the run.
	StartedAt time.Time

	FirstAttempt int32           // ordinal of the first attempt: 0, or a multiple of 100 for a later run
	Cause        retrylens.Cause // of the first attempt; default first, with FirstAttempt > 0 redelivery

	// Refresh asks for another credential after a 401 and tells whether it differs.
	// It is called by Do at most once in an operation; nil = never.
	Refresh func(ctx context.Context) (changed bool, err error)

	// Discard is given the result of a copy that answered but did not win, so that
	// what it holds can be closed. Do calls it; nil = nothing to close.
	Discard func(Result)

	Value any // the caller's, for its observer
}

// Attempt is one try that the engine let go.
type Attempt struct {
	Number       int32 // the record's attempt
	Cause        retrylens.Cause
	Provider     string // where it goes
	Probe        bool   // the one call that decides whether a breaker closes
	StartedAt    time.Time
	RunStartedAt time.Time     // Op.StartedAt: the operation's start, unless this is a later run of it
	Deadline     time.Time     // of the operation: no attempt starts at or after it
	Timeout      time.Duration // to response headers; non-stream: to the whole answer. For the caller to enforce (clock.Watch)
	GapTimeout   time.Duration // between content events of a stream. For the caller to enforce

	run *Run
}

// Position is the place of the try in its run, 0..99.
func (a Attempt) Position() int { return int(a.Number % 100) }

// Finish reports how an answer that was handed over ended (see Result.HandedOver),
// from any goroutine. A second report counts for nothing.
func (a Attempt) Finish(res Result) Decision { return a.run.Finish(a.Number, res) }

// Result is how a try ended.
type Result struct {
	Delivered bool             // the complete answer was received; the other fields but Value then mean nothing
	Verdict   classify.Verdict // of the failure otherwise; an empty class counts as unclassified
	Partial   bool             // content of the answer reached the caller before it broke

	// CallerGone: the try ended because its caller left; implied by the class cancelled.
	CallerGone bool

	// CredentialChanged: after a class auth, a refresh returned a different
	// credential. Do sets it; other drivers do after [Run.WantsRefresh].
	CredentialChanged bool

	// HandedOver: the answer has begun and is being read by the caller. Nothing can be
	// tried again; slot and permit stay taken until [Attempt.Finish] or
	// [Run.Finish] reports the end.
	HandedOver bool

	EndedAt time.Time // when the try ended, by the engine's clock; zero = when this is reported

	Value any   // the caller's; Do returns it
	Err   error // the caller's, of a failure; Do wraps it
}

func (r *Result) class() retrylens.ErrorClass {
	if r.Verdict.Class == "" {
		return retrylens.ClassUnclassified
	}
	return r.Verdict.Class
}

func (r *Result) callerGone() bool {
	return r.CallerGone || r.Verdict.Class == retrylens.ClassCancelled
}

func (r *Result) partial() bool {
	return r.Partial || r.Verdict.Class == retrylens.ClassStreamInterrupted
}

// Decision is the engine's answer to one event of an attempt. Of Send, Queued,
// Retry and HandedOver at most one is set; with none of them the operation is over
// and StopReason tells why, except for an attempt beside which another copy of the
// operation still runs or has won (StopReason is then empty).
type Decision struct {
	Send       bool // the attempt may go now
	Queued     bool // no slot is free: start again once granted is called
	Retry      bool // start the next attempt after Delay
	HandedOver bool // wait for the end of the answer

	Delay      time.Duration // before the next attempt
	StopReason retrylens.StopReason
	Outcome    retrylens.Outcome // of the attempt; empty with Send, Queued and HandedOver
	Class      retrylens.ErrorClass
	Reason     string                       // the classifier's line and what was decided, ≤ 256 bytes, never text of a body
	RetryAfter retrylens.Opt[time.Duration] // what the provider asked for, not clamped
	Revision   uint8                        // 1: takes the place of an earlier decision on the same attempt
}

// Apply writes the decision into the attempt's record: outcome, class, reason,
// retry_after_ms, delay_ms, final, stop_reason, and the revision if it has one. It
// leaves the other fields alone.
func (d Decision) Apply(a *retrylens.Attempt) {
	a.Outcome, a.ErrorClass, a.Reason = d.Outcome, d.Class, d.Reason
	a.StopReason = d.StopReason
	a.Final = retrylens.Some(d.StopReason != "")
	if d.RetryAfter.Set {
		a.RetryAfterMS = retrylens.Some(d.RetryAfter.Value.Milliseconds())
	}
	if d.Retry {
		a.DelayMS = retrylens.Some(d.Delay.Milliseconds())
	}
	a.Revision = max(a.Revision, d.Revision)
}

// Observer sees every decision that belongs into a record: one for each attempt,
// the refused ones (outcome shed) included, and a revision when a decided retry did
// not come about. It is called by whoever drives the run, outside of all locks, and
// must be safe for concurrent use. Refused hedges are no attempts and not seen.
type Observer interface {
	Observe(op *Op, at Attempt, d Decision)
}

// ObserverFunc is an Observer.
type ObserverFunc func(op *Op, at Attempt, d Decision)

// Observe as in [Observer].
func (f ObserverFunc) Observe(op *Op, at Attempt, d Decision) { f(op, at, d) }
