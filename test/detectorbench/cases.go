package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/sim/world"
)

// began is the virtual time at which every world begins: a Monday.
var began = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// Where in a case the incident is.
const (
	runUp    = 3 * time.Hour // before it: what baselines are learned from
	lasts    = 20 * time.Minute
	runDown  = 20 * time.Minute
	caseTime = runUp + lasts + runDown
)

// wide is a kind of the bench's own: a masked outage of two of a provider's three zones.
// The simulator's own sizes end at an amplification of 1.6, this one goes to 2.1.
const wide = "masked_wide"

// widths are the rates at which the zones fail, and how much slower answers become.
var widths = [sim.Sizes]struct {
	zones   [world.Zones]float64
	latency float64
}{
	{[3]float64{0.9, 0.6, 0.05}, 1.75}, {[3]float64{1, 0.7, 0.05}, 2}, {[3]float64{1, 0.8, 0.04}, 2.25},
	{[3]float64{1, 0.9, 0.04}, 2.5}, {[3]float64{1, 1, 0.03}, 2.75},
}

// Kinds that truly are masked outages. Of the slow ones nothing can be known when they
// begin: one comes up over a third of an hour, the other shows when calls of minutes end.
var (
	maskedKinds = []string{"masked_outage", wide, "masked_one_of_three", "side_by_side", "masked_slow_onset", "queue_redelivery"}
	slowKinds   = map[string]bool{"masked_slow_onset": true, "queue_redelivery": true}
)

// otherKinds are all others of the simulator.
func otherKinds() (out []string) {
	masked := map[string]bool{}
	for _, k := range maskedKinds {
		masked[k] = true
	}
	for _, name := range sim.Names() {
		if !masked[name] {
			out = append(out, name)
		}
	}
	return out
}

// job names a case: everything about it follows from this.
type job struct {
	kind      string
	size      int     // 1..5
	perMinute float64 // operations of the series that it happens to
	seed      uint64
}

// plan is how many cases there are.
type plan struct {
	maskedRates, otherRates []float64
	maskedSeeds, otherSeeds int // a cell
}

// Seeds of the halves: thresholds were chosen on the first, figures are reported of the
// second only.
const (
	tuneSeeds   = 1_000
	reportSeeds = 500_000
)

// jobs lists the cases of one half of the seeds.
func (p *plan) jobs(firstSeed uint64) (out []job) {
	seed := firstSeed
	add := func(kinds []string, rates []float64, seeds int) {
		for _, kind := range kinds {
			for size := 1; size <= sim.Sizes; size++ {
				for _, rate := range rates {
					for range seeds {
						out = append(out, job{kind, size, rate, seed})
						seed++
					}
				}
			}
		}
	}
	add(maskedKinds, p.maskedRates, p.maskedSeeds)
	add(otherKinds(), p.otherRates, p.otherSeeds)
	return out
}

// scene is the world of a job and when its incident begins.
type scene struct {
	*sim.Simulation
	at time.Duration
}

func (j job) build() (*scene, error) {
	r := rand.New(rand.NewPCG(j.seed, 0x64657465))
	at := runUp + time.Duration(r.Int64N(int64(15*time.Second))) // anywhere between evaluations
	o := sim.Options{Seed: j.seed, Start: began, Duration: caseTime}
	scenario, anywhere := j.scenario()
	if anywhere {
		o.Series, o.OperationsPerMinute = 1, j.perMinute
		o.Incidents = []sim.Incident{{Scenario: scenario, At: at, For: j.length(), Size: j.size}}
	} else {
		o.Scenario, o.Size, o.At, o.For = scenario, j.size, at, lasts
		o.OperationsPerMinute = j.perMinute * fleetShare(scenario)
	}
	s, err := sim.Build(o)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", j, err)
	}
	if j.kind == wide {
		w := widths[j.size-1]
		s.World.Faults[0].ErrorRates, s.World.Faults[0].LatencyFactor = w.zones, w.latency
	}
	return &scene{s, at}, nil
}

// scenario of the simulator, and whether it happens to a series of its own.
func (j job) scenario() (name string, anywhere bool) {
	if j.kind == wide {
		return "masked_outage", true
	}
	for _, s := range sim.Scenarios() {
		if s.Name == j.kind {
			return s.Name, s.Anywhere
		}
	}
	return j.kind, false
}

// length of the incident; 0 = the scenario's own.
func (j job) length() time.Duration {
	switch j.kind {
	case "short_blip":
		return 0
	case "masked_slow_onset": // half of it is the onset
		return 2 * lasts
	}
	return lasts
}

// fleetShare is by how much a scenario's own fleet has more operations than the series
// that it happens to.
func fleetShare(scenario string) float64 {
	switch scenario {
	case "masked_one_of_three":
		return 3
	case "side_by_side":
		return 2
	case "daily_season", "emitter_drops":
		return 2.5
	}
	return 1
}
