package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/world"
)

// Options say which world. The zero value of a field is its default.
type Options struct {
	Scenario            string // default masked_outage; see Scenarios
	Seed                uint64
	Start               time.Time     // required: the virtual time at which it begins
	Duration            time.Duration // default 24 h; a trace brings its own
	OperationsPerMinute float64       // of all workloads, in the mean; default 60; a trace brings its own
	Trace               []Arrival     // replayed instead of random arrivals, in order of time

	Size int           // 1..5: how bad it is; default 3
	At   time.Duration // when it begins; default a third into the duration
	For  time.Duration // how long it lasts; default the scenario's own, at most a third of the duration

	// Series, if above 0, replaces the scenario's fleet by so many providers' models of
	// the same rate, named by [SeriesName], for which Incidents happen.
	Series    int
	Incidents []Incident
}

// Incident is a scenario that happens to one of many series.
type Incident struct {
	Scenario string // one with Scenario.Anywhere
	Series   int    // from 0
	At, For  time.Duration
	Size     int // 1..5; 0 = 3
}

const (
	defaultDuration = 24 * time.Hour
	defaultRate     = 60
	defaultSize     = 3
	// Sizes is the largest size.
	Sizes     = 5
	maxRate   = 1e6
	maxSeries = 1000
)

// Simulation is a world and what is true of it.
type Simulation struct {
	World world.World
	Truth []Truth // in order of their beginning
}

// Build makes the world of the options.
func Build(o Options) (*Simulation, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	p := &plan{o: o, sim: &Simulation{World: world.World{Seed: o.Seed, Start: o.Start, Duration: o.Duration, Trace: o.Trace}}}
	if o.Series > 0 {
		return p.sim, p.series()
	}
	s, err := lookup(o.Scenario)
	if err != nil {
		return nil, err
	}
	p.named(s)
	return p.sim, nil
}

// Run plays the world of the options and hands every attempt to emit: see
// [world.World.Run].
func Run(ctx context.Context, o Options, emit func(*retrylens.Attempt) error) error {
	s, err := Build(o)
	if err != nil {
		return err
	}
	_, err = s.World.Run(ctx, emit)
	return err
}

// fill checks the options and fills in the defaults.
func (o *Options) fill() error {
	switch {
	case o.Start.IsZero():
		return fmt.Errorf("sim: Options.Start is missing")
	case o.Duration < 0:
		return fmt.Errorf("sim: Options.Duration must not be negative, got %v", o.Duration)
	case !(o.OperationsPerMinute >= 0 && o.OperationsPerMinute <= maxRate): // NaN too
		return fmt.Errorf("sim: Options.OperationsPerMinute must be within 0..1000000, got %v", o.OperationsPerMinute)
	case o.Size < 0 || o.Size > Sizes:
		return fmt.Errorf("sim: Options.Size must be within 1..%d, got %d", Sizes, o.Size)
	case o.At < 0 || o.For < 0:
		return fmt.Errorf("sim: Options.At and Options.For must not be negative, got %v and %v", o.At, o.For)
	case o.Series < 0 || o.Series > maxSeries || o.Series == 0 && len(o.Incidents) > 0:
		return fmt.Errorf("sim: Options.Series must be within 0..%d, above 0 with Incidents, got %d", maxSeries, o.Series)
	}
	if o.Scenario == "" {
		o.Scenario = "masked_outage"
	}
	if n := len(o.Trace); n > 0 {
		o.Duration = o.Trace[n-1].At
		o.OperationsPerMinute = min(float64(n)/max(o.Duration.Minutes(), 1.0/60), maxRate)
	}
	o.Start = o.Start.UTC().Truncate(time.Millisecond)
	defaultTo(&o.Duration, defaultDuration)
	defaultTo(&o.OperationsPerMinute, defaultRate)
	defaultTo(&o.Size, defaultSize)
	defaultTo(&o.At, o.Duration/3)
	if o.At > o.Duration {
		return fmt.Errorf("sim: Options.At must be within the duration of %v, got %v", o.Duration, o.At)
	}
	return nil
}

func defaultTo[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
