package metrics

import (
	"math"
	"math/bits"
	"slices"

	"github.com/retrylens/retrylens"
)

// Quantiles are the quantiles of a report in milliseconds; not set without
// samples.
type Quantiles struct{ P50, P90, P99 retrylens.Opt[int64] }

// Sketch is a mergeable histogram of milliseconds. Its quantiles are within
// 1/256 (0.4 %) of the exact nearest rank. The zero value is empty and ready to
// use; it is not safe for concurrent mutation.
type Sketch struct {
	counts map[uint16]uint64
	n      uint64
}

// SketchIndex is the bucket of a value: below 256 the value itself, else
// shift·128 + (v >> shift) with shift = floor(log2 v) − 7.
func SketchIndex(ms uint64) uint16 {
	if ms < 256 {
		return uint16(ms)
	}
	shift := bits.Len64(ms) - 8
	return uint16(shift*128 + int(ms>>shift))
}

// SketchIndexSigned is SketchIndex for a latency, which clock skew can make
// negative by up to a second (operation_started_at ≤ started_at + 1 s): these
// take the buckets that count down from 65535 (−1), each exact. In SQL:
// if(ms < 0, toUInt16(65536 + ms), …).
func SketchIndexSigned(ms int64) uint16 {
	if ms >= 0 {
		return SketchIndex(uint64(ms))
	}
	return uint16(math.MaxUint16 + 1 + max(ms, math.MinInt16))
}

// SketchValue is the middle of a bucket, the inverse of SketchIndexSigned.
func SketchValue(idx uint16) int64 {
	switch {
	case idx > math.MaxInt16:
		return int64(idx) - math.MaxUint16 - 1
	case idx < 256:
		return int64(idx)
	}
	shift := int(idx)/128 - 1
	return int64(int(idx)-shift*128)<<shift + int64(1)<<shift/2
}

// Add adds one sample.
func (s *Sketch) Add(ms int64) { s.AddBucket(SketchIndexSigned(ms), 1) }

// AddBucket adds n samples of a bucket.
func (s *Sketch) AddBucket(idx uint16, n uint64) {
	if n == 0 {
		return
	}
	if s.counts == nil {
		s.counts = map[uint16]uint64{}
	}
	s.counts[idx] += n
	s.n += n
}

// Each calls fn with every bucket that has samples, in no order.
func (s *Sketch) Each(fn func(idx uint16, n uint64)) {
	for idx, n := range s.counts {
		fn(idx, n)
	}
}

// Merge adds all samples of o.
func (s *Sketch) Merge(o *Sketch) {
	for idx, n := range o.counts {
		s.AddBucket(idx, n)
	}
}

// Count is the number of samples.
func (s *Sketch) Count() uint64 { return s.n }

// Buckets is how many buckets have samples.
func (s *Sketch) Buckets() int { return len(s.counts) }

// Sum is the sum of the samples, each as the middle of its bucket: within 0.4 % where
// none is negative.
func (s *Sketch) Sum() (ms int64) {
	for idx, n := range s.counts {
		ms += SketchValue(idx) * int64(n)
	}
	return ms
}

// Quantile returns the value at the nearest rank sorted[ceil(p·n)−1], false
// without samples. p is within (0, 1].
func (s *Sketch) Quantile(p float64) (int64, bool) {
	if s.n == 0 {
		return 0, false
	}
	values := make([]int64, 0, len(s.counts))
	for idx := range s.counts {
		values = append(values, SketchValue(idx))
	}
	slices.Sort(values)
	rank, seen := nearestRank(p, s.n), uint64(0)
	for _, v := range values {
		if seen += s.counts[SketchIndexSigned(v)]; seen > rank {
			return v, true
		}
	}
	return values[len(values)-1], true
}

// Quantiles returns the three quantiles of a report.
func (s *Sketch) Quantiles() Quantiles {
	if s.n == 0 {
		return Quantiles{}
	}
	at := func(p float64) retrylens.Opt[int64] {
		v, _ := s.Quantile(p)
		return retrylens.Some(v)
	}
	return Quantiles{at(0.5), at(0.9), at(0.99)}
}

// exactQuantiles sorts the samples in place.
func exactQuantiles(samples []int64) Quantiles {
	if len(samples) == 0 {
		return Quantiles{}
	}
	slices.Sort(samples)
	at := func(p float64) retrylens.Opt[int64] {
		return retrylens.Some(samples[nearestRank(p, uint64(len(samples)))])
	}
	return Quantiles{at(0.5), at(0.9), at(0.99)}
}

// nearestRank is ceil(p·n) − 1 for a p of whole per mille, without the rounding
// of floats.
func nearestRank(p float64, n uint64) uint64 {
	permille := uint64(math.Round(p * 1000))
	hi, lo := bits.Mul64(permille, n)
	q, r := bits.Div64(hi, lo, 1000)
	if r == 0 && q > 0 {
		q--
	}
	return min(q, n-1)
}
