package sim

import (
	"time"

	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/internal/sim/world"
)

// of takes the value of a size, 1..5.
func of[T any](size int, values [Sizes]T) T { return values[size-1] }

func quiet(p *plan, at place) { p.truth(Healthy, at) }

func flaky(p *plan, at place) {
	rate := of(at.size, [Sizes]float64{0.02, 0.035, 0.05, 0.065, 0.08})
	p.fault(at, world.Fault{ErrorRates: world.EveryZone(rate)})
	p.truth(Flaky, at)
}

// degraded is a provider one of whose zones is broken.
func degraded(size int) world.Fault {
	broken := of(size, [Sizes]float64{0.75, 0.85, 0.95, 0.98, 1})
	others := of(size, [Sizes]float64{0.05, 0.06, 0.07, 0.10, 0.13})
	return world.Fault{
		ErrorRates:    [world.Zones]float64{broken, others, others},
		LatencyFactor: of(size, [Sizes]float64{1.5, 1.8, 2.2, 2.6, 3}),
		HangRate:      of(size, [Sizes]float64{0.005, 0.01, 0.015, 0.02, 0.025}),
	}
}

func masked(p *plan, at place) {
	p.fault(at, degraded(at.size))
	p.truth(MaskedOutage, at)
}

func maskedSlowly(p *plan, at place) {
	f := degraded(at.size)
	f.RampUp = (at.To - at.From) / 2
	p.fault(at, f)
	p.truth(MaskedOutage, at)
}

func sideBySide(p *plan, at place) {
	masked(p, at)
	at.provider = "anthropic"
	flaky(p, at)
}

func outage(p *plan, at place) {
	rate := of(at.size, [Sizes]float64{0.6, 0.75, 0.9, 0.97, 1})
	p.fault(at, world.Fault{ErrorRates: world.EveryZone(rate), Mix: failure.Down})
	p.truth(Outage, at)
}

func recovery(p *plan, at place) {
	outage(p, at)
	back := at.during(at.To, at.To+(at.To-at.From))
	rate := of(at.size, [Sizes]float64{0.6, 0.75, 0.9, 0.97, 1})
	p.fault(back, world.Fault{ErrorRates: world.EveryZone(rate), Mix: failure.Degraded, RampDown: back.To - back.From})
	p.truth(Recovering, back)
}

func blip(p *plan, at place) {
	p.fault(at, world.Fault{ErrorRates: world.EveryZone(1), Mix: failure.Only(failure.BadGateway)})
	p.truth(Healthy, at)
}

func wall(p *plan, at place) {
	p.fault(at, world.Fault{Quota: true})
	p.truth(Outage, at)
}

func slow(p *plan, at place) {
	p.fault(at, world.Fault{LatencyFactor: of(at.size, [Sizes]float64{1.3, 1.6, 2, 2.5, 3})})
	p.truth(Healthy, at)
}

func spike(p *plan, at place) {
	p.surge(at, of(at.size, [Sizes]float64{2, 3, 4, 4.5, 5}))
	p.truth(Healthy, at)
}

func season(p *plan, at place) {
	swing := of(at.size, [Sizes]float64{0.4, 0.6, 0.8, 0.9, 1})
	p.each(func(l *world.Workload) { l.Season = swing })
	at.provider = ""
	p.truth(Healthy, at)
}

func night(p *plan, at place) {
	p.surge(at, of(at.size, [Sizes]float64{0.3, 0.1, 0.03, 0.01, 0}))
	p.truth(Healthy, at)
}

func deploy(p *plan, at place) {
	p.sim.World.Restarts = append(p.sim.World.Restarts, world.Restart{Service: at.service, At: at.From})
	p.fault(at, world.Fault{LatencyFactor: of(at.size, [Sizes]float64{1.2, 1.4, 1.6, 1.8, 2})})
	p.truth(Healthy, at)
}

// stormy callers retry without a guard, each after a timeout of twenty seconds, against
// a provider that finishes what nobody waits for and lets requests wait for longer.
func stormy() []world.Workload {
	fleet := single()
	l := &fleet[0]
	l.Limits = unguarded()
	l.Policy.Attempts, l.Policy.AttemptTimeout = 3, 20*time.Second
	return fleet
}

func metastable(p *plan, at place) {
	p.sim.World.Providers = []world.Provider{{Name: at.provider, Utilization: 0.5, Patience: time.Minute}}
	p.fault(at, world.Fault{CapacityFactor: of(at.size, [Sizes]float64{0.4, 0.35, 0.3, 0.2, 0.1})})
	p.truth(Outage, at.during(at.From, p.o.Duration))
}

// layered callers have a policy of 4 attempts over an SDK with its default of 3 calls;
// one of two goes through a gateway that retries nothing.
func layered() []world.Workload {
	fleet := append(single(), single()...)
	openai := world.SDKs["openai"]
	for i := range fleet {
		l := &fleet[i]
		l.SDK, l.Limits = &openai, unguarded()
		l.Policy.Attempts = 4
	}
	once := batch()
	once.Attempts = 1
	fleet[1].Service, fleet[1].Gateway = "reports-by-gateway", &world.Gateway{Policy: once, Limits: unguarded()}
	return fleet
}

// roomy is a provider whose capacity and rate limit are no one's concern.
func roomy(name string) world.Provider {
	return world.Provider{Name: name, Utilization: 0.01, RateLimit: 1000}
}

func layers(p *plan, at place) {
	p.sim.World.Providers = []world.Provider{roomy(at.provider)}
	p.fault(at, world.Fault{ErrorRates: world.EveryZone(1), Mix: failure.Only(failure.Overloaded)})
	p.truth(Outage, at)
}

// impatient callers measured their timeout on good days.
func impatient() []world.Workload {
	fleet := single()
	fleet[0].Policy = interactive()
	fleet[0].Policy.AttemptTimeout = 12 * time.Second
	return fleet
}

func tooSlow(p *plan, at place) {
	p.sim.World.Providers = []world.Provider{roomy(at.provider)}
	p.fault(at, world.Fault{LatencyFactor: of(at.size, [Sizes]float64{2, 2.5, 3, 3.5, 4})})
	p.truth(Outage, at)
}

// guarded callers go through a gateway that keeps keys.
func guarded() []world.Workload {
	fleet := single()
	fleet[0].Gateway = &world.Gateway{Policy: batch(), Limits: fleet[0].Limits, Idempotent: true}
	fleet[0].Policy.AttemptTimeout = 10 * time.Minute
	return fleet
}

func duplicates(p *plan, at place) {
	share := of(at.size, [Sizes]float64{0.1, 0.25, 0.5, 0.75, 1})
	p.sim.World.Resubmissions = append(p.sim.World.Resubmissions, world.Resubmission{
		Target: at.target(), Window: at.Window, Share: share, Within: 10 * time.Second, Times: 3,
	})
	p.truth(Healthy, at)
}

// queued callers take operations from a queue that delivers again after 30 s.
func queued() []world.Workload {
	fleet := single()
	fleet[0].Queue = &world.Redelivery{Visibility: 30 * time.Second, MaxDeliveries: 5}
	fleet[0].Policy.AttemptTimeout = 2 * time.Minute
	return fleet
}

func redelivered(p *plan, at place) {
	p.sim.World.Providers = []world.Provider{roomy(at.provider)}
	p.fault(at, world.Fault{LatencyFactor: of(at.size, [Sizes]float64{6, 8, 10, 12, 15})})
	p.truth(MaskedOutage, at)
}

func drops(p *plan, at place) {
	p.sim.World.SinkOutages = append(p.sim.World.SinkOutages, world.SinkOutage{
		Window: at.Window, Buffer: of(at.size, [Sizes]int{40, 20, 10, 5, 0}),
	})
	at.provider = ""
	p.truth(Healthy, at)
}
