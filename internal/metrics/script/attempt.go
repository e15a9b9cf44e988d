package script

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrylens/retrylens"
)

// Day is the date of every time of day in a script.
const Day = "2026-11-28"

// SetField sets the field of that JSON key from its text; "null" leaves it
// unreported.
func SetField(a *retrylens.Attempt, key, text string) error {
	set, ok := fields[key]
	if !ok {
		return fmt.Errorf("unknown key %q", key)
	}
	if text == "null" {
		return nil
	}
	if err := set(a, text); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

type setter func(*retrylens.Attempt, string) error

var fields = map[string]setter{
	"tenant":               text(func(a *retrylens.Attempt) *string { return &a.Tenant }),
	"logical_id":           text(func(a *retrylens.Attempt) *string { return &a.LogicalID }),
	"operation_started_at": instant(func(a *retrylens.Attempt) *time.Time { return &a.OperationStartedAt }),
	"hop":                  text(func(a *retrylens.Attempt) *retrylens.Hop { return &a.Hop }),
	"attempt":              plain(func(a *retrylens.Attempt) *int32 { return &a.Attempt }),
	"revision":             plain(func(a *retrylens.Attempt) *uint8 { return &a.Revision }),
	"cause":                text(func(a *retrylens.Attempt) *retrylens.Cause { return &a.Cause }),
	"service":              text(func(a *retrylens.Attempt) *string { return &a.Service }),
	"environment":          text(func(a *retrylens.Attempt) *string { return &a.Environment }),
	"operation":            text(func(a *retrylens.Attempt) *string { return &a.Operation }),
	"provider":             text(func(a *retrylens.Attempt) *string { return &a.Provider }),
	"model":                text(func(a *retrylens.Attempt) *string { return &a.Model }),
	"response_model":       text(func(a *retrylens.Attempt) *string { return &a.ResponseModel }),
	"endpoint":             text(func(a *retrylens.Attempt) *string { return &a.Endpoint }),
	"stream":               boolean(func(a *retrylens.Attempt) *bool { return &a.Stream }),
	"idempotency_key":      text(func(a *retrylens.Attempt) *string { return &a.IdempotencyKey }),
	"fingerprint":          text(func(a *retrylens.Attempt) *string { return &a.Fingerprint }),
	"started_at":           instant(func(a *retrylens.Attempt) *time.Time { return &a.StartedAt }),
	"duration_ms":          number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.DurationMS }),
	"ttfb_ms":              number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.TTFBMS }),
	"outcome":              text(func(a *retrylens.Attempt) *retrylens.Outcome { return &a.Outcome }),
	"delivery":             text(func(a *retrylens.Attempt) *retrylens.Delivery { return &a.Delivery }),
	"upstream_calls":       number(func(a *retrylens.Attempt) *retrylens.Opt[uint16] { return &a.UpstreamCalls }),
	"status":               number(func(a *retrylens.Attempt) *retrylens.Opt[uint16] { return &a.Status }),
	"error_class":          text(func(a *retrylens.Attempt) *retrylens.ErrorClass { return &a.ErrorClass }),
	"retry_after_ms":       number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.RetryAfterMS }),
	"delay_ms":             number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.DelayMS }),
	"stop_reason":          text(func(a *retrylens.Attempt) *retrylens.StopReason { return &a.StopReason }),
	"served_by":            number(func(a *retrylens.Attempt) *retrylens.Opt[int32] { return &a.ServedBy }),
	"replay_of":            number(func(a *retrylens.Attempt) *retrylens.Opt[int32] { return &a.ReplayOf }),
	"prompt_tokens":        number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.PromptTokens }),
	"completion_tokens":    number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CompletionTokens }),
	"cached_prompt_tokens": number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CachedPromptTokens }),
	"cache_write_tokens":   number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.CacheWriteTokens }),
	"reasoning_tokens":     number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.ReasoningTokens }),
	"usage_source":         text(func(a *retrylens.Attempt) *retrylens.UsageSource { return &a.UsageSource }),
	"cost_source":          text(func(a *retrylens.Attempt) *retrylens.CostSource { return &a.CostSource }),
	"reason":               text(func(a *retrylens.Attempt) *string { return &a.Reason }),
	"emitter":              text(func(a *retrylens.Attempt) *string { return &a.Emitter }),
	"seq":                  number(func(a *retrylens.Attempt) *retrylens.Opt[int64] { return &a.Seq }),
	"provider_request_id":  text(func(a *retrylens.Attempt) *string { return &a.ProviderRequestID }),
	"provider_error_type":  text(func(a *retrylens.Attempt) *string { return &a.ProviderErrorType }),
	"cost_usd": func(a *retrylens.Attempt, s string) error {
		m, err := retrylens.ParseMoney(s)
		a.CostUSD = retrylens.Some(m)
		return err
	},
	"final": func(a *retrylens.Attempt, s string) error {
		b, err := strconv.ParseBool(s)
		a.Final = retrylens.Some(b)
		return err
	},
}

func text[T ~string](field func(*retrylens.Attempt) *T) setter {
	return func(a *retrylens.Attempt, s string) error {
		*field(a) = T(s)
		return nil
	}
}

func boolean(field func(*retrylens.Attempt) *bool) setter {
	return func(a *retrylens.Attempt, s string) (err error) {
		*field(a), err = strconv.ParseBool(s)
		return err
	}
}

func plain[T int32 | uint8](field func(*retrylens.Attempt) *T) setter {
	return func(a *retrylens.Attempt, s string) (err error) {
		*field(a), err = integer[T](s)
		return err
	}
}

func number[T int64 | int32 | uint16](field func(*retrylens.Attempt) *retrylens.Opt[T]) setter {
	return func(a *retrylens.Attempt, s string) error {
		n, err := integer[T](s)
		*field(a) = retrylens.Some(n)
		return err
	}
}

func integer[T int64 | int32 | uint16 | uint8](s string) (T, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && int64(T(n)) != n {
		err = strconv.ErrRange
	}
	return T(n), err
}

func instant(field func(*retrylens.Attempt) *time.Time) setter {
	return func(a *retrylens.Attempt, s string) (err error) {
		*field(a), err = parseTime(s)
		return err
	}
}

// parseTime reads "12:00", "12:00:00.250" (of [Day]) or an RFC 3339 time.
func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse("2006-01-02T"+layout, Day+"T"+s); err == nil {
			return t, nil
		}
	}
	return time.Parse(time.RFC3339Nano, s)
}
