package metrics_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/retrylens/retrylens/internal/metrics"
)

func TestSketchIndex(t *testing.T) {
	for ms, want := range map[uint64]uint16{
		0: 0, 1: 1, 255: 255, 256: 256, 257: 256, 258: 257, 510: 383, 511: 383, 512: 384, 515: 384, 516: 385,
		1 << 20: 13*128 + 128, 1<<53 - 1: 45*128 + 255, 1<<63 - 1: 55*128 + 255,
	} {
		if got := metrics.SketchIndex(ms); got != want {
			t.Errorf("SketchIndex(%d) = %d, want %d", ms, got, want)
		}
	}
}

func TestSketchOrderAndError(t *testing.T) {
	last := int64(-1)
	for idx := range uint16(46*128 + 128) {
		v := metrics.SketchValue(idx)
		if v <= last || metrics.SketchIndexSigned(v) != idx {
			t.Fatalf("bucket %d: middle %d after %d, in bucket %d", idx, v, last, metrics.SketchIndexSigned(v))
		}
		last = v
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		ms := r.Int64() >> r.IntN(63)
		got := metrics.SketchValue(metrics.SketchIndexSigned(ms))
		if err := math.Abs(float64(got-ms)) / max(1, float64(ms)); err > 1.0/256 || ms < 256 && got != ms {
			t.Fatalf("%d became %d: error %g", ms, got, err)
		}
	}
}

func TestSketchOfNegativeLatencies(t *testing.T) {
	var s metrics.Sketch
	for _, ms := range []int64{-1000, -1, 5} {
		s.Add(ms)
	}
	for p, want := range map[float64]int64{0.1: -1000, 0.5: -1, 0.9: 5} {
		if got, ok := s.Quantile(p); !ok || got != want {
			t.Errorf("quantile %v = %d, want %d", p, got, want)
		}
	}
}

func TestSketchIsWithinToleranceOfNearestRank(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 2, 3, 10, 99, 100, 101, 1000} {
		var whole, half metrics.Sketch
		samples := make([]int64, n)
		for i := range samples {
			samples[i] = r.Int64N(1 << (1 + r.IntN(40)))
			if i%2 == 0 {
				whole.Add(samples[i])
			} else {
				half.AddBucket(metrics.SketchIndexSigned(samples[i]), 1)
			}
		}
		whole.Merge(&half)
		slices.Sort(samples)
		for _, permille := range []int{1, 500, 900, 990, 999, 1000} {
			want := samples[(permille*n+999)/1000-1]
			got, ok := whole.Quantile(float64(permille) / 1000)
			if !ok || math.Abs(float64(got-want)) > 0.004*float64(want) {
				t.Errorf("n %d, %d per mille: %d, want %d", n, permille, got, want)
			}
		}
	}
}

func TestEmptySketch(t *testing.T) {
	var s metrics.Sketch
	s.AddBucket(7, 0)
	if _, ok := s.Quantile(0.5); ok || s.Count() != 0 || s.Quantiles() != (metrics.Quantiles{}) {
		t.Error("an empty sketch has quantiles")
	}
}
