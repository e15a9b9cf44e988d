package sim

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens/internal/sim/world"
)

// plan is a simulation in the making.
type plan struct {
	o   Options
	sim *Simulation
}

// place is where and when a scenario happens.
type place struct {
	world.Window
	scenario        string
	provider, model string // model "" = all
	service         string // "" = all
	size            int    // 1..5
}

// hire takes a fleet, its shares scaled to the rate asked for.
func (p *plan) hire(fleet []world.Workload) {
	total := 0.0
	for _, l := range fleet {
		total += l.PerMinute
	}
	for i := range fleet {
		fleet[i].PerMinute *= p.o.OperationsPerMinute / total
	}
	p.sim.World.Workloads = fleet
}

// named plays a scenario on its own fleet.
func (p *plan) named(s *Scenario) {
	p.hire(s.fleet())
	length := p.o.For
	if length == 0 {
		length = min(s.length, p.o.Duration/3)
		if s.length == toTheEnd {
			length = p.o.Duration - min(p.o.At, p.o.Duration)
		}
	}
	at := place{Window: world.Window{From: p.o.At, To: p.o.At + length}, scenario: s.Name, provider: p.sim.World.Workloads[0].Provider, size: p.o.Size}
	if s.provider != "" {
		at.provider = s.provider
	}
	s.happens(p, at)
}

// series plays incidents on many series.
func (p *plan) series() error {
	p.hire(many(p.o.Series))
	for i, in := range p.o.Incidents {
		s, err := lookup(in.Scenario)
		if err != nil {
			return err
		}
		switch {
		case !s.Anywhere:
			return fmt.Errorf("sim: Options.Incidents[%d]: scenario %s needs a fleet of its own", i, s.Name)
		case in.Series < 0 || in.Series >= p.o.Series:
			return fmt.Errorf("sim: Options.Incidents[%d].Series must be within 0..%d, got %d", i, p.o.Series-1, in.Series)
		case in.Size < 0 || in.Size > Sizes || in.At < 0 || in.At > p.o.Duration || in.For < 0:
			return fmt.Errorf("sim: Options.Incidents[%d] is out of range: %+v", i, in)
		}
		p.incident(s, in)
	}
	return nil
}

func (p *plan) incident(s *Scenario, in Incident) {
	defaultTo(&in.Size, defaultSize)
	length := s.length
	if in.For > 0 {
		length = in.For
	}
	if length == toTheEnd {
		length = max(0, p.o.Duration-in.At)
	}
	l := &p.sim.World.Workloads[in.Series]
	s.happens(p, place{
		Window: world.Window{From: in.At, To: in.At + length}, scenario: s.Name,
		provider: l.Provider, model: l.Model, service: l.Service, size: in.Size,
	})
}

// fault adds one at a place.
func (p *plan) fault(at place, f world.Fault) {
	f.Provider, f.Model, f.Window = at.provider, at.model, at.Window
	p.sim.World.Faults = append(p.sim.World.Faults, f)
}

// surge multiplies the arrivals at a place.
func (p *plan) surge(at place, factor float64) {
	p.sim.World.Surges = append(p.sim.World.Surges, world.Surge{Target: at.target(), Window: at.Window, Factor: factor})
}

func (at place) target() world.Target {
	return world.Target{Provider: at.provider, Model: at.model, Service: at.service}
}

// each changes every workload of the fleet.
func (p *plan) each(change func(*world.Workload)) {
	for i := range p.sim.World.Workloads {
		change(&p.sim.World.Workloads[i])
	}
}

// after is the place with another window.
func (at place) during(from, to time.Duration) place {
	at.Window = world.Window{From: from, To: to}
	return at
}
