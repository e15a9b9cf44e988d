package detect

// The figures that a week has a shape of.
const (
	shapeP50 = iota
	shapeP99
	shapeCalls
	shapeTries
	shapeErrors
	shapes
)

const (
	hours = 7 * 24
	// weeks are remembered of every hour of the week; with enoughWeeks of them its shape
	// is used.
	weeks       = 4
	enoughWeeks = 3
)

// profile is how the hours of a week differ from the day around them: latencies by the
// difference of logarithms, so that a level which shifts for good takes its shape along;
// rates as they are.
type profile struct {
	Hours [hours]hourShape
	now   uint8
	sums  []entry // of the hour that goes on
}

type hourShape struct {
	Weeks  uint8 // how many were seen; the newest is at (Weeks−1) mod weeks
	Values [shapes][weeks]float32
}

// at is the shape of an hour: 0 without enough weeks, or without a profile.
func (p *profile) at(figure int, hour uint8) float64 {
	if p == nil || p.Hours[hour].Weeks < enoughWeeks {
		return 0
	}
	h := &p.Hours[hour]
	var values [weeks]float64
	n := min(int(h.Weeks), weeks)
	for i := range n {
		values[i] = float64(h.Values[figure][i])
	}
	return median(values[:n])
}

// known tells whether an hour has a shape.
func (p *profile) known(hour uint8) bool { return p != nil && p.Hours[hour].Weeks >= enoughWeeks }

// learn adds a learned sample, compared with the baseline of its day.
func (p *profile) learn(e entry, b *baseline) {
	if e.Hour != p.now && len(p.sums) > 0 {
		p.close(b)
	}
	p.now = e.Hour
	p.sums = append(p.sums, e)
}

func (p *profile) close(b *baseline) {
	defer func() { p.sums = p.sums[:0] }()
	if b.Source != SourceDay {
		return
	}
	h := &p.Hours[p.now]
	i := int(h.Weeks) % weeks
	h.Values[shapeP50][i] = p.levelOf(b.P50[ofWindow], func(e *entry) float32 { return e.Latency[ofWindow].P50 })
	h.Values[shapeP99][i] = p.levelOf(b.P99[ofWindow], func(e *entry) float32 { return e.Latency[ofWindow].P99 })
	h.Values[shapeCalls][i] = p.rateOf(func(e *entry) (uint32, uint32) { return e.Calls, e.Operations })
	h.Values[shapeTries][i] = p.rateOf(func(e *entry) (uint32, uint32) { return e.Tries, e.Operations })
	h.Values[shapeErrors][i] = p.rateOf(func(e *entry) (uint32, uint32) { return e.Failed, e.Finished })
	if h.Weeks++; h.Weeks >= 2*weeks { // never 0 again, the same place
		h.Weeks -= weeks
	}
}

func (p *profile) levelOf(l level, of func(*entry) float32) float32 {
	var values []float64
	for i := range p.sums {
		if v := of(&p.sums[i]); v == v { // no NaN
			values = append(values, float64(v)-l.Log)
		}
	}
	if !l.Known {
		return 0
	}
	return float32(median(values))
}

func (p *profile) rateOf(of func(*entry) (uint32, uint32)) float32 {
	var num, den int64
	for i := range p.sums {
		n, d := of(&p.sums[i])
		num, den = num+int64(n), den+int64(d)
	}
	return float32(ratio(num, den))
}
