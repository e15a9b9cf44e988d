package detect

import (
	"math"
	"slices"
)

// Sources of a baseline.
const (
	SourceFloors = "floors" // a cold start: fixed values
	SourceYoung  = "young"  // less than an hour of history, its noise assumed
	SourceDay    = "day"    // the trailing 24 hours
	SourceWeek   = "week"   // these, shaped by the hour of the week
)

// Fixed floors. A baseline made of history does not lie under them either, as far as
// they are rates: nothing observed is no proof of never.
const (
	floorCalls   = 0.005
	floorErrors  = 0.002
	coldCalls    = 0.05
	coldErrors   = 0.02
	coldNoise    = 0.3
	highSuccess  = 0.9 // a retry success ratio that is high, whatever it was before
	priorRetries = 20  // of highSuccess, that every baseline of it begins with
	levelNoise   = 0.05
	answerNoise  = 1 // a mean of answers is no surer than that of their usual spread

	// Of a young baseline: the rates that it is not below, and the noise of its levels, which
	// few samples do not show.
	youngCalls    = 0.02
	youngErrors   = 0.005
	youngP50Noise = 1.1
	youngP99Noise = 3
)

// rate is a baseline of events for each operation.
type rate struct{ Mean, Spread float64 }

// high is what it reaches on a day as usual.
func (r rate) high() float64 { return r.Mean + r.Spread }

// level is a baseline of the logarithm of a latency.
type level struct {
	Log   float64
	Noise float64 // of one operation's share in it: the deviation times √n
	Known bool
}

// deviation of the level of n operations.
func (l level) deviation(n int64) float64 {
	return math.Sqrt(l.Noise*l.Noise/float64(max(n, 1)) + levelNoise*levelNoise)
}

// baseline is what is usual for a series.
type baseline struct {
	Source              string
	Calls, Tries, Error rate
	Success             float64
	FirstSuccess        float64
	P50, P99, Answer    [parts]level
}

func coldBaseline() baseline {
	b := baseline{
		Source: SourceFloors, Calls: rate{coldCalls, coldCalls}, Tries: rate{coldCalls, coldCalls}, Error: rate{Mean: coldErrors},
		Success: highSuccess, FirstSuccess: 1 - coldCalls,
	}
	return b
}

// mostUsual is the excess of retries and hidden calls from which on a window is usual for
// nobody, however long it has been so: from there amplification pages.
const mostUsual = 0.2

// baseliner makes baselines; it keeps scratch space.
type baseliner struct {
	values, deviations []float64
	ratios             []weighted
}

type weighted struct {
	ratio   float64
	num, of uint32
}

// make computes the baseline of a history; shape may be nil.
func (m *baseliner) make(h *history, shape *profile) baseline {
	if len(h.ring) < warm {
		return m.young(h)
	}
	b := m.from(h.ring, shape, floorCalls, floorErrors)
	b.Source = SourceDay
	return b
}

// young makes a baseline of what is still in quarantine, too, but for the newest sample.
func (m *baseliner) young(h *history) baseline {
	entries := append(slices.Clone(h.ring), h.waiting[:max(0, len(h.waiting)-1)]...)
	if len(entries) < youngest {
		return coldBaseline()
	}
	b := m.from(entries, nil, youngCalls, youngErrors)
	b.Source = SourceYoung
	unsure := math.Sqrt(1 + math.Pi/2/float64(len(entries))) // of the median of so few
	for p := range parts {
		b.P50[p].Noise = max(b.P50[p].Noise, youngP50Noise) * unsure
		b.P99[p].Noise = max(b.P99[p].Noise, youngP99Noise) * unsure
		b.Answer[p].Noise = max(b.Answer[p].Noise, youngP50Noise) * unsure
	}
	return b
}

func (m *baseliner) from(ring []entry, shape *profile, calls, errors float64) (b baseline) {
	b.Calls = m.rate(ring, calls, func(e *entry) (uint32, uint32) { return e.Calls, e.Operations })
	b.Tries = m.rate(ring, calls, func(e *entry) (uint32, uint32) { return e.Tries, e.Operations })
	b.Error = m.rate(ring, errors, func(e *entry) (uint32, uint32) { return e.Failed, e.Finished })
	b.Success, b.FirstSuccess = successes(ring)
	for p := range parts {
		b.P50[p] = m.level(ring, shape, shapeP50, func(e *entry) (uint32, float32) { return e.Latency[p].N, e.Latency[p].P50 })
		b.P99[p] = m.level(ring, shape, shapeP99, func(e *entry) (uint32, float32) { return e.Latency[p].N, e.Latency[p].P99 })
		b.Answer[p] = m.level(ring, shape, shapeP50, func(e *entry) (uint32, float32) { return e.Latency[p].N, e.Latency[p].Answer })
		b.Answer[p].Noise = max(b.Answer[p].Noise, answerNoise)
	}
	return b
}

// rate is the pooled mean of all but the worst tenth of the windows, with the median
// absolute deviation between windows.
func (m *baseliner) rate(ring []entry, floor float64, of func(*entry) (num, den uint32)) rate {
	m.ratios, m.values = m.ratios[:0], m.values[:0]
	for i := range ring {
		if num, den := of(&ring[i]); den > 0 {
			m.ratios = append(m.ratios, weighted{float64(num) / float64(den), num, den})
		}
	}
	slices.SortFunc(m.ratios, func(a, b weighted) int {
		switch {
		case a.ratio < b.ratio:
			return -1
		case a.ratio > b.ratio:
			return 1
		}
		return 0
	})
	kept := m.ratios[:len(m.ratios)-len(m.ratios)/10]
	var num, den int64
	for _, w := range kept {
		num, den = num+int64(w.num), den+int64(w.of)
	}
	if den == 0 {
		return rate{Mean: floor}
	}
	middle := m.ratios[len(m.ratios)/2].ratio
	for _, w := range m.ratios {
		m.values = append(m.values, math.Abs(w.ratio-middle))
	}
	return rate{max(floor, float64(num)/float64(den)), madScale * median(m.values)}
}

func (m *baseliner) level(ring []entry, shape *profile, figure int, of func(*entry) (n uint32, log float32)) level {
	m.values = m.values[:0]
	for i := range ring {
		if _, v := of(&ring[i]); v == v { // no NaN
			m.values = append(m.values, float64(v)-shape.at(figure, ring[i].Hour))
		}
	}
	if len(m.values) < youngest {
		return level{}
	}
	l := level{Log: median(m.values), Known: true}
	m.deviations = m.deviations[:0]
	for i := range ring {
		if n, v := of(&ring[i]); v == v {
			m.deviations = append(m.deviations, math.Abs(float64(v)-shape.at(figure, ring[i].Hour)-l.Log)*math.Sqrt(float64(n)))
		}
	}
	l.Noise = max(coldNoise, madScale*median(m.deviations))
	return l
}

// successes are the baselines of the retry success ratio, with a prior that makes one
// without retries defined, and of first attempts.
func successes(ring []entry) (retry, first float64) {
	tries, good := float64(priorRetries), priorRetries*highSuccess
	firsts, firstGood := 1.0, 1-coldCalls
	for i := range ring {
		e := &ring[i]
		tries, good = tries+float64(e.Retries), good+float64(e.Successes)
		firsts, firstGood = firsts+float64(e.FirstAttempts), firstGood+float64(e.FirstSuccess)
	}
	return min(highSuccess, good/tries), firstGood / firsts
}
