package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// Options describe a simulation. The zero value of a field is its default.
type Options struct {
	Seed                uint64
	Start               time.Time     // required: the virtual time at which it begins
	Duration            time.Duration // default 24 h; a trace brings its own
	OperationsPerMinute float64       // mean, default 60; a trace brings its own
	Trace               []Arrival     // replayed instead of random arrivals, in order of time
	Faults              []Fault       // nil = MaskedOutage over the middle third; empty = none
}

const (
	defaultDuration = 24 * time.Hour
	defaultRate     = 60
	maxRate         = 1e6
)

// MaskedOutage is a fault of one zone of three that retries hide: about every third
// first attempt fails, hardly an operation does, and everything takes
// longer.
func MaskedOutage(from, to time.Duration) Fault {
	return Fault{Provider: "openai", From: from, To: to, ErrorRates: [Zones]float64{0.95, 0.07, 0.07}, HangRate: 0.03, LatencyFactor: 2.2}
}

// Run makes the operations of the simulated time and hands every attempt to
// emit when it ends, in order of virtual time, normalized and valid; emit owns
// it. The last attempts may end after the simulated time. The same options give the same
// attempts. An error of emit, or ctx, ends it.
func Run(ctx context.Context, opt Options, emit func(*retrylens.Attempt) error) error {
	if err := opt.fill(); err != nil {
		return err
	}
	c := &callers{
		clock: &clock{}, rand: opt.rand(streamCallers), start: opt.Start, providers: map[string]*provider{},
		emit: emit, seq: map[string]int64{},
	}
	work := fleet()
	for _, w := range work {
		if c.providers[w.provider] == nil {
			stream := streamProviders + uint64(len(c.providers))
			c.providers[w.provider] = &provider{name: w.provider, rand: opt.rand(stream), faults: opt.Faults, failed: map[int64]uint8{}}
		}
	}
	if err := opt.checkFaults(c.providers); err != nil {
		return err
	}
	c.follow(opt.arrivals(work))
	return c.clock.run(ctx)
}

// Every part draws from a stream of its own: a change in one leaves the others'
// draws as they are.
const (
	streamArrivals uint64 = iota
	streamCallers
	streamProviders
)

func (opt *Options) rand(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(opt.Seed, stream))
}

func (opt *Options) arrivals(work []workload) arrivals {
	r := opt.rand(streamArrivals)
	if len(opt.Trace) > 0 {
		return &replayed{rand: r, fleet: work, left: opt.Trace}
	}
	gap := time.Duration(float64(time.Minute) / opt.OperationsPerMinute)
	return &steady{rand: r, fleet: work, gap: gap, duration: opt.Duration}
}

// follow begins the next operation when its time has come, and so on.
func (c *callers) follow(a arrivals) {
	at, w, arrival, ok := a.next()
	if !ok {
		return
	}
	c.clock.after(at-c.clock.now, func() error {
		c.follow(a)
		return c.begin(w, arrival)
	})
}

// fill checks the options and fills in the defaults.
func (opt *Options) fill() error {
	switch {
	case opt.Start.IsZero():
		return fmt.Errorf("sim: Options.Start is missing")
	case opt.Duration < 0:
		return fmt.Errorf("sim: Options.Duration must not be negative, got %v", opt.Duration)
	case !(opt.OperationsPerMinute >= 0 && opt.OperationsPerMinute <= maxRate): // NaN too
		return fmt.Errorf("sim: Options.OperationsPerMinute must be within 0..1000000, got %v", opt.OperationsPerMinute)
	}
	if opt.Duration == 0 {
		opt.Duration = defaultDuration
	}
	if opt.OperationsPerMinute == 0 {
		opt.OperationsPerMinute = defaultRate
	}
	if n := len(opt.Trace); n > 0 {
		opt.Duration = opt.Trace[n-1].At
	}
	if opt.Faults == nil {
		opt.Faults = []Fault{MaskedOutage(opt.Duration/3, opt.Duration/3*2)}
	}
	return nil
}

func (opt *Options) checkFaults(providers map[string]*provider) error {
	for i, f := range opt.Faults {
		switch {
		case providers[f.Provider] == nil:
			return fmt.Errorf("sim: Options.Faults[%d].Provider is not in the fleet: %q", i, f.Provider)
		case f.From < 0 || f.To < f.From:
			return fmt.Errorf("sim: Options.Faults[%d]: From must be within 0..To, got %v..%v", i, f.From, f.To)
		case !(f.LatencyFactor >= 0 && f.LatencyFactor <= 1000):
			return fmt.Errorf("sim: Options.Faults[%d].LatencyFactor must be within 0..1000, got %v", i, f.LatencyFactor)
		}
		for _, rate := range append(f.ErrorRates[:], f.HangRate) {
			if !(rate >= 0 && rate <= 1) {
				return fmt.Errorf("sim: Options.Faults[%d]: a rate must be within 0..1, got %v", i, rate)
			}
		}
	}
	return nil
}
