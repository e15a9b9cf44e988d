package retrylens

import (
	"fmt"
	"sort"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of the wire format.
const (
	MaxTokens      = 1_000_000_000_000 // token figures of one attempt: sums of 10^6 such records fit 64 bits
	MaxInteger     = 1<<53 - 1         // every other integer: what a JSON number carries exactly (RFC 7493)
	MaxAttributes  = 16
	maxFuture      = 10 * time.Minute
	maxStartSkew   = time.Second
	maxHTTPStatus  = 599
	minHTTPStatus  = 100
	oldestYear     = 2020
	maxAttrKey     = 64
	maxAttrValue   = 256
	maxLogicalID   = 256
	maxTenant      = 64
	maxProvider    = 64
	maxName        = 128
	maxEndpoint    = 256
	maxKey         = 255
	maxFingerprint = 80
	maxReason      = 256
)

var oldest = time.Date(oldestYear, 1, 1, 0, 0, 0, 0, time.UTC)

// FieldError is a broken rule of the attempt record.
type FieldError struct {
	Field  string // the JSON key, "" when the line is no object at all
	Reason string // what is wrong, without the field's name
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

func fieldErr(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Limits are the parts of validation that depend on when and where it happens.
type Limits struct {
	Now       time.Time     // times may lie at most 10 minutes beyond it
	Retention time.Duration // operations that started longer ago are refused; 0 = no limit
}

// Validate returns the first broken rule of a normalized attempt, or nil. The
// rules and their bounds are those of the attempt record (docs/record.md).
func (a *Attempt) Validate(l Limits) *FieldError {
	for _, check := range [...]func(*Attempt, Limits) *FieldError{
		checkIdentity, checkEnums, checkStrings, checkIntegers, checkTimes, checkUsage, checkOutcome, checkReferences, checkAttributes,
	} {
		if err := check(a, l); err != nil {
			return err
		}
	}
	return nil
}

func checkIdentity(a *Attempt, _ Limits) *FieldError {
	switch {
	case a.LogicalID == "":
		return fieldErr("logical_id", "missing")
	case a.Tenant == "":
		return fieldErr("tenant", "missing")
	case a.Provider == "":
		return fieldErr("provider", "missing")
	case a.Attempt < 0:
		return fieldErr("attempt", "must not be negative, got %d", a.Attempt)
	case a.Outcome == "":
		return fieldErr("outcome", "missing")
	case a.StartedAt.IsZero():
		return fieldErr("started_at", "missing")
	case a.OperationStartedAt.IsZero():
		return fieldErr("operation_started_at", "missing: required when attempt is above 0")
	}
	return nil
}

func checkEnums(a *Attempt, _ Limits) *FieldError {
	switch {
	case !a.Hop.Valid():
		return notOneOf("hop", string(a.Hop))
	case !a.Cause.Valid():
		return notOneOf("cause", string(a.Cause))
	case !a.Outcome.Valid():
		return notOneOf("outcome", string(a.Outcome))
	case !a.Delivery.Valid():
		return notOneOf("delivery", string(a.Delivery))
	case a.ErrorClass != "" && !a.ErrorClass.Valid():
		return notOneOf("error_class", string(a.ErrorClass))
	case a.StopReason != "" && !a.StopReason.Valid():
		return notOneOf("stop_reason", string(a.StopReason))
	case !a.UsageSource.Valid():
		return notOneOf("usage_source", string(a.UsageSource))
	case !a.CostSource.Valid():
		return notOneOf("cost_source", string(a.CostSource))
	}
	return nil
}

func notOneOf(field, got string) *FieldError {
	return fieldErr(field, "not one of its values: %.40q", got)
}

func checkStrings(a *Attempt, _ Limits) *FieldError {
	for _, s := range [...]struct {
		field, value string
		max          int
	}{
		{"tenant", a.Tenant, maxTenant}, {"logical_id", a.LogicalID, maxLogicalID},
		{"service", a.Service, maxName}, {"environment", a.Environment, maxName}, {"operation", a.Operation, maxName},
		{"provider", a.Provider, maxProvider}, {"model", a.Model, maxName}, {"response_model", a.ResponseModel, maxName},
		{"endpoint", a.Endpoint, maxEndpoint}, {"idempotency_key", a.IdempotencyKey, maxKey},
		{"fingerprint", a.Fingerprint, maxFingerprint}, {"provider_error_type", a.ProviderErrorType, maxName},
		{"provider_request_id", a.ProviderRequestID, maxEndpoint}, {"reason", a.Reason, maxReason}, {"emitter", a.Emitter, maxName},
	} {
		if s.value == "" {
			continue
		}
		if reason := badText(s.value, s.max); reason != "" {
			return &FieldError{Field: s.field, Reason: reason}
		}
	}
	for i := range len(a.Provider) {
		if c := a.Provider[i]; c >= 'A' && c <= 'Z' {
			return fieldErr("provider", "must be lower case, got %q", a.Provider)
		}
	}
	return nil
}

// badText tells what is wrong with a text of at most limit bytes, or "".
func badText(s string, limit int) string {
	if len(s) > limit {
		return fmt.Sprintf("longer than %d bytes: %d", limit, len(s))
	}
	ascii := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f {
			return "has a control character"
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if ascii {
		return ""
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return "has a control character"
		}
	}
	return ""
}

func checkIntegers(a *Attempt, _ Limits) *FieldError {
	for _, n := range [...]struct {
		field string
		value Opt[int64]
		max   int64
	}{
		{"duration_ms", a.DurationMS, MaxInteger}, {"ttfb_ms", a.TTFBMS, MaxInteger}, {"retry_after_ms", a.RetryAfterMS, MaxInteger},
		{"delay_ms", a.DelayMS, MaxInteger}, {"seq", a.Seq, MaxInteger},
		{"prompt_tokens", a.PromptTokens, MaxTokens}, {"completion_tokens", a.CompletionTokens, MaxTokens},
		{"cached_prompt_tokens", a.CachedPromptTokens, MaxTokens}, {"cache_write_tokens", a.CacheWriteTokens, MaxTokens},
		{"reasoning_tokens", a.ReasoningTokens, MaxTokens},
	} {
		if n.value.Set && (n.value.Value < 0 || n.value.Value > n.max) {
			return fieldErr(n.field, "must be within 0..%d, got %d", n.max, n.value.Value)
		}
	}
	if s := a.Status; s.Set && s.Value != 0 && (s.Value < minHTTPStatus || s.Value > maxHTTPStatus) {
		return fieldErr("status", "must be 0 or within 100..599, got %d", s.Value)
	}
	return nil
}

func checkTimes(a *Attempt, l Limits) *FieldError {
	latest := l.Now.Add(maxFuture)
	for _, t := range [...]struct {
		field string
		value time.Time
	}{{"started_at", a.StartedAt}, {"operation_started_at", a.OperationStartedAt}} {
		switch {
		case t.value.Before(oldest):
			return fieldErr(t.field, "before 2020-01-01")
		case t.value.After(latest):
			return fieldErr(t.field, "more than 10 minutes in the future")
		}
	}
	if a.OperationStartedAt.After(a.StartedAt.Add(maxStartSkew)) {
		return fieldErr("operation_started_at", "more than 1 s after started_at")
	}
	if l.Retention > 0 && a.OperationStartedAt.Before(l.Now.Add(-l.Retention)) {
		return fieldErr("operation_started_at", "older than the retention of %d days", int(l.Retention/(24*time.Hour)))
	}
	return nil
}

func checkUsage(a *Attempt, _ Limits) *FieldError {
	if p := a.PromptTokens; p.Set && a.CachedPromptTokens.Value+a.CacheWriteTokens.Value > p.Value {
		return fieldErr("cached_prompt_tokens", "cached_prompt_tokens + cache_write_tokens exceed prompt_tokens")
	}
	if c := a.CompletionTokens; c.Set && a.ReasoningTokens.Value > c.Value {
		return fieldErr("reasoning_tokens", "exceed completion_tokens")
	}
	if a.CostUSD.Set && a.CostUSD.Value.Cmp(maxMoney) > 0 {
		return fieldErr("cost_usd", "%v", ErrMoneyRange)
	}
	return nil
}

func checkOutcome(a *Attempt, _ Limits) *FieldError {
	noClass := a.Outcome == OutcomeSuccess || a.Outcome == OutcomeReplayed
	switch {
	case (a.Cause == CauseFirst) != (a.Attempt == 0):
		return fieldErr("cause", "must be first exactly when attempt is 0, got %s with attempt %d", a.Cause, a.Attempt)
	case noClass && a.ErrorClass != "":
		return fieldErr("error_class", "must be empty with outcome %s", a.Outcome)
	case !noClass && a.ErrorClass == "":
		return fieldErr("error_class", "missing: required with outcome %s", a.Outcome)
	case !deliveryFits(a.Outcome, a.Delivery):
		return fieldErr("delivery", "must not be %s with outcome %s", a.Delivery, a.Outcome)
	case a.Outcome.NothingSent() && a.UpstreamCalls.Value != 0:
		return fieldErr("upstream_calls", "must be 0 with outcome %s", a.Outcome)
	}
	return nil
}

func deliveryFits(o Outcome, d Delivery) bool {
	switch o {
	case OutcomeSuccess:
		return d == DeliveryFull
	case OutcomeReplayed:
		return d != DeliveryPartial
	}
	return d != DeliveryFull
}

func checkReferences(a *Attempt, _ Limits) *FieldError {
	switch {
	case a.ServedBy.Set && a.Hop != HopClient:
		return fieldErr("served_by", "only on client records")
	case a.ServedBy.Set && a.ServedBy.Value < 0:
		return fieldErr("served_by", "must not be negative")
	case a.ReplayOf.Set && a.Outcome != OutcomeReplayed:
		return fieldErr("replay_of", "only with outcome replayed")
	case a.ReplayOf.Set && a.ReplayOf.Value < 0:
		return fieldErr("replay_of", "must not be negative")
	}
	return nil
}

func checkAttributes(a *Attempt, _ Limits) *FieldError {
	if len(a.Attributes) == 0 {
		return nil
	}
	if len(a.Attributes) > MaxAttributes {
		return fieldErr("attributes", "more than %d entries: %d", MaxAttributes, len(a.Attributes))
	}
	for _, k := range sortedKeys(a.Attributes) {
		if k == "" {
			return fieldErr("attributes", "has an empty key")
		}
		if reason := badText(k, maxAttrKey); reason != "" {
			return fieldErr("attributes", "key %.80q %s", k, reason)
		}
		if reason := badText(a.Attributes[k], maxAttrValue); reason != "" {
			return fieldErr("attributes", "value of %q %s", k, reason)
		}
	}
	return nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
