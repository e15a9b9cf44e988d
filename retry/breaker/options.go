package breaker

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/internal/knobs"
)

// Options are the knobs of a breaker. The zero value is not valid; see [Default].
type Options struct {
	FailureRatio float64       `json:"failure_ratio" yaml:"failure_ratio"` // opens at this share of failures; above 0..1
	MinSamples   int           `json:"min_samples" yaml:"min_samples"`     // not with fewer samples in the window; ≥ 1
	Window       time.Duration `json:"window" yaml:"window"`               // rolling, in ten steps; ≥ 1 s
	Consecutive  int           `json:"consecutive" yaml:"consecutive"`     // also opens after so many failures in a row; 0 = off
	Open         time.Duration `json:"open" yaml:"open"`                   // first cooldown; above 0
	MaxOpen      time.Duration `json:"max_open" yaml:"max_open"`           // the doubled cooldown ends here; ≥ open
	ProbeGrace   time.Duration `json:"probe_grace" yaml:"probe_grace"`     // after a cooldown only a cheap call probes; 0 = any call
	ProbeTimeout time.Duration `json:"probe_timeout" yaml:"probe_timeout"` // a probe not heard of for so long is lost; above 0
}

// Default opens at 50 % of at least 20 samples in a minute, for 30 s, doubled by
// each failed probe up to 5 minutes.
func Default() Options {
	return Options{
		FailureRatio: 0.5, MinSamples: 20, Window: time.Minute,
		Open: 30 * time.Second, MaxOpen: 5 * time.Minute, ProbeTimeout: 10 * time.Minute,
	}
}

// Validate names the first knob that is out of range.
func (o Options) Validate() error {
	switch {
	case !(o.FailureRatio > 0 && o.FailureRatio <= 1):
		return fmt.Errorf("failure_ratio must be above 0 and at most 1, got %v", o.FailureRatio)
	case o.MinSamples < 1:
		return fmt.Errorf("min_samples must be at least 1, got %d", o.MinSamples)
	case o.Window < time.Second:
		return fmt.Errorf("window must be at least 1s, got %v", o.Window)
	case o.Consecutive < 0:
		return fmt.Errorf("consecutive must not be negative, got %d", o.Consecutive)
	case o.Open <= 0:
		return fmt.Errorf("open must be positive, got %v", o.Open)
	case o.MaxOpen < o.Open:
		return fmt.Errorf("max_open must be at least open (%v), got %v", o.Open, o.MaxOpen)
	case o.ProbeGrace < 0:
		return fmt.Errorf("probe_grace must not be negative, got %v", o.ProbeGrace)
	case o.ProbeTimeout <= 0:
		return fmt.Errorf("probe_timeout must be positive, got %v", o.ProbeTimeout)
	}
	return nil
}

// MarshalJSON writes durations as text ("30s").
func (o Options) MarshalJSON() ([]byte, error) {
	type plain Options
	return knobs.Marshal(plain(o))
}

// UnmarshalJSON sets the knobs that b names and refuses unknown ones.
func (o *Options) UnmarshalJSON(b []byte) error {
	type plain Options
	return knobs.Unmarshal(b, (*plain)(o))
}
