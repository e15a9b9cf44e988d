package budget

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/retrylens/retrylens/retry/internal/knobs"
)

// Budget is one bucket, of one provider. Implementations are safe for concurrent
// use and never block for longer than ctx lets them.
type Budget interface {
	// Take takes one token for a retry or a hedge; false when there is none.
	Take(ctx context.Context) bool
	// Return gives back a token whose retry was not sent after all.
	Return(ctx context.Context)
	// Success fills the bucket for one successful operation.
	Success(ctx context.Context)
}

// Options are the knobs of a bucket. The zero value is not valid; see [Default].
type Options struct {
	Tokens     float64 `json:"tokens" yaml:"tokens"`           // size of the bucket, full at the start; 0..1,000,000, 0 = never a retry
	PerSuccess float64 `json:"per_success" yaml:"per_success"` // tokens a successful operation adds; 0..1
}

// Default is 100 tokens, +0.1 per successful operation.
func Default() Options { return Options{Tokens: 100, PerSuccess: 0.1} }

// Validate names the first knob that is out of range.
func (o Options) Validate() error {
	switch {
	case !(o.Tokens >= 0 && o.Tokens <= 1e6):
		return fmt.Errorf("tokens must be in 0..1000000, got %v", o.Tokens)
	case !(o.PerSuccess >= 0 && o.PerSuccess <= 1):
		return fmt.Errorf("per_success must be in 0..1, got %v", o.PerSuccess)
	}
	return nil
}

// UnmarshalJSON sets the knobs that b names and refuses unknown ones.
func (o *Options) UnmarshalJSON(b []byte) error {
	type plain Options
	return knobs.Unmarshal(b, (*plain)(o))
}

// Milli is a token in the unit that buckets count in: thousandths, so that ten
// tenths are one.
const Milli = 1000

// MilliTokens rounds an amount of tokens to thousandths.
func MilliTokens(tokens float64) int64 { return int64(math.Round(tokens * Milli)) }

// Local is a bucket in this process. It never blocks.
type Local struct {
	milli              atomic.Int64
	size, perSuccessMT int64
}

// New returns a full bucket. The options are not checked: see [Options.Validate].
func New(o Options) *Local {
	b := &Local{size: MilliTokens(o.Tokens), perSuccessMT: MilliTokens(o.PerSuccess)}
	b.milli.Store(b.size)
	return b
}

// Take as in [Budget].
func (b *Local) Take(context.Context) bool {
	for {
		have := b.milli.Load()
		if have < Milli {
			return false
		}
		if b.milli.CompareAndSwap(have, have-Milli) {
			return true
		}
	}
}

// Return as in [Budget].
func (b *Local) Return(context.Context) { b.add(Milli) }

// Success as in [Budget].
func (b *Local) Success(context.Context) { b.add(b.perSuccessMT) }

// Tokens is what is left, 0 to the size of the bucket.
func (b *Local) Tokens() float64 { return float64(b.milli.Load()) / Milli }

func (b *Local) add(milli int64) {
	for {
		have := b.milli.Load()
		want := min(b.size, have+milli)
		if have == want || b.milli.CompareAndSwap(have, want) {
			return
		}
	}
}
