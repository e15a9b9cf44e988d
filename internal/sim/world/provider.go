package world

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens/internal/sim/des"
	"github.com/retrylens/retrylens/internal/sim/failure"
)

// Defaults of a provider.
const (
	defaultUtilization = 0.05
	defaultPatience    = 5 * time.Second
	defaultRateLimit   = 12
	minServers         = 8  // where no utilization is asked for
	minBurst           = 60 // requests that a bucket holds at least
	maxAskedWait       = 30 * time.Second
)

// provider serves requests in the order of their coming.
type provider struct {
	Provider
	events  *des.Queue
	rand    *rand.Rand
	script  *script
	station *des.Station
	books   [2]*failure.Book // of plain answers and of streams
	models  map[string]*model
	back    []*pending // to be used again
	stats   ProviderStats

	bucket     float64 // requests that the rate limit lets pass at once
	bucketSize float64
	perSecond  float64
	bucketAt   time.Duration
}

// newProvider has the capacity for the workloads that call it.
func newProvider(p Provider, w *World, events *des.Queue, r *rand.Rand) *provider {
	least := 1
	if p.Utilization == 0 {
		p.Utilization, least = defaultUtilization, minServers
	}
	if p.Patience == 0 {
		p.Patience = defaultPatience
	}
	if p.RateLimit == 0 {
		p.RateLimit = defaultRateLimit
	}
	out := &provider{
		Provider: p, events: events, rand: r, script: newScript(p.Name, w.Faults), models: map[string]*model{},
		books: [2]*failure.Book{failure.NewBook(p.Name, false), failure.NewBook(p.Name, true)},
	}
	perMinute, busy := 0.0, 0.0 // busy servers in the mean
	for i := range w.Workloads {
		if l := &w.Workloads[i]; l.Provider == p.Name {
			perMinute += l.PerMinute
			busy += l.PerMinute / 60 * l.meanService().Seconds()
			m := modelOf(l.Model)
			out.models[l.Model] = &m
		}
	}
	servers := max(least, int(math.Ceil(busy/p.Utilization)))
	mean := busy / max(perMinute/60, 1e-9) // seconds of one answer
	line := int(math.Ceil(p.Patience.Seconds() / max(mean, 0.001) * float64(servers)))
	out.station = des.NewStation(servers, line)
	out.stats.Servers = servers
	out.perSecond = perMinute / 60 * p.RateLimit
	out.bucketSize = max(minBurst, out.perSecond*60)
	out.bucket = out.bucketSize
	return out
}

// visit is one request as the provider handles it.
type visit struct {
	provider *provider
	now      time.Duration
	c        *call
	q        *request
	effect   effect
}

// send answers a call at its time.
func (p *provider) send(c *call) {
	now := p.events.Now()
	v := visit{provider: p, now: now, c: c, q: &c.intent.request}
	v.effect = p.script.at(now, v.q.model)
	p.stats.Calls++
	c.reply = reply{calls: 1, requestID: p.rand.Uint64() | 1}
	p.finish(c, v.serve())
}

// finish tells the sender after a time.
func (p *provider) finish(c *call, after time.Duration) {
	var e *pending
	if n := len(p.back); n > 0 {
		e, p.back = p.back[n-1], p.back[:n-1]
	} else {
		e = &pending{provider: p}
	}
	e.c = c
	p.events.After(after, e, 0)
}

// pending is an answer on its way.
type pending struct {
	provider *provider
	c        *call
}

// Fire as in des.Handler.
func (e *pending) Fire(int) {
	c := e.c
	e.c = nil
	e.provider.back = append(e.provider.back, e)
	c.back.ended(c)
}

// serve fills in the reply and says when it is there.
func (v *visit) serve() time.Duration {
	p := v.provider
	switch u := p.rand.Float64(); {
	case v.effect.quota:
		return v.fail(failure.Quota, 0)
	case u < clientFaultRate:
		return v.fail(failure.BadRequest, 0)
	}
	if wait := p.limit(v.now); wait > 0 {
		p.stats.Limited++
		return v.fail(failure.RateLimited, wait)
	}
	start, ok := p.station.Offer(v.now)
	if !ok {
		p.stats.Shed++
		return v.fail(failure.Overloaded, min(max(start-v.now, time.Second), maxAskedWait))
	}
	first, whole := p.models[v.q.model].times(p.rand, v.q, v.effect.latency)
	zone := p.route(v.q)
	if p.rand.Float64() < v.effect.errors[zone] {
		p.station.Serve(v.now, start, first)
		return v.failed(zone, start-v.now+first)
	}
	if p.rand.Float64() < v.effect.hang {
		stuck := time.Minute + time.Duration(p.rand.Float64()*float64(time.Minute))
		first, whole = first+stuck, whole+stuck
	}
	return v.generate(start, first, whole)
}

// limit takes a request from the bucket, or tells how long it is empty.
func (p *provider) limit(now time.Duration) time.Duration {
	p.bucket = min(p.bucketSize, p.bucket+(now-p.bucketAt).Seconds()*p.perSecond)
	p.bucketAt = now
	if p.bucket >= 1 {
		p.bucket--
		return 0
	}
	return max(time.Second, time.Duration((1-p.bucket)/p.perSecond*float64(time.Second)))
}

// route takes a zone at random that has not failed this key.
func (p *provider) route(q *request) int {
	for {
		zone := p.rand.IntN(Zones)
		if q.key == 0 || q.failedZones&(1<<zone) == 0 || q.failedZones == 1<<Zones-1 {
			return zone
		}
	}
}

// fail at once with a kind that asks for a wait.
func (v *visit) fail(k failure.Kind, wait time.Duration) time.Duration {
	return v.refuse(k, wait, time.Duration((0.03+0.04*v.provider.rand.Float64())*float64(time.Second)))
}

func (v *visit) refuse(k failure.Kind, wait, after time.Duration) time.Duration {
	r := &v.c.reply
	if after >= v.c.patience {
		return v.giveUp()
	}
	r.failure, r.ttfb = v.book().Reply(k, wait), after
	if r.failure.Status == 0 {
		r.ttfb, r.requestID = -1, 0
	}
	return after
}

func (v *visit) book() *failure.Book {
	if v.q.stream {
		return v.provider.books[1]
	}
	return v.provider.books[0]
}

// failed in a zone, after a time, in one of the ways of the fault.
func (v *visit) failed(zone int, after time.Duration) time.Duration {
	p := v.provider
	v.q.failedZones |= 1 << zone
	k, wait := v.effect.mix.Pick(p.rand.Float64()), time.Duration(0)
	switch k {
	case failure.RateLimited:
		wait = time.Duration(1+p.rand.IntN(3)) * time.Second
	case failure.Refused:
		after = time.Duration((1 + p.rand.Float64()) * float64(time.Millisecond))
	}
	return v.refuse(k, wait, after)
}

// generate an answer from a start on, whether its caller waits for it or not.
func (v *visit) generate(start, first, whole time.Duration) time.Duration {
	p, r := v.provider, &v.c.reply
	waited := start - v.now
	done := waited + whole
	heard := done < v.c.patience
	if v.q.stream {
		heard = waited+first < v.c.patience
	}
	hold := time.Duration(float64(whole) / v.effect.capacity)
	if !heard && p.Cancels {
		hold = min(hold, max(0, v.c.patience-waited))
	}
	p.station.Serve(v.now, start, hold)
	switch {
	case heard && v.q.stream && p.rand.Float64() < v.effect.breaks:
		return v.broken(waited+first, done)
	case heard:
		p.stats.Generated++
		v.q.failedZones = 0
		r.usage, r.ttfb = v.q.usage(), done
		if v.q.stream {
			r.ttfb = waited + first
		}
		return done
	}
	if !p.Cancels {
		p.stats.Generated++
		p.stats.Unheard++
		r.unheard = v.now + done
	}
	return v.giveUp()
}

// giveUp is the caller's own decision.
func (v *visit) giveUp() time.Duration {
	r := &v.c.reply
	r.failure, r.ttfb = v.book().Reply(failure.TimedOut, 0), -1
	return v.c.patience
}

// broken: a stream ends somewhere between its first and its last byte.
func (v *visit) broken(first, done time.Duration) time.Duration {
	p, r := v.provider, &v.c.reply
	part := p.rand.Float64()
	r.failure, r.ttfb = v.book().Reply(failure.Broken, 0), first
	r.usage = usage{known: true, partial: true, prompt: v.q.prompt, completion: int64(part * float64(v.q.completion))}
	return first + time.Duration(part*float64(done-first))
}
