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
	at     []int16  // buckets that have samples, ascending: as signed numbers they are in the order of their values
	counts []uint64 // their samples
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
	s.n += n
	at := int16(idx)
	i, there := len(s.at), false
	if i > 0 && at <= s.at[i-1] {
		i, there = slices.BinarySearch(s.at, at)
	}
	if there {
		s.counts[i] += n
		return
	}
	s.at, s.counts = slices.Insert(s.at, i, at), slices.Insert(s.counts, i, n)
}

// Each calls fn with every bucket that has samples, the smallest values first.
func (s *Sketch) Each(fn func(idx uint16, n uint64)) {
	for i, at := range s.at {
		fn(uint16(at), s.counts[i])
	}
}

// Merge adds all samples of o.
func (s *Sketch) Merge(o *Sketch) {
	if s.addKnown(o) {
		return
	}
	sum := Sketch{at: make([]int16, 0, len(s.at)+len(o.at)), counts: make([]uint64, 0, len(s.at)+len(o.at)), n: s.n + o.n}
	i, j := 0, 0
	for i < len(s.at) || j < len(o.at) {
		switch {
		case j == len(o.at) || i < len(s.at) && s.at[i] < o.at[j]:
			sum.at, sum.counts = append(sum.at, s.at[i]), append(sum.counts, s.counts[i])
			i++
		case i == len(s.at) || o.at[j] < s.at[i]:
			sum.at, sum.counts = append(sum.at, o.at[j]), append(sum.counts, o.counts[j])
			j++
		default:
			sum.at, sum.counts = append(sum.at, s.at[i]), append(sum.counts, s.counts[i]+o.counts[j])
			i, j = i+1, j+1
		}
	}
	*s = sum
}

// addKnown adds o in place if s has samples in all its buckets.
func (s *Sketch) addKnown(o *Sketch) bool {
	if len(o.at) > len(s.at) {
		return false
	}
	i := 0
	for _, at := range o.at {
		for i < len(s.at) && s.at[i] < at {
			i++
		}
		if i == len(s.at) || s.at[i] != at {
			return false
		}
	}
	i = 0
	for j, at := range o.at {
		for s.at[i] < at {
			i++
		}
		s.counts[i] += o.counts[j]
	}
	s.n += o.n
	return true
}

// Count is the number of samples.
func (s *Sketch) Count() uint64 { return s.n }

// Buckets is how many buckets have samples.
func (s *Sketch) Buckets() int { return len(s.at) }

// Sum is the sum of the samples, each as the middle of its bucket: within 0.4 % where
// none is negative.
func (s *Sketch) Sum() (ms int64) {
	for i, at := range s.at {
		ms += SketchValue(uint16(at)) * int64(s.counts[i])
	}
	return ms
}

// Quantile returns the value at the nearest rank sorted[ceil(p·n)−1], false
// without samples. p is within (0, 1].
func (s *Sketch) Quantile(p float64) (int64, bool) {
	if s.n == 0 {
		return 0, false
	}
	rank, seen := nearestRank(p, s.n), uint64(0)
	for i, n := range s.counts {
		if seen += n; seen > rank {
			return SketchValue(uint16(s.at[i])), true
		}
	}
	return SketchValue(uint16(s.at[len(s.at)-1])), true
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
