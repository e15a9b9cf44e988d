package replay

import (
	"slices"

	"github.com/retrylens/retrylens/internal/detect"
)

// series is a ring of slots of one series.
type series struct {
	key    detect.Key
	newest int64 // slot of its latest operation
	slots  [ring]slot
}

// slot is what is known of the operations that start in one interval.
type slot struct {
	index int64 // since the epoch; a slot of another index is an old one
	detect.Counts
	latencies []uint16 // buckets of metrics.Sketch, in no order
	answers   int64    // ms: their sum less retry taxes
	classes   []classCount
}

type classCount struct {
	class string
	n     int64
}

// at is the slot of an index, emptied if it held an older one.
func (s *series) at(index int64) *slot {
	e := &s.slots[((index%ring)+ring)%ring]
	if e.index != index {
		*e = slot{index: index, latencies: e.latencies[:0], classes: e.classes[:0]}
	}
	return e
}

// filled is the slot of an index, nil if nothing was counted in it.
func (s *series) filled(index int64) *slot {
	e := &s.slots[((index%ring)+ring)%ring]
	if e.index != index || e.Attempts == 0 {
		return nil
	}
	return e
}

func (e *slot) count(op *operation, sign int64) {
	e.Add(&op.Counts, sign)
	switch {
	case op.latency == noLatency:
	case sign > 0:
		e.latencies = append(e.latencies, uint16(op.latency)) //nolint:gosec // a bucket
	default:
		i, last := slices.Index(e.latencies, uint16(op.latency)), len(e.latencies)-1 //nolint:gosec // a bucket
		e.latencies[i] = e.latencies[last]
		e.latencies = e.latencies[:last]
	}
	e.answers += sign * op.answer
	for _, class := range op.classes {
		e.countClass(class, sign)
	}
}

func (e *slot) countClass(class string, sign int64) {
	for i := range e.classes {
		if e.classes[i].class == class {
			e.classes[i].n += sign
			return
		}
	}
	e.classes = append(e.classes, classCount{class, sign})
}

func (e *slot) addClasses(to *detect.Sample) {
	for _, c := range e.classes {
		if c.n == 0 {
			continue
		}
		if to.ErrorsByClass == nil {
			to.ErrorsByClass = map[string]int64{}
		}
		to.ErrorsByClass[c.class] += c.n
	}
}
