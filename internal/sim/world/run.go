package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/des"
	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/retry"
)

// Every part draws from a stream of its own: a change in one leaves the others'
// draws as they are.
const (
	streamArrivals uint64 = iota
	streamCallers
	streamSDKs
	streamProviders = 1 << 20
	streamEngines   = 1 << 40
)

// run is a world being played. Single goroutine.
type run struct {
	world  *World
	events des.Queue
	rand   *rand.Rand // of the callers
	out    func(*retrylens.Attempt) error
	err    error
	stats  Stats

	providers map[string]*provider
	works     []*work
	pools     []*pool
	outages   []*sinkOutage
	started   int // processes
	intents   int64
	free      []*operation
	record    retrylens.Attempt         // being written
	sheds     map[string]*failure.Reply // by provider
}

// work is a workload with what stands behind it.
type work struct {
	*Workload
	model *model
	pool  *pool
	next  upstream
}

// Now is the engines' clock.
func (r *run) Now() time.Time { return r.world.Start.Add(r.events.Now()) }

// Run plays the world and hands every attempt record to emit, normalized and valid, in
// order of the virtual time at which it is sent. The record is emit's until it
// returns; then it is written over. The same world gives the same records. An error of
// emit, or ctx, ends the run.
func (w *World) Run(ctx context.Context, emit func(*retrylens.Attempt) error) (Stats, error) {
	if err := w.Validate(); err != nil {
		return Stats{}, err
	}
	r := &run{world: w, out: emit, rand: w.rand(streamCallers), providers: map[string]*provider{}}
	r.stats.Dropped = map[string]uint64{}
	if err := r.build(); err != nil {
		return Stats{}, err
	}
	r.schedule()
	for n := 0; r.err == nil && r.events.Step(); n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return r.result(), context.Cause(ctx)
		}
	}
	return r.result(), r.err
}

func (w *World) rand(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(w.Seed, stream)) }

func (r *run) result() Stats {
	r.stats.Providers = make(map[string]ProviderStats, len(r.providers))
	for name, p := range r.providers {
		r.stats.Providers[name] = p.stats
	}
	return r.stats
}

// build makes providers, layers and processes.
func (r *run) build() error {
	w := r.world
	for _, p := range w.Providers {
		r.addProvider(p)
	}
	for i := range w.Workloads {
		l := &w.Workloads[i]
		if r.providers[l.Provider] == nil {
			r.addProvider(Provider{Name: l.Provider})
		}
		k, err := r.newWork(l)
		if err != nil {
			return fmt.Errorf("sim: Workloads[%d]: %w", i, err)
		}
		r.works = append(r.works, k)
	}
	return nil
}

func (r *run) addProvider(p Provider) {
	r.providers[p.Name] = newProvider(p, r.world, &r.events, r.world.rand(streamProviders+uint64(len(r.providers))))
}

// newWork stacks the layers: policy, SDK, gateway, provider.
func (r *run) newWork(l *Workload) (*work, error) {
	m := modelOf(l.Model)
	k := &work{Workload: l, model: &m, next: r.providers[l.Provider]}
	var err error
	if l.Gateway != nil {
		if k.next, err = r.newGateway(l, k.next); err != nil {
			return nil, err
		}
	}
	if l.SDK != nil {
		k.next = &sdk{SDK: *l.SDK, events: &r.events, rand: r.world.rand(streamSDKs + uint64(len(r.works))<<8), next: k.next}
	}
	k.pool, err = r.addPool(l.Service, l.Limits, processesFor(l.Processes, l.PerMinute))
	return k, err
}

func (r *run) addPool(service string, limits retry.Limits, n int) (*pool, error) {
	p, err := newPool(r, service, limits, n)
	r.pools = append(r.pools, p)
	return p, err
}

// schedule sets what is known from the start.
func (r *run) schedule() {
	for i := range r.world.Restarts {
		r.events.At(r.world.Restarts[i].At, &restart{&r.world.Restarts[i], r}, 0)
	}
	for i := range r.world.SinkOutages {
		o := &sinkOutage{SinkOutage: &r.world.SinkOutages[i], run: r}
		r.outages = append(r.outages, o)
		r.events.At(o.To, o, 0)
	}
	f := &feeder{run: r, arrivals: newArrivals(r.world, r.world.rand(streamArrivals))}
	f.wait()
}

// restart is one on its way.
type restart struct {
	*Restart
	run *run
}

// Fire as in des.Handler.
func (s *restart) Fire(int) {
	for _, p := range s.run.pools {
		if s.Service == "" || s.Service == p.service {
			if err := p.start(); err != nil {
				s.run.err = err
			}
		}
	}
}

// feeder begins one operation after another.
type feeder struct {
	run      *run
	arrivals *arrivals
	workload int
	next     Arrival
}

func (f *feeder) wait() {
	var ok bool
	if f.workload, f.next, ok = f.arrivals.next(); ok {
		f.run.events.At(f.next.At, f, 0)
	}
}

// Fire as in des.Handler.
func (f *feeder) Fire(int) {
	k, at := f.run.works[f.workload], f.next
	f.wait()
	f.run.begin(k, at)
}
