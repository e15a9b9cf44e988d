package metrics_test

import (
	"maps"
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

// However samples come together, the sketch is the same as if they were added one by one.
func TestSketchesOfTheSameSamplesAreEqual(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		var parts [4]metrics.Sketch
		var one metrics.Sketch
		want := map[uint16]uint64{}
		for range r.IntN(400) {
			ms, n := r.Int64N(1<<(1+r.IntN(20)))-r.Int64N(3)*r.Int64N(900), uint64(1+r.IntN(3))
			idx := metrics.SketchIndexSigned(ms)
			parts[r.IntN(4)].AddBucket(idx, n)
			one.AddBucket(idx, n)
			want[idx] += n
		}
		var merged, again metrics.Sketch
		for i := range parts {
			merged.Merge(&parts[i])
		}
		for _, i := range r.Perm(4) {
			again.Merge(&parts[i])
		}
		again.Merge(&metrics.Sketch{})
		got := map[uint16]uint64{}
		last := int64(math.MinInt64)
		merged.Each(func(idx uint16, n uint64) {
			if v := metrics.SketchValue(idx); v <= last {
				t.Fatalf("seed %d: %d after %d", seed, v, last)
			}
			last = metrics.SketchValue(idx)
			got[idx] = n
		})
		if !maps.Equal(got, want) || merged.Quantiles() != one.Quantiles() || again.Quantiles() != one.Quantiles() || merged.Count() != one.Count() || again.Sum() != one.Sum() || merged.Buckets() != len(want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// What is merged from is not changed, now or by what is merged later.
func TestMergingLeavesTheOtherSketchAlone(t *testing.T) {
	var a, b metrics.Sketch
	a.Add(5)
	a.Add(9)
	b.Merge(&a)
	b.Add(5)
	b.Add(7)
	b.Merge(&a)
	if a.Count() != 2 || a.Buckets() != 2 || b.Count() != 6 {
		t.Errorf("%d samples in %d buckets, and %d", a.Count(), a.Buckets(), b.Count())
	}
}
