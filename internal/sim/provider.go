package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// Zones is the number of zones a provider serves from. Its balancer takes one at
// random, but none in which a request with the same idempotency key has failed
// before, while there is another.
const Zones = 3

// Fault makes a provider worse for a time.
type Fault struct {
	Provider      string
	From, To      time.Duration  // since the start: [From, To)
	ErrorRates    [Zones]float64 // share of requests that fail in each zone
	HangRate      float64        // share of these failures that are no answer for minutes, but an executed request
	LatencyFactor float64        // of every answer; 0 = 1
}

// request is what a caller sends.
type request struct {
	key              int64 // of the operation; 0 = unkeyed, each request is another one
	model            string
	promptTokens     int64
	completionTokens int64
}

// reply is what comes back, and when. A caller may not wait for it.
type reply struct {
	after      time.Duration // from sending to the last byte
	ttfb       time.Duration // to the first
	status     uint16
	class      retrylens.ErrorClass // "" = a complete response
	errorType  string
	requestID  string
	retryAfter time.Duration // 0 = none asked for
}

// provider answers requests.
type provider struct {
	name   string
	rand   *rand.Rand
	faults []Fault
	failed map[int64]uint8 // key → the zones that failed it, while it has not succeeded
}

// Rates of a healthy provider.
const (
	healthyErrorRate = 0.01
	clientFaultRate  = 0.001 // our own invalid requests: the same answer every time
)

// call answers a request that is sent at now.
func (p *provider) call(now time.Duration, q request) reply {
	fault := p.fault(now)
	zone := p.route(q.key)
	out := reply{requestID: fmt.Sprintf("req_%016x", p.rand.Uint64())}
	p.time(&out, q, fault.LatencyFactor)
	switch u := p.rand.Float64(); {
	case u < clientFaultRate:
		out.after, out.status, out.class, out.errorType = out.ttfb, 400, retrylens.ClassInvalidRequest, "invalid_request_error"
	case p.rand.Float64() >= fault.ErrorRates[zone]:
		out.status = 200
		delete(p.failed, q.key)
	default:
		p.fail(&out, q.key, zone, fault)
	}
	return out
}

// fault returns the worst that is wrong now, else what is usual.
func (p *provider) fault(now time.Duration) Fault {
	for _, f := range p.faults {
		if f.Provider == p.name && now >= f.From && now < f.To {
			if f.LatencyFactor == 0 {
				f.LatencyFactor = 1
			}
			return f
		}
	}
	f := Fault{LatencyFactor: 1, HangRate: 0.02}
	for z := range f.ErrorRates {
		f.ErrorRates[z] = healthyErrorRate
	}
	return f
}

func (p *provider) route(key int64) int {
	for {
		zone := p.rand.IntN(Zones)
		if failed := p.failed[key]; failed&(1<<zone) == 0 || failed == 1<<Zones-1 {
			return zone
		}
	}
}

// time draws how long a complete answer takes: the prompt is read, then every
// token takes its time.
func (p *provider) time(out *reply, q request, factor float64) {
	spread := math.Exp(0.25*p.rand.NormFloat64()) * factor
	ttfb := (180 + float64(q.promptTokens)*0.06) * spread
	out.ttfb = milliseconds(ttfb)
	out.after = out.ttfb + milliseconds(float64(q.completionTokens)*11*spread)
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(min(ms, 1e9))) * time.Millisecond
}

// fail makes the reply a failure.
func (p *provider) fail(out *reply, key int64, zone int, f Fault) {
	if key != 0 {
		p.failed[key] |= 1 << zone
	}
	if p.rand.Float64() < f.HangRate { // it answers, long after anybody waits for it
		out.after += time.Minute + milliseconds(p.rand.Float64()*60_000)
		out.ttfb, out.status = out.after, 200
		return
	}
	out.after = out.ttfb
	switch u := p.rand.Float64(); {
	case u < 0.55:
		out.status, out.class, out.errorType = overloaded(p.name)
	case u < 0.75:
		out.status, out.class, out.errorType = 500, retrylens.ClassServerError, "server_error"
	case u < 0.90:
		out.status, out.class, out.errorType = 429, retrylens.ClassRateLimited, "rate_limit_error"
		out.retryAfter = time.Duration(1+p.rand.IntN(3)) * time.Second
	case u < 0.97:
		out.status, out.class = 502, retrylens.ClassBadGateway
	default:
		out.class, out.requestID = retrylens.ClassTransportUnknown, ""
	}
}

func overloaded(provider string) (uint16, retrylens.ErrorClass, string) {
	if provider == "anthropic" {
		return 529, retrylens.ClassOverloaded, "overloaded_error"
	}
	return 503, retrylens.ClassUnavailable, "service_unavailable"
}
