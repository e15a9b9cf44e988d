package replay

import (
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/metrics"
)

// buckets of metrics.Sketch up to 2^40 ms; latencies beyond are no answers.
const (
	buckets   = 40 * 128
	blockSize = 64
)

// histogram finds quantiles of sketch buckets. It is reused: what was added is removed.
type histogram struct {
	counts [buckets]int32
	blocks [buckets / blockSize]int32
	n      int64
	answer int64 // sum of latencies less retry taxes
}

func (h *histogram) add(indices []uint16, answers int64) {
	for _, i := range indices {
		h.counts[i]++
		h.blocks[i/blockSize]++
	}
	h.n, h.answer = h.n+int64(len(indices)), h.answer+answers
}

func (h *histogram) remove(indices []uint16, answers int64) {
	for _, i := range indices {
		h.counts[i]--
		h.blocks[i/blockSize]--
	}
	h.n, h.answer = h.n-int64(len(indices)), h.answer-answers
}

// fill writes the quantiles of what has been added.
func (h *histogram) fill(v *detect.View) { v.SetLatencies(h.n, h.nearestRank, h.answer) }

// nearestRank is sorted[rank − 1].
func (h *histogram) nearestRank(rank int64) int64 {
	block, seen := 0, int64(0)
	for seen+int64(h.blocks[block]) < rank {
		seen += int64(h.blocks[block])
		block++
	}
	i := block * blockSize
	for seen += int64(h.counts[i]); seen < rank; seen += int64(h.counts[i]) {
		i++
	}
	return metrics.SketchValue(uint16(i)) //nolint:gosec // a bucket
}

// answerOf an operation is its latency less its retry tax, both as sketches keep them.
func answerOf(latency int32, taxMS int64) int64 {
	return metrics.SketchValue(uint16(latency)) - metrics.SketchValue(metrics.SketchIndexSigned(taxMS)) //nolint:gosec // a bucket
}

// bucketOf a latency. A negative one, of clocks that disagree, counts as 0.
func bucketOf(ms int64) int32 {
	return min(int32(metrics.SketchIndex(uint64(max(ms, 0)))), buckets-1) //nolint:gosec // not negative
}
