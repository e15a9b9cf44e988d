package detect

import (
	"fmt"
	"time"
)

// Options are the edges of a verdict. The zero value of a field is its default, which
// make detector-bench has tuned on one half of its seeds.
type Options struct {
	MinOperations int64 // of a window that is judged; default 20
	MaxSeries     int   // that are kept, beside All; default 10,000. Those beyond are not judged

	Votes VoteOptions
	// Joint is what the scores of all votes must come to together for a masked outage, in
	// standard deviations beyond what a flaky provider shows; default 3.4.
	Joint float64
	// FlakyExcess is the amplification − 1 that a merely flaky provider reaches; default 0.18.
	FlakyExcess float64
	// SustainedExcess is the amplification − 1 that it reaches for long; default 0.15.
	SustainedExcess float64
	// Confirm is how many evaluations in a row must say the same before a state begins
	// that pages; default 1.
	Confirm int
	// Clean is how many evaluations without votes end a recovery; default 2.
	Clean int
	// HoldSmall is for how long a state that pages outlives a window too small to be
	// judged; default 10 minutes.
	HoldSmall time.Duration
}

// VoteOptions are the edges of single votes: a score in standard deviations, and a
// change that is worth a word however sure it is.
type VoteOptions struct {
	CallsScore, CallsChange     float64 // amplification and retry ratio over their baselines; 4.5 and 0.05
	SuccessScore, SuccessChange float64 // retry success ratio under its baseline; 2 and 0.1
	P50Score, P50Change         float64 // as a factor − 1; 1.3 and 0.1
	P99Score, P99Change         float64 // 1 and 0.1
	ErrorScore, ErrorChange     float64 // error ratio over its baseline: no longer flat; 5 and 0.03
	Drift                       float64 // of a CUSUM, in standard deviations summed up; 8
}

func (o *Options) fill() error {
	for _, d := range []struct {
		v   *float64
		def float64
	}{
		{&o.Joint, 3.4}, {&o.FlakyExcess, 0.18}, {&o.SustainedExcess, 0.15},
		{&o.Votes.CallsScore, 4.5}, {&o.Votes.CallsChange, 0.05},
		{&o.Votes.SuccessScore, 2}, {&o.Votes.SuccessChange, 0.1},
		{&o.Votes.P50Score, 1.3}, {&o.Votes.P50Change, 0.1},
		{&o.Votes.P99Score, 1}, {&o.Votes.P99Change, 0.1},
		{&o.Votes.ErrorScore, 5}, {&o.Votes.ErrorChange, 0.03}, {&o.Votes.Drift, 8},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if !(*d.v > 0) { // NaN too
			return fmt.Errorf("detect: edges of Options must be positive, got %v", *d.v)
		}
	}
	o.MinOperations, o.MaxSeries = orDefault(o.MinOperations, 20), orDefault(o.MaxSeries, 10_000)
	o.Confirm, o.Clean = orDefault(o.Confirm, 1), orDefault(o.Clean, 2)
	o.HoldSmall = orDefault(o.HoldSmall, 10*time.Minute)
	if min(o.MinOperations, int64(o.MaxSeries), int64(o.Confirm), int64(o.Clean), int64(o.HoldSmall)) < 0 {
		return fmt.Errorf("detect: counts and durations of Options must not be negative: %+v", *o)
	}
	return nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
