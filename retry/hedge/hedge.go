package hedge

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/retrylens/retrylens/retry/internal/knobs"
)

// Options are the knobs of hedging. The zero value is off; see [Default].
type Options struct {
	Enabled        bool          `json:"enabled" yaml:"enabled"`
	Quantile       float64       `json:"quantile" yaml:"quantile"`               // of the latencies of good answers; above 0, below 1
	Window         time.Duration `json:"window" yaml:"window"`                   // of the latencies, in five steps; ≥ 5 s
	MinSamples     int           `json:"min_samples" yaml:"min_samples"`         // no hedge with fewer good answers in the window; ≥ 1
	Share          float64       `json:"share" yaml:"share"`                     // hedges per call at most; 0..1
	SecondProvider bool          `json:"second_provider" yaml:"second_provider"` // the copy goes to the operation's second provider, if it has one
}

// Default is off; once enabled, a copy after the p95 of the last 5 minutes, for at
// most 5 % of the calls.
func Default() Options {
	return Options{Quantile: 0.95, Window: 5 * time.Minute, MinSamples: 20, Share: 0.05}
}

// Validate names the first knob that is out of range; nothing is wrong with
// hedging that is off.
func (o Options) Validate() error {
	switch {
	case !o.Enabled:
		return nil
	case !(o.Quantile > 0 && o.Quantile < 1):
		return fmt.Errorf("quantile must be above 0 and below 1, got %v", o.Quantile)
	case o.Window < 5*time.Second:
		return fmt.Errorf("window must be at least 5s, got %v", o.Window)
	case o.MinSamples < 1:
		return fmt.Errorf("min_samples must be at least 1, got %d", o.MinSamples)
	case !(o.Share >= 0 && o.Share <= 1):
		return fmt.Errorf("share must be in 0..1, got %v", o.Share)
	}
	return nil
}

// MarshalJSON writes durations as text ("5m0s").
func (o Options) MarshalJSON() ([]byte, error) {
	type plain Options
	return knobs.Marshal(plain(o))
}

// UnmarshalJSON sets the knobs that b names and refuses unknown ones.
func (o *Options) UnmarshalJSON(b []byte) error {
	type plain Options
	return knobs.Unmarshal(b, (*plain)(o))
}

const (
	steps     = 5
	perOctave = 16 // buckets of a factor of two: bounds 4.4 % apart
	buckets   = 24 * perOctave
	burst     = 10 // hedges that a quiet time may save up
)

// Tracker knows the latencies of one provider and what hedges it may still get. It
// is safe for concurrent use.
type Tracker struct {
	o    Options
	step time.Duration

	mu      sync.Mutex
	last    int64 // number of the newest step
	cells   [steps][buckets]uint32
	totals  [buckets]uint32
	samples uint32
	credit  float64 // hedges earned by calls, at most burst
}

// NewTracker returns a tracker without samples. The options are not checked: see
// [Options.Validate].
func NewTracker(o Options) *Tracker {
	return &Tracker{o: o, step: max(o.Window/steps, 1)}
}

// Call counts one call that is no hedge: it earns Share of a hedge.
func (t *Tracker) Call() {
	t.mu.Lock()
	t.credit = min(burst, t.credit+t.o.Share)
	t.mu.Unlock()
}

// Take uses up one earned hedge; false without one.
func (t *Tracker) Take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	const rounding = 1e-9 // twenty times 0.05 is a little less than 1
	if t.credit < 1-rounding {
		return false
	}
	t.credit = max(0, t.credit-1)
	return true
}

// Return gives an earned hedge back that was not sent.
func (t *Tracker) Return() {
	t.mu.Lock()
	t.credit = min(burst, t.credit+1)
	t.mu.Unlock()
}

// Observe counts the latency of one good answer.
func (t *Tracker) Observe(now time.Time, latency time.Duration) {
	i := bucket(latency)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roll(now)
	t.cells[uint64(t.last)%steps][i]++
	t.totals[i]++
	t.samples++
}

// After is how long a call may take before its copy is worth sending: the upper
// bound of the quantile's bucket, at most 4.4 % above it. False with too few samples.
func (t *Tracker) After(now time.Time) (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.roll(now)
	if t.samples == 0 || int(t.samples) < t.o.MinSamples {
		return 0, false
	}
	rank := uint32(math.Ceil(t.o.Quantile * float64(t.samples)))
	var seen uint32
	for i, n := range t.totals {
		if seen += n; seen >= rank {
			return bound(i), true
		}
	}
	return 0, false
}

// roll empties the steps that have passed.
func (t *Tracker) roll(now time.Time) {
	n := now.UnixNano() / int64(t.step)
	if t.last == 0 {
		t.last = n
	}
	for i := 0; t.last < n && i < steps; i++ {
		t.last++
		t.clear(uint64(t.last) % steps)
	}
	t.last = max(t.last, n)
}

func (t *Tracker) clear(step uint64) {
	for i, n := range t.cells[step] {
		t.totals[i] -= n
		t.samples -= n
		t.cells[step][i] = 0
	}
}

// bucket of a latency: 1 ms and less is 0, above 4.6 h the last.
func bucket(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	i := int(math.Ceil(math.Log2(float64(d)/float64(time.Millisecond)) * perOctave))
	return min(i, buckets-1)
}

func bound(i int) time.Duration {
	return time.Duration(math.Exp2(float64(i)/perOctave) * float64(time.Millisecond))
}
