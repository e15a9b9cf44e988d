package retrylens

import "time"

// Attempt is one try at serving one logical operation, tries that were refused
// before they reached the network included. JSON key, ClickHouse column and
// name in every document are the same; integers carry their unit in the name.
//
// (Tenant, LogicalID, Hop, Attempt) identifies it. The same identity sent again
// replaces and never adds: the highest [Attempt.Version] wins.
//
// An Attempt is a plain value: it is safe to copy (Attributes is shared) and
// not safe for concurrent mutation. [Attempt.Normalize] fills in the defaults
// that the wire format gives, [Attempt.Validate] tells the first broken rule.
type Attempt struct {
	Tenant             string    // 1..64 bytes; from the ingest token where there is one
	LogicalID          string    // 1..256 bytes: one caller intent, however many tries
	OperationStartedAt time.Time // start of the operation's first attempt, the same on all its records
	Hop                Hop       // default client
	Attempt            int32     // zero-based ordinal, unique within (operation, hop); mod 100 is the position
	Revision           uint8     // raised to correct an attempt once more is known
	Cause              Cause     // default first for attempt 0, else policy

	Service        string // emitting service, 0..128
	Environment    string // deployment environment, 0..128
	Operation      string // business operation, 0..128
	Provider       string // lower-case provider name, 1..64
	Model          string // requested model, 0..128
	ResponseModel  string // model named by the response, 0..128
	Endpoint       string // path without query, 0..256
	Stream         bool
	IdempotencyKey string // as sent, 0..255; empty = unkeyed
	Fingerprint    string // sha256: + hex of the canonical body, 0..80; never the body

	StartedAt         time.Time // when this attempt started, millisecond precision
	DurationMS        Opt[int64]
	TTFBMS            Opt[int64]
	Outcome           Outcome
	Delivery          Delivery    // default by outcome
	UpstreamCalls     Opt[uint16] // requests whose bytes may have been written to the next hop; default by outcome and class
	Status            Opt[uint16] // HTTP status; 0 = surely no response head; not set = not reported
	ErrorClass        ErrorClass  // empty exactly when Outcome is success or replayed
	ProviderErrorType string      // 0..128
	ProviderRequestID string      // 0..256
	RetryAfterMS      Opt[int64]  // what the provider asked for
	DelayMS           Opt[int64]  // the sleep this layer computed before its next attempt
	Final             Opt[bool]   // true = this hop makes no further attempt; default by outcome
	StopReason        StopReason
	ServedBy          Opt[int32] // on a client record: the gateway attempt whose response was received
	ReplayOf          Opt[int32] // on a replayed record: the attempt of the same hop whose response was served

	PromptTokens       Opt[int64] // all input tokens, cached ones included
	CompletionTokens   Opt[int64] // all output tokens, reasoning included
	CachedPromptTokens Opt[int64]
	CacheWriteTokens   Opt[int64]
	ReasoningTokens    Opt[int64]
	UsageSource        UsageSource // default provider if a token field is present, else unknown
	CostUSD            Opt[Money]
	CostSource         CostSource        // default provider if CostUSD is present, else none
	Attributes         map[string]string // free-form, ≤ 16 entries, key ≤ 64, value ≤ 256
	Reason             string            // the classifier's human line, 0..256; never body text
	Emitter            string            // the emitting process, unique per process start, 0..128
	Seq                Opt[int64]        // the emitter's running number from 0
}

// Position is the place of the try in its run: the exponent of the backoff
// formula, 0..99.
func (a *Attempt) Position() int32 { return a.Attempt % 100 }

// Run numbers the run of tries that this attempt belongs to; a redelivered
// operation continues in another run.
func (a *Attempt) Run() int32 { return a.Attempt / 100 }

// EndUnixMS is the end, StartedAt + DurationMS, in Unix milliseconds; a duration
// that was not reported counts 0.
func (a *Attempt) EndUnixMS() int64 { return a.StartedAt.UnixMilli() + a.DurationMS.Value }

// Normalize fills in the defaults of the wire format and truncates times to the
// millisecond in UTC. It is idempotent. It leaves what has no default (such as
// OperationStartedAt of a later attempt) for [Attempt.Validate] to report.
func (a *Attempt) Normalize() {
	a.StartedAt = a.StartedAt.UTC().Truncate(time.Millisecond)
	a.OperationStartedAt = a.OperationStartedAt.UTC().Truncate(time.Millisecond)
	if a.Attempt == 0 && a.OperationStartedAt.IsZero() {
		a.OperationStartedAt = a.StartedAt
	}
	a.Hop = defaulted(a.Hop, HopClient)
	a.Cause = defaulted(a.Cause, defaultCause(a.Attempt))
	a.Delivery = defaulted(a.Delivery, defaultDelivery(a.Outcome))
	if !a.UpstreamCalls.Set {
		a.UpstreamCalls = Some(defaultUpstreamCalls(a.Outcome, a.ErrorClass))
	}
	if !a.Final.Set {
		a.Final = Some(a.Outcome == OutcomeSuccess || a.Outcome == OutcomeReplayed || a.Outcome == OutcomeKeyMismatch)
	}
	a.UsageSource = defaulted(a.UsageSource, defaultUsageSource(a))
	if a.CostSource == "" {
		a.CostSource = CostNone
		if a.CostUSD.Set {
			a.CostSource = CostProvider
		}
	}
}

func defaulted[T ~string](v, def T) T {
	if v == "" {
		return def
	}
	return v
}

func defaultCause(attempt int32) Cause {
	if attempt == 0 {
		return CauseFirst
	}
	return CausePolicy
}

func defaultDelivery(o Outcome) Delivery {
	switch o {
	case OutcomeSuccess, OutcomeReplayed:
		return DeliveryFull
	case OutcomeInterrupted:
		return DeliveryPartial
	}
	return DeliveryNone
}

func defaultUpstreamCalls(o Outcome, c ErrorClass) uint16 {
	if o.NothingSent() || c == ClassTransportPresend {
		return 0
	}
	return 1
}

func defaultUsageSource(a *Attempt) UsageSource {
	if a.PromptTokens.Set || a.CompletionTokens.Set || a.CachedPromptTokens.Set || a.CacheWriteTokens.Set || a.ReasoningTokens.Set {
		return UsageProvider
	}
	return UsageUnknown
}

// NothingSent tells whether the outcome rules out that anything reached the
// next hop: upstream_calls is 0 with it.
func (v Outcome) NothingSent() bool {
	switch v {
	case OutcomeReplayed, OutcomeInFlight, OutcomeKeyMismatch, OutcomeShed:
		return true
	}
	return false
}
