package detect

import (
	"math"
	"testing"
)

// TestScoresAreTails: held to tails of known size. A score of 2 is the normal tail of
// 0.02275, 3 of 0.00135.
func TestScoresAreTails(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, tail float64
	}{
		{"Poisson 0.3, at least 3", poissonScore(3, 0.3), 0.0035995},
		{"Poisson 0.3, at least 5", poissonScore(5, 0.3), 1.5785e-5},
		{"Poisson 10, at least 20", poissonScore(20, 10), 0.0034543},
		{"Poisson, a part of an event is none", poissonScore(3.9, 0.3), 0.0035995},
		{"binomial 10 of 0.1, at least 4", binomialScore(4, 10, 0.1), 0.0127952},
		{"binomial 90 of 0.002, at least 3", binomialScore(3, 90, 0.002), 0.00082524},
	} {
		if tail := math.Erfc(c.got/math.Sqrt2) / 2; math.Abs(tail/c.tail-1) > 0.02 {
			t.Errorf("%s: tail %g, want %g", c.what, tail, c.tail)
		}
	}
	for _, none := range []float64{poissonScore(0, 0), poissonScore(5, 5), poissonScore(3, 40), binomialScore(0, 10, 0.1), binomialScore(1, 10, 0.5)} {
		if none != 0 {
			t.Errorf("no surprise has score %g", none)
		}
	}
	for _, most := range []float64{poissonScore(1e6, 1), poissonScore(4, 0), binomialScore(1e5, 1e6, 1e-9), binomialScore(5, 9, 0)} {
		if most != maxScore {
			t.Errorf("beyond all doubt has score %g", most)
		}
	}
}

// TestTrimmedLeavesTheWorstOut of the newest slots that have operations.
func TestTrimmedLeavesTheWorstOut(t *testing.T) {
	var slots [SpanSlots]Counts
	for i, n := range []int64{50, 50, 1, 0, 9, 2, 9, 3, 9, 4} { // the first two are too old
		slots[SpanSlots-12+i] = Counts{Operations: 10, Failed: n}
	}
	got := trimmed(slots[:], RecentSlots, 3, func(s *Counts) (int64, int64) { return s.Failed, s.Operations })
	if want := (remains{num: 1 + 0 + 2 + 3 + 4, den: 50}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
