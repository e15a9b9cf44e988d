package retry

import (
	"fmt"
	"slices"
	"time"
)

// Jitter tells how a backoff is spread at random.
type Jitter uint8

// Jitters; c is the ceiling min(cap, base·2^attempt). All but full are there to be
// compared with it.
const (
	JitterFull         Jitter = iota // uniform(0, c)
	JitterNone                       // c
	JitterEqual                      // c/2 + uniform(0, c/2)
	JitterDecorrelated               // min(cap, uniform(base, 3·previous delay))
)

var jitterNames = []string{"full", "none", "equal", "decorrelated"}

// Jitters are all of them.
var Jitters = []Jitter{JitterFull, JitterNone, JitterEqual, JitterDecorrelated}

// String is the name in configurations.
func (j Jitter) String() string { return nameOf(jitterNames, int(j)) }

// MarshalText is the name in configurations.
func (j Jitter) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText takes full, none, equal or decorrelated.
func (j *Jitter) UnmarshalText(b []byte) error {
	i, err := indexOf("jitter", jitterNames, string(b))
	*j = Jitter(i)
	return err
}

// RetryAfterMode says what becomes of an asked wait above the cap.
type RetryAfterMode uint8

// Modes. Either way a record keeps what was asked.
const (
	Clamp RetryAfterMode = iota // it counts as the cap
	Obey                        // it ends the operation
)

var modeNames = []string{"clamp", "obey"}

// String is the name in configurations.
func (m RetryAfterMode) String() string { return nameOf(modeNames, int(m)) }

// MarshalText is the name in configurations.
func (m RetryAfterMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText takes clamp or obey.
func (m *RetryAfterMode) UnmarshalText(b []byte) error {
	i, err := indexOf("retry_after", modeNames, string(b))
	*m = RetryAfterMode(i)
	return err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func indexOf(knob string, names []string, name string) (int, error) {
	i := slices.Index(names, name)
	if i < 0 {
		return 0, knobError(knob, "must be one of %v, got %q", names, name)
	}
	return i, nil
}

// Backoff computes delays. It is a plain value without state.
type Backoff struct {
	Base, Cap time.Duration
	Jitter    Jitter
}

// Ceiling is min(Cap, Base·2^attempt) for attempt ≥ 0.
func (b Backoff) Ceiling(attempt int) time.Duration {
	if attempt >= 62 || b.Base > b.Cap>>attempt {
		return b.Cap
	}
	return b.Base << attempt
}

// Delay is the wait after the attempt of that position, from 0. previous is the
// wait before (decorrelated jitter builds on it), 0 for none. intn(n) is uniform
// over 0..n-1, as rand.Int64N.
func (b Backoff) Delay(attempt int, previous time.Duration, intn func(int64) int64) time.Duration {
	c := b.Ceiling(attempt)
	switch b.Jitter {
	case JitterNone:
		return c
	case JitterEqual:
		return c/2 + upTo(c-c/2, intn)
	case JitterDecorrelated:
		return min(b.Cap, b.Base+upTo(3*max(previous, b.Base)-b.Base, intn))
	}
	return upTo(c, intn)
}

// Spread is what comes on top of an asked wait so that those who were told the same
// do not come back in step: up to a tenth of it, or up to the backoff's ceiling if
// that is more; never below 0, and 0 without jitter.
func (b Backoff) Spread(attempt int, asked time.Duration, intn func(int64) int64) time.Duration {
	if b.Jitter == JitterNone {
		return 0
	}
	return upTo(min(b.Cap, max(b.Ceiling(attempt), asked/10)), intn)
}

// upTo is uniform over 0..d.
func upTo(d time.Duration, intn func(int64) int64) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(intn(int64(d) + 1))
}
