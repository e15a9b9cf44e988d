package retrylens

import "slices"

// Hop tells who made a try: the caller's own retry layer or a proxy in front of
// the provider.
type Hop string

// Hops, in the order in which they are stored.
const (
	HopClient  Hop = "client"
	HopGateway Hop = "gateway"
)

// Cause tells what made a try happen.
type Cause string

// Causes. CauseFirst goes exactly with attempt 0.
const (
	CauseFirst      Cause = "first"      // the first send
	CausePolicy     Cause = "policy"     // the one sanctioned retry layer
	CauseSDK        Cause = "sdk"        // a retry inside a provider SDK
	CauseTransport  Cause = "transport"  // a silent resend by the HTTP library
	CauseHedge      Cause = "hedge"      // a second copy sent before the first answered
	CauseFailover   Cause = "failover"   // a try at a second provider
	CauseRedelivery Cause = "redelivery" // the operation submitted again from outside
)

// Outcome tells how a try ended.
type Outcome string

// Outcomes.
const (
	OutcomeSuccess     Outcome = "success"      // complete response
	OutcomeError       Outcome = "error"        // failed; ErrorClass says how
	OutcomeReplayed    Outcome = "replayed"     // served from the dedupe store, nothing sent
	OutcomeInFlight    Outcome = "in_flight"    // 409, the key is being executed
	OutcomeKeyMismatch Outcome = "key_mismatch" // 422, key reused with another body
	OutcomeShed        Outcome = "shed"         // not sent: breaker, bulkhead or retry budget
	OutcomeAbandoned   Outcome = "abandoned"    // the caller left before the response was complete
	OutcomeInterrupted Outcome = "interrupted"  // a stream broke after content reached the caller
	OutcomeHedgeLost   Outcome = "hedge_lost"   // cancelled loser of a hedge
)

// Delivery tells how much of the response reached the caller of the hop.
type Delivery string

// Deliveries.
const (
	DeliveryFull    Delivery = "full"
	DeliveryPartial Delivery = "partial"
	DeliveryNone    Delivery = "none"
)

// ErrorClass is the classifier's verdict on a failed try. The empty class goes
// exactly with the outcomes success and replayed.
type ErrorClass string

// Error classes.
const (
	ClassRateLimited       ErrorClass = "rate_limited"
	ClassOverloaded        ErrorClass = "overloaded"
	ClassServerError       ErrorClass = "server_error"
	ClassBadGateway        ErrorClass = "bad_gateway"
	ClassUnavailable       ErrorClass = "unavailable"
	ClassGatewayTimeout    ErrorClass = "gateway_timeout"
	ClassTimeout           ErrorClass = "timeout"
	ClassTransportUnknown  ErrorClass = "transport_unknown"
	ClassConflict          ErrorClass = "conflict"
	ClassTransportPresend  ErrorClass = "transport_presend"
	ClassQuotaExhausted    ErrorClass = "quota_exhausted"
	ClassAuth              ErrorClass = "auth"
	ClassPermission        ErrorClass = "permission"
	ClassNotFound          ErrorClass = "not_found"
	ClassInvalidRequest    ErrorClass = "invalid_request"
	ClassPayloadTooLarge   ErrorClass = "payload_too_large"
	ClassContextLength     ErrorClass = "context_length"
	ClassContentFilter     ErrorClass = "content_filter"
	ClassRefusal           ErrorClass = "refusal"
	ClassEmptyResponse     ErrorClass = "empty_response"
	ClassStreamInterrupted ErrorClass = "stream_interrupted"
	ClassCancelled         ErrorClass = "cancelled"
	ClassUnclassified      ErrorClass = "unclassified"
)

// StopReason tells why a hop made no further attempt.
type StopReason string

// Stop reasons.
const (
	StopDelivered           StopReason = "delivered"
	StopNotRetryable        StopReason = "not_retryable"
	StopMaxAttempts         StopReason = "max_attempts"
	StopDeadline            StopReason = "deadline"
	StopBudgetExhausted     StopReason = "budget_exhausted"
	StopUnkeyed             StopReason = "unkeyed"
	StopBreakerOpen         StopReason = "breaker_open"
	StopPartialStream       StopReason = "partial_stream"
	StopCallerGone          StopReason = "caller_gone"
	StopRepeatedIdentically StopReason = "repeated_identically"
)

// UsageSource tells how the token figures became known.
type UsageSource string

// Usage sources.
const (
	UsageProvider  UsageSource = "provider"  // the provider's own final figure
	UsagePartial   UsageSource = "partial"   // the last figure seen before an abort: a lower bound
	UsageEstimated UsageSource = "estimated" // computed by the emitter
	UsageUnknown   UsageSource = "unknown"
)

// CostSource tells how the cost became known.
type CostSource string

// Cost sources.
const (
	CostProvider  CostSource = "provider"
	CostPriceBook CostSource = "price_book"
	CostNone      CostSource = "none"
)

// The values of every enum, in the order in which they are numbered in storage:
// new values are only ever appended.
var (
	Hops       = []Hop{HopClient, HopGateway}
	Causes     = []Cause{CauseFirst, CausePolicy, CauseSDK, CauseTransport, CauseHedge, CauseFailover, CauseRedelivery}
	Outcomes   = []Outcome{OutcomeSuccess, OutcomeError, OutcomeReplayed, OutcomeInFlight, OutcomeKeyMismatch, OutcomeShed, OutcomeAbandoned, OutcomeInterrupted, OutcomeHedgeLost}
	Deliveries = []Delivery{DeliveryFull, DeliveryPartial, DeliveryNone}

	ErrorClasses = []ErrorClass{
		ClassRateLimited, ClassOverloaded, ClassServerError, ClassBadGateway, ClassUnavailable, ClassGatewayTimeout,
		ClassTimeout, ClassTransportUnknown, ClassConflict, ClassTransportPresend, ClassQuotaExhausted, ClassAuth,
		ClassPermission, ClassNotFound, ClassInvalidRequest, ClassPayloadTooLarge, ClassContextLength,
		ClassContentFilter, ClassRefusal, ClassEmptyResponse, ClassStreamInterrupted, ClassCancelled, ClassUnclassified,
	}
	StopReasons = []StopReason{
		StopDelivered, StopNotRetryable, StopMaxAttempts, StopDeadline, StopBudgetExhausted, StopUnkeyed,
		StopBreakerOpen, StopPartialStream, StopCallerGone, StopRepeatedIdentically,
	}
	UsageSources = []UsageSource{UsageProvider, UsagePartial, UsageEstimated, UsageUnknown}
	CostSources  = []CostSource{CostProvider, CostPriceBook, CostNone}
)

// Valid tells whether v is one of Hops.
func (v Hop) Valid() bool { return slices.Contains(Hops, v) }

// Valid tells whether v is one of Causes.
func (v Cause) Valid() bool { return slices.Contains(Causes, v) }

// Valid tells whether v is one of Outcomes.
func (v Outcome) Valid() bool { return slices.Contains(Outcomes, v) }

// Valid tells whether v is one of Deliveries.
func (v Delivery) Valid() bool { return slices.Contains(Deliveries, v) }

// Valid tells whether v is one of ErrorClasses.
func (v ErrorClass) Valid() bool { return slices.Contains(ErrorClasses, v) }

// Valid tells whether v is one of StopReasons.
func (v StopReason) Valid() bool { return slices.Contains(StopReasons, v) }

// Valid tells whether v is one of UsageSources.
func (v UsageSource) Valid() bool { return slices.Contains(UsageSources, v) }

// Valid tells whether v is one of CostSources.
func (v CostSource) Valid() bool { return slices.Contains(CostSources, v) }
