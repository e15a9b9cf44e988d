package retrylens

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the attempt as one JSON object of the wire format. What
// was not reported is left out; a normalized attempt comes back the same.
// Invalid UTF-8 is replaced by U+FFFD.
func (a *Attempt) AppendJSON(dst []byte) []byte {
	w := objectWriter{b: append(dst, '{')}
	w.text("tenant", a.Tenant)
	w.text("logical_id", a.LogicalID)
	w.time("operation_started_at", a.OperationStartedAt)
	w.text("hop", string(a.Hop))
	w.int("attempt", int64(a.Attempt))
	if a.Revision != 0 {
		w.int("revision", int64(a.Revision))
	}
	w.text("cause", string(a.Cause))
	w.text("service", a.Service)
	w.text("environment", a.Environment)
	w.text("operation", a.Operation)
	w.text("provider", a.Provider)
	w.text("model", a.Model)
	w.text("response_model", a.ResponseModel)
	w.text("endpoint", a.Endpoint)
	if a.Stream {
		w.bool("stream", true)
	}
	w.text("idempotency_key", a.IdempotencyKey)
	w.text("fingerprint", a.Fingerprint)
	a.appendWhatHappened(&w)
	a.appendWhatItCost(&w)
	return append(w.b, '}')
}

func (a *Attempt) appendWhatHappened(w *objectWriter) {
	w.time("started_at", a.StartedAt)
	w.opt("duration_ms", a.DurationMS)
	w.opt("ttfb_ms", a.TTFBMS)
	w.text("outcome", string(a.Outcome))
	w.text("delivery", string(a.Delivery))
	w.opt("upstream_calls", widen(a.UpstreamCalls))
	w.opt("status", widen(a.Status))
	w.text("error_class", string(a.ErrorClass))
	w.text("provider_error_type", a.ProviderErrorType)
	w.text("provider_request_id", a.ProviderRequestID)
	w.opt("retry_after_ms", a.RetryAfterMS)
	w.opt("delay_ms", a.DelayMS)
	if a.Final.Set {
		w.bool("final", a.Final.Value)
	}
	w.text("stop_reason", string(a.StopReason))
	w.opt("served_by", widen(a.ServedBy))
	w.opt("replay_of", widen(a.ReplayOf))
}

func (a *Attempt) appendWhatItCost(w *objectWriter) {
	w.opt("prompt_tokens", a.PromptTokens)
	w.opt("completion_tokens", a.CompletionTokens)
	w.opt("cached_prompt_tokens", a.CachedPromptTokens)
	w.opt("cache_write_tokens", a.CacheWriteTokens)
	w.opt("reasoning_tokens", a.ReasoningTokens)
	w.text("usage_source", string(a.UsageSource))
	if a.CostUSD.Set {
		w.key("cost_usd")
		w.b = append(a.CostUSD.Value.Append(append(w.b, '"')), '"')
	}
	w.text("cost_source", string(a.CostSource))
	if len(a.Attributes) > 0 {
		w.key("attributes")
		w.b = appendObject(w.b, a.Attributes)
	}
	w.text("reason", a.Reason)
	w.text("emitter", a.Emitter)
	w.opt("seq", a.Seq)
}

func appendObject(b []byte, texts map[string]string) []byte {
	w := objectWriter{b: append(b, '{')}
	for _, k := range sortedKeys(texts) {
		w.key(k)
		w.b = appendQuoted(w.b, texts[k])
	}
	return append(w.b, '}')
}

// MarshalJSON is [Attempt.AppendJSON].
func (a Attempt) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }

func widen[T uint16 | int32](o Opt[T]) Opt[int64] {
	return Opt[int64]{Value: int64(o.Value), Set: o.Set}
}

// objectWriter appends the members of one JSON object; empty texts and values
// that are not set are left out.
type objectWriter struct {
	b     []byte
	comma bool
}

func (w *objectWriter) key(k string) {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
	w.b = append(appendQuoted(w.b, k), ':')
}

func (w *objectWriter) text(k, v string) {
	if v != "" {
		w.key(k)
		w.b = appendQuoted(w.b, v)
	}
}

func (w *objectWriter) time(k string, t time.Time) {
	if !t.IsZero() {
		w.key(k)
		w.b = append(t.UTC().AppendFormat(append(w.b, '"'), "2006-01-02T15:04:05.000Z"), '"')
	}
}

func (w *objectWriter) int(k string, v int64) {
	w.key(k)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *objectWriter) opt(k string, v Opt[int64]) {
	if v.Set {
		w.int(k, v.Value)
	}
}

func (w *objectWriter) bool(k string, v bool) {
	w.key(k)
	w.b = strconv.AppendBool(w.b, v)
}

// appendQuoted writes a JSON string. U+2028 and U+2029 are legal in JSON and
// stay as they are.
func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n
			continue
		}
		i++
	}
	return append(b, '"')
}
