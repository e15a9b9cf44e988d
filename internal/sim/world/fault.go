package world

import (
	"sort"
	"time"

	"github.com/retrylens/retrylens/internal/sim/failure"
)

// effect is what all faults of a moment come to.
type effect struct {
	errors            [Zones]float64
	mix               failure.Mix
	hang, breaks      float64
	latency, capacity float64
	quota             bool
}

// healthy is a provider on a good day.
var healthy = effect{errors: EveryZone(0.004), mix: failure.Degraded, hang: 0.0002, latency: 1, capacity: 1}

// clientFaultRate is the share of requests that are our own fault.
const clientFaultRate = 0.0002

// script is the faults of one provider in their order. Times must not go back.
type script struct {
	faults []Fault // those to come
	active []Fault
}

func newScript(provider string, all []Fault) *script {
	s := &script{}
	for _, f := range all {
		if f.Provider == provider {
			s.faults = append(s.faults, f)
		}
	}
	sort.SliceStable(s.faults, func(i, j int) bool { return s.faults[i].From < s.faults[j].From })
	return s
}

// at is the effect on requests for a model now.
func (s *script) at(now time.Duration, model string) effect {
	for len(s.faults) > 0 && s.faults[0].From <= now {
		s.active = append(s.active, s.faults[0])
		s.faults = s.faults[1:]
	}
	e := healthy
	if len(s.active) == 0 {
		return e
	}
	kept := s.active[:0]
	for i := range s.active {
		f := &s.active[i]
		if now >= f.To {
			continue
		}
		kept = append(kept, *f)
		if f.Model == "" || f.Model == model {
			e.add(f, f.strength(now))
		}
	}
	s.active = kept
	return e
}

// strength of a fault that comes and goes slowly, 0..1.
func (f *Fault) strength(now time.Duration) float64 {
	k := 1.0
	if in := now - f.From; in < f.RampUp {
		k = float64(in) / float64(f.RampUp)
	}
	if left := f.To - now; left < f.RampDown {
		k = min(k, float64(left)/float64(f.RampDown))
	}
	return k
}

func (e *effect) add(f *Fault, k float64) {
	for z, rate := range f.ErrorRates {
		e.errors[z] = either(e.errors[z], rate*k)
	}
	if f.Mix != nil {
		e.mix = f.Mix
	}
	e.hang, e.breaks = either(e.hang, f.HangRate*k), either(e.breaks, f.BreakRate*k)
	if f.LatencyFactor > 0 {
		e.latency *= 1 + (f.LatencyFactor-1)*k
	}
	if f.CapacityFactor > 0 {
		e.capacity *= 1 + (f.CapacityFactor-1)*k
	}
	e.quota = e.quota || f.Quota
}

// either of two independent things happens.
func either(a, b float64) float64 { return a + b - a*b }
