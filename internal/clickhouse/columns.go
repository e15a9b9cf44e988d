package clickhouse

import (
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
)

// columnWriter appends one column of some attempts of a block.
type columnWriter struct {
	name   string
	append func(col driver.BatchColumn, rows []*retrylens.Attempt, known vocabulary) error
}

// vocabulary is the texts of a block that come again, each at one address.
type vocabulary map[string]*string

type attempt = retrylens.Attempt

// attemptColumns are the columns of the table attempts that hold the record, in
// its order; version comes after them.
var attemptColumns = []columnWriter{
	repeated("tenant", func(a *attempt) string { return a.Tenant }),
	values("logical_id", func(a *attempt) string { return a.LogicalID }),
	values("operation_started_at", func(a *attempt) int64 { return a.OperationStartedAt.UnixMilli() }),
	enum("hop", retrylens.Hops, func(a *attempt) retrylens.Hop { return a.Hop }),
	values("attempt", func(a *attempt) uint32 { return uint32(a.Attempt) }),
	values("revision", func(a *attempt) uint8 { return a.Revision }),
	enum("cause", retrylens.Causes, func(a *attempt) retrylens.Cause { return a.Cause }),
	repeated("service", func(a *attempt) string { return a.Service }),
	repeated("environment", func(a *attempt) string { return a.Environment }),
	repeated("operation", func(a *attempt) string { return a.Operation }),
	repeated("provider", func(a *attempt) string { return a.Provider }),
	repeated("model", func(a *attempt) string { return a.Model }),
	repeated("response_model", func(a *attempt) string { return a.ResponseModel }),
	repeated("endpoint", func(a *attempt) string { return a.Endpoint }),
	values("stream", func(a *attempt) bool { return a.Stream }),
	values("idempotency_key", func(a *attempt) string { return a.IdempotencyKey }),
	values("fingerprint", func(a *attempt) string { return a.Fingerprint }),
	values("started_at", func(a *attempt) int64 { return a.StartedAt.UnixMilli() }),
	optional("duration_ms", func(a *attempt) retrylens.Opt[int64] { return a.DurationMS }),
	optional("ttfb_ms", func(a *attempt) retrylens.Opt[int64] { return a.TTFBMS }),
	enum("outcome", retrylens.Outcomes, func(a *attempt) retrylens.Outcome { return a.Outcome }),
	enum("delivery", retrylens.Deliveries, func(a *attempt) retrylens.Delivery { return a.Delivery }),
	values("upstream_calls", func(a *attempt) uint16 { return a.UpstreamCalls.Value }),
	nullable("status", func(a *attempt) (uint16, bool) { return a.Status.Value, a.Status.Set }),
	enum("error_class", retrylens.ErrorClasses, func(a *attempt) retrylens.ErrorClass { return a.ErrorClass }),
	repeated("provider_error_type", func(a *attempt) string { return a.ProviderErrorType }),
	values("provider_request_id", func(a *attempt) string { return a.ProviderRequestID }),
	optional("retry_after_ms", func(a *attempt) retrylens.Opt[int64] { return a.RetryAfterMS }),
	optional("delay_ms", func(a *attempt) retrylens.Opt[int64] { return a.DelayMS }),
	values("final", func(a *attempt) bool { return a.Final.Value }),
	enum("stop_reason", retrylens.StopReasons, func(a *attempt) retrylens.StopReason { return a.StopReason }),
	nullable("served_by", func(a *attempt) (uint32, bool) { return uint32(a.ServedBy.Value), a.ServedBy.Set }),
	nullable("replay_of", func(a *attempt) (uint32, bool) { return uint32(a.ReplayOf.Value), a.ReplayOf.Set }),
	optional("prompt_tokens", func(a *attempt) retrylens.Opt[int64] { return a.PromptTokens }),
	optional("completion_tokens", func(a *attempt) retrylens.Opt[int64] { return a.CompletionTokens }),
	optional("cached_prompt_tokens", func(a *attempt) retrylens.Opt[int64] { return a.CachedPromptTokens }),
	optional("cache_write_tokens", func(a *attempt) retrylens.Opt[int64] { return a.CacheWriteTokens }),
	optional("reasoning_tokens", func(a *attempt) retrylens.Opt[int64] { return a.ReasoningTokens }),
	enum("usage_source", retrylens.UsageSources, func(a *attempt) retrylens.UsageSource { return a.UsageSource }),
	nullable("cost_usd", func(a *attempt) (decimal.Decimal, bool) {
		if !a.CostUSD.Set {
			return decimal.Decimal{}, false
		}
		return decimal.NewFromBigInt(a.CostUSD.Value.Pico(), -12), true
	}),
	enum("cost_source", retrylens.CostSources, func(a *attempt) retrylens.CostSource { return a.CostSource }),
	values("attributes", func(a *attempt) map[string]string { return a.Attributes }),
	values("reason", func(a *attempt) string { return a.Reason }),
	repeated("emitter", func(a *attempt) string { return a.Emitter }),
	optional("seq", func(a *attempt) retrylens.Opt[int64] { return a.Seq }),
}

func values[T any](name string, get func(*attempt) T) columnWriter {
	return columnWriter{name, func(col driver.BatchColumn, rows []*attempt, _ vocabulary) error {
		out := make([]T, len(rows))
		for i, a := range rows {
			out[i] = get(a)
		}
		return col.Append(out)
	}}
}

// repeated writes texts of which few are different, for LowCardinality columns: the
// same text is the same pointer, which the driver looks up without copying or
// hashing it.
func repeated(name string, get func(*attempt) string) columnWriter {
	return columnWriter{name, func(col driver.BatchColumn, rows []*attempt, known vocabulary) error {
		out := make([]*string, len(rows))
		var last *string
		for i, a := range rows {
			if v := get(a); last == nil || *last != v {
				last = known.word(v)
			}
			out[i] = last
		}
		return col.Append(out)
	}}
}

func (v vocabulary) word(text string) *string {
	p := v[text]
	if p == nil {
		own := text // not text itself, which would be allocated for every call
		p = &own
		v[text] = p
	}
	return p
}

// enum writes an enum by its number in storage; the empty value is 0.
func enum[T comparable](name string, all []T, get func(*attempt) T) columnWriter {
	numbers := make(map[T]int8, len(all))
	for i, v := range all {
		numbers[v] = int8(i + 1)
	}
	return values(name, func(a *attempt) int8 { return numbers[get(a)] })
}

func nullable[T any](name string, get func(*attempt) (T, bool)) columnWriter {
	return columnWriter{name, func(col driver.BatchColumn, rows []*attempt, _ vocabulary) error {
		held, out := make([]T, len(rows)), make([]*T, len(rows))
		for i, a := range rows {
			if v, ok := get(a); ok {
				held[i] = v
				out[i] = &held[i]
			}
		}
		return col.Append(out)
	}}
}

func optional(name string, get func(*attempt) retrylens.Opt[int64]) columnWriter {
	return nullable(name, func(a *attempt) (uint64, bool) {
		o := get(a)
		return uint64(o.Value), o.Set
	})
}
