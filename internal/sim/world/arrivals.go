package world

import (
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// arrivals gives one operation after another: a Poisson process of the highest rate
// that there can be, thinned to the rate of the moment.
type arrivals struct {
	rand  *rand.Rand
	loads []*load
	sums  []float64 // of peaks, up to each load
	now   time.Duration
	end   time.Duration
	start time.Time
	trace []Arrival
}

// load is the changing rate of one workload.
type load struct {
	*Workload
	index  int
	surges []Surge // in order of their start
	passed int     // of surges, those whose start has come
	active []Surge
	peak   float64 // highest rate, a minute
}

func newArrivals(w *World, r *rand.Rand) *arrivals {
	a := &arrivals{rand: r, end: w.Duration, start: w.Start, trace: w.Trace}
	total := 0.0
	for i := range w.Workloads {
		l := &load{Workload: &w.Workloads[i], index: i}
		highest := 1.0
		for _, s := range w.Surges {
			if s.matches(l.Workload) {
				l.surges = append(l.surges, s)
				highest = max(highest, s.Factor)
			}
		}
		sort.SliceStable(l.surges, func(i, j int) bool { return l.surges[i].From < l.surges[j].From })
		l.peak = l.PerMinute * (1 + l.Season) * highest
		total += l.peak
		a.loads, a.sums = append(a.loads, l), append(a.sums, total)
	}
	return a
}

// next returns when the next operation starts, whose it is and how many tokens it
// takes; false when there are no more.
func (a *arrivals) next() (workload int, at Arrival, ok bool) {
	if a.trace != nil {
		return a.replay()
	}
	total := a.sums[len(a.sums)-1]
	for {
		a.now += time.Duration(a.rand.ExpFloat64() / total * float64(time.Minute))
		if a.now >= a.end {
			return 0, Arrival{}, false
		}
		l := a.pick(total)
		if rate := l.rate(a.now, a.start); rate < l.peak && a.rand.Float64()*l.peak >= rate {
			continue
		}
		return l.index, Arrival{a.now, l.Prompt.draw(a.rand), l.Completion.draw(a.rand)}, true
	}
}

func (a *arrivals) pick(total float64) *load {
	u := a.rand.Float64() * total
	i := sort.Search(len(a.sums), func(i int) bool { return a.sums[i] > u })
	return a.loads[min(i, len(a.loads)-1)]
}

func (a *arrivals) replay() (int, Arrival, bool) {
	if len(a.trace) == 0 {
		return 0, Arrival{}, false
	}
	next := a.trace[0]
	a.trace = a.trace[1:]
	return a.pick(a.sums[len(a.sums)-1]).index, next, true
}

// rate of the moment, a minute; moments must not go back.
func (l *load) rate(now time.Duration, start time.Time) float64 {
	rate := l.PerMinute
	if l.Season > 0 {
		const day, highest = 24 * time.Hour, 15 * time.Hour
		at := time.Duration(start.Unix()%86400)*time.Second + now - highest
		rate *= 1 + l.Season*math.Cos(2*math.Pi*at.Seconds()/day.Seconds())
	}
	for l.passed < len(l.surges) && l.surges[l.passed].From <= now {
		l.active = append(l.active, l.surges[l.passed])
		l.passed++
	}
	kept := l.active[:0]
	for _, s := range l.active {
		if now < s.To {
			kept = append(kept, s)
			rate *= s.Factor
		}
	}
	l.active = kept
	return min(rate, l.peak)
}
