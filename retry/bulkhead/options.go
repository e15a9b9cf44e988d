package bulkhead

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/internal/knobs"
)

// Options are the knobs of a bulkhead. The zero value is not valid; see [Default].
type Options struct {
	Limit       int           `json:"limit" yaml:"limit"`               // calls in flight while all is well; 1..1,000,000
	Min         int           `json:"min" yaml:"min"`                   // halving ends here; 1..limit
	LimitWindow time.Duration `json:"limit_window" yaml:"limit_window"` // the provider's rate window: halved at most once in it; ≥ 0
	Recovery    float64       `json:"recovery" yaml:"recovery"`         // share of the full limit that comes back a minute; 0..1
	MaxWaiting  int           `json:"max_waiting" yaml:"max_waiting"`   // callers that wait for a slot, beyond them it is refused at once; 0 = any number
}

// Default is 64 calls in flight, halved at most once a minute (the window of most
// providers' limits), recovering by 10 % a minute.
func Default() Options {
	return Options{Limit: 64, Min: 1, LimitWindow: time.Minute, Recovery: 0.1}
}

// Validate names the first knob that is out of range.
func (o Options) Validate() error {
	switch {
	case o.Limit < 1 || o.Limit > 1e6:
		return fmt.Errorf("limit must be in 1..1000000, got %d", o.Limit)
	case o.Min < 1 || o.Min > o.Limit:
		return fmt.Errorf("min must be in 1..limit (%d), got %d", o.Limit, o.Min)
	case o.LimitWindow < 0:
		return fmt.Errorf("limit_window must not be negative, got %v", o.LimitWindow)
	case !(o.Recovery >= 0 && o.Recovery <= 1):
		return fmt.Errorf("recovery must be in 0..1, got %v", o.Recovery)
	case o.MaxWaiting < 0:
		return fmt.Errorf("max_waiting must not be negative, got %d", o.MaxWaiting)
	}
	return nil
}

// MarshalJSON writes durations as text ("1m0s").
func (o Options) MarshalJSON() ([]byte, error) {
	type plain Options
	return knobs.Marshal(plain(o))
}

// UnmarshalJSON sets the knobs that b names and refuses unknown ones.
func (o *Options) UnmarshalJSON(b []byte) error {
	type plain Options
	return knobs.Unmarshal(b, (*plain)(o))
}
