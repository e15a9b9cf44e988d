package retry

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/breaker"
	"github.com/retrylens/retrylens/retry/budget"
	"github.com/retrylens/retrylens/retry/bulkhead"
	"github.com/retrylens/retrylens/retry/hedge"
	"github.com/retrylens/retrylens/retry/internal/knobs"
)

// Policy holds the knobs of one operation's retries. It is a plain value; start
// from [Interactive] or [Batch]. The zero Policy is not valid.
type Policy struct {
	Attempts int `json:"attempts" yaml:"attempts"` // 1..99, first send, hedges and refused sends included

	Base   time.Duration `json:"base" yaml:"base"`     // of the backoff; above 0
	Cap    time.Duration `json:"cap" yaml:"cap"`       // of the backoff, also clamps Retry-After; ≥ base. Below 20 s, asked waits are cut short
	Jitter Jitter        `json:"jitter" yaml:"jitter"` // default full

	// RetryAfter says what becomes of a wait above Cap that the provider asked for.
	RetryAfter RetryAfterMode `json:"retry_after" yaml:"retry_after"`

	// OverloadedBase takes the place of Base after an overload without a wait of
	// its own; what comes out is between half and all of min(Cap, OverloadedBase·2^attempt).
	OverloadedBase time.Duration `json:"overloaded_base" yaml:"overloaded_base"`

	// WallClockBudget of the operation, sleeps and waiting for a slot included: no
	// further attempt starts after it. An attempt in flight is not cut short by it.
	WallClockBudget time.Duration `json:"wall_clock_budget" yaml:"wall_clock_budget"`

	AttemptTimeout time.Duration `json:"attempt_timeout" yaml:"attempt_timeout"` // to response headers; non-stream: to the whole answer
	GapTimeout     time.Duration `json:"gap_timeout" yaml:"gap_timeout"`         // of a stream, between content events

	// FailoverAfter failed attempts, retries go to the operation's second provider.
	// 0: only where the breaker refuses the first.
	FailoverAfter int `json:"failover_after" yaml:"failover_after"`
}

// Interactive is the policy of calls that somebody waits for.
func Interactive() Policy {
	return Policy{
		Attempts: 3, Base: 500 * time.Millisecond, Cap: 20 * time.Second, OverloadedBase: time.Minute,
		WallClockBudget: 25 * time.Second, AttemptTimeout: time.Minute, GapTimeout: 30 * time.Second,
	}
}

// Batch is the policy of calls that nobody waits for.
func Batch() Policy {
	return Policy{
		Attempts: 5, Base: 500 * time.Millisecond, Cap: time.Minute, OverloadedBase: time.Minute,
		WallClockBudget: 10 * time.Minute, AttemptTimeout: 10 * time.Minute, GapTimeout: time.Minute,
	}
}

// Validate names the first knob that is out of range.
func (p Policy) Validate() error {
	if p.Attempts < 1 || p.Attempts > 99 {
		return knobError("attempts", "must be in 1..99, got %d", p.Attempts)
	}
	for _, k := range []struct {
		name  string
		value time.Duration
	}{
		{"base", p.Base}, {"overloaded_base", p.OverloadedBase}, {"wall_clock_budget", p.WallClockBudget},
		{"attempt_timeout", p.AttemptTimeout}, {"gap_timeout", p.GapTimeout},
	} {
		if k.value <= 0 {
			return knobError(k.name, "must be positive, got %v", k.value)
		}
	}
	switch {
	case p.Cap < p.Base:
		return knobError("cap", "must be at least base (%v), got %v", p.Base, p.Cap)
	case p.Jitter > JitterDecorrelated:
		return knobError("jitter", "is unknown: %d", p.Jitter)
	case p.RetryAfter > Obey:
		return knobError("retry_after", "is unknown: %d", p.RetryAfter)
	case p.FailoverAfter < 0:
		return knobError("failover_after", "must not be negative, got %d", p.FailoverAfter)
	}
	return nil
}

// Backoff is the part of the policy that computes delays.
func (p Policy) Backoff() Backoff { return Backoff{Base: p.Base, Cap: p.Cap, Jitter: p.Jitter} }

// MarshalJSON writes durations as text ("500ms").
func (p Policy) MarshalJSON() ([]byte, error) {
	type plain Policy
	return knobs.Marshal(plain(p))
}

// UnmarshalJSON sets the knobs that b names, so that it can be read over a preset,
// and refuses unknown ones. It does not validate.
func (p *Policy) UnmarshalJSON(b []byte) error {
	type plain Policy
	return knobs.Unmarshal(b, (*plain)(p))
}

// Limits hold the knobs of what the operations of one provider share.
type Limits struct {
	RetryBudget budget.Options   `json:"retry_budget" yaml:"retry_budget"`
	Breaker     breaker.Options  `json:"breaker" yaml:"breaker"`
	Bulkhead    bulkhead.Options `json:"bulkhead" yaml:"bulkhead"`
	Hedging     hedge.Options    `json:"hedging" yaml:"hedging"` // off by default
}

// DefaultLimits are the defaults of the parts.
func DefaultLimits() Limits {
	return Limits{budget.Default(), breaker.Default(), bulkhead.Default(), hedge.Default()}
}

// Validate names the first knob that is out of range.
func (l Limits) Validate() error {
	for _, part := range []struct {
		name string
		err  error
	}{
		{"retry_budget", l.RetryBudget.Validate()}, {"breaker", l.Breaker.Validate()},
		{"bulkhead", l.Bulkhead.Validate()}, {"hedging", l.Hedging.Validate()},
	} {
		if part.err != nil {
			return fmt.Errorf("retry: %s.%w", part.name, part.err)
		}
	}
	return nil
}

func knobError(name, format string, args ...any) error {
	return fmt.Errorf("retry: "+name+" "+format, args...)
}
