package wire

import (
	"math"
	"time"

	"github.com/retrylens/retrylens"
)

// Fields are the keys of the record in the order of its document.
var Fields = func() []string {
	names := make([]string, len(record))
	for i := range record {
		names[i] = record[i].name
	}
	return names
}()

// field is one key of the record. read stores a value that is not null and
// returns what is wrong with it, or "".
type field struct {
	name string
	read func(*Decoder, *retrylens.Attempt, value) string
}

type attempt = retrylens.Attempt

// record is the record's one table: every other list of its fields is tested
// against it. It must not outgrow the 64 bits of Decoder.seen.
var record = [...]field{
	text("tenant", true, func(a *attempt) *string { return &a.Tenant }, shared),
	text("logical_id", true, func(a *attempt) *string { return &a.LogicalID }, unique),
	instant("operation_started_at", func(a *attempt) *time.Time { return &a.OperationStartedAt }),
	enum("hop", retrylens.Hops, func(a *attempt) *retrylens.Hop { return &a.Hop }),
	integer("attempt", math.MaxInt32, func(a *attempt, n int64) { a.Attempt = int32(n) }),
	integer("revision", math.MaxUint8, func(a *attempt, n int64) { a.Revision = uint8(n) }),
	enum("cause", retrylens.Causes, func(a *attempt) *retrylens.Cause { return &a.Cause }),
	text("service", false, func(a *attempt) *string { return &a.Service }, shared),
	text("environment", false, func(a *attempt) *string { return &a.Environment }, shared),
	text("operation", false, func(a *attempt) *string { return &a.Operation }, shared),
	text("provider", true, func(a *attempt) *string { return &a.Provider }, shared),
	text("model", false, func(a *attempt) *string { return &a.Model }, shared),
	text("response_model", false, func(a *attempt) *string { return &a.ResponseModel }, shared),
	text("endpoint", false, func(a *attempt) *string { return &a.Endpoint }, shared),
	boolean("stream", func(a *attempt, v bool) { a.Stream = v }),
	text("idempotency_key", false, func(a *attempt) *string { return &a.IdempotencyKey }, unique),
	text("fingerprint", false, func(a *attempt) *string { return &a.Fingerprint }, unique),

	instant("started_at", func(a *attempt) *time.Time { return &a.StartedAt }),
	count("duration_ms", retrylens.MaxInteger, func(a *attempt) *retrylens.Opt[int64] { return &a.DurationMS }),
	count("ttfb_ms", retrylens.MaxInteger, func(a *attempt) *retrylens.Opt[int64] { return &a.TTFBMS }),
	enum("outcome", retrylens.Outcomes, func(a *attempt) *retrylens.Outcome { return &a.Outcome }),
	enum("delivery", retrylens.Deliveries, func(a *attempt) *retrylens.Delivery { return &a.Delivery }),
	integer("upstream_calls", math.MaxUint16, func(a *attempt, n int64) { a.UpstreamCalls = retrylens.Some(uint16(n)) }),
	status("status"),
	orEmpty(enum("error_class", retrylens.ErrorClasses, func(a *attempt) *retrylens.ErrorClass { return &a.ErrorClass })),
	text("provider_error_type", false, func(a *attempt) *string { return &a.ProviderErrorType }, shared),
	text("provider_request_id", false, func(a *attempt) *string { return &a.ProviderRequestID }, unique),
	count("retry_after_ms", retrylens.MaxInteger, func(a *attempt) *retrylens.Opt[int64] { return &a.RetryAfterMS }),
	count("delay_ms", retrylens.MaxInteger, func(a *attempt) *retrylens.Opt[int64] { return &a.DelayMS }),
	boolean("final", func(a *attempt, v bool) { a.Final = retrylens.Some(v) }),
	orEmpty(enum("stop_reason", retrylens.StopReasons, func(a *attempt) *retrylens.StopReason { return &a.StopReason })),
	integer("served_by", math.MaxInt32, func(a *attempt, n int64) { a.ServedBy = retrylens.Some(int32(n)) }),
	integer("replay_of", math.MaxInt32, func(a *attempt, n int64) { a.ReplayOf = retrylens.Some(int32(n)) }),

	count("prompt_tokens", retrylens.MaxTokens, func(a *attempt) *retrylens.Opt[int64] { return &a.PromptTokens }),
	count("completion_tokens", retrylens.MaxTokens, func(a *attempt) *retrylens.Opt[int64] { return &a.CompletionTokens }),
	count("cached_prompt_tokens", retrylens.MaxTokens, func(a *attempt) *retrylens.Opt[int64] { return &a.CachedPromptTokens }),
	count("cache_write_tokens", retrylens.MaxTokens, func(a *attempt) *retrylens.Opt[int64] { return &a.CacheWriteTokens }),
	count("reasoning_tokens", retrylens.MaxTokens, func(a *attempt) *retrylens.Opt[int64] { return &a.ReasoningTokens }),
	enum("usage_source", retrylens.UsageSources, func(a *attempt) *retrylens.UsageSource { return &a.UsageSource }),
	money("cost_usd", func(a *attempt) *retrylens.Opt[retrylens.Money] { return &a.CostUSD }),
	enum("cost_source", retrylens.CostSources, func(a *attempt) *retrylens.CostSource { return &a.CostSource }),
	{name: "attributes", read: (*Decoder).readAttributes},
	text("reason", false, func(a *attempt) *string { return &a.Reason }, shared),
	text("emitter", false, func(a *attempt) *string { return &a.Emitter }, shared),
	count("seq", retrylens.MaxInteger, func(a *attempt) *retrylens.Opt[int64] { return &a.Seq }),
}

const (
	shared = true  // the text repeats over records and is interned
	unique = false // every operation has its own
)
