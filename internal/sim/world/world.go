package world

import (
	"time"

	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/retry"
)

// Zones is the number of zones a provider serves from. Its balancer takes one at
// random, but none in which a request with the same idempotency key has failed
// before, while there is another.
const Zones = 3

// World is what is simulated. Times are counted from Start.
type World struct {
	Seed     uint64
	Start    time.Time     // required; on a whole millisecond
	Duration time.Duration // operations start within it; the last attempts end later. A trace brings its own
	Trace    []Arrival     // replayed in place of random arrivals, in order of time

	Providers []Provider // of each name one; one that a workload names and that is missing has the defaults
	Workloads []Workload

	Faults        []Fault
	Surges        []Surge
	Resubmissions []Resubmission
	Restarts      []Restart
	SinkOutages   []SinkOutage
}

// Window is a part of time, [From, To).
type Window struct{ From, To time.Duration }

// Contains tells whether a time is in it.
func (w Window) Contains(at time.Duration) bool { return at >= w.From && at < w.To }

// Arrival is one operation that a trace asks for.
type Arrival struct {
	At               time.Duration // since the first arrival of the trace
	PromptTokens     int64
	CompletionTokens int64
}

// Workload is one kind of operation of one service.
type Workload struct {
	Tenant, Service, Environment, Operation string
	Provider, Model, Endpoint               string
	Stream, Keyed                           bool

	PerMinute  float64 // operations, in the mean
	Season     float64 // 0..1: how far the rate swings over a day around the mean, highest at 15:00
	Prompt     Quantiles
	Completion Quantiles

	Policy    retry.Policy // of every operation; start from retry.Interactive or retry.Batch
	Limits    retry.Limits // of every process
	Processes int          // that share the work; 0 = one for each 4 operations a minute
	SDK       *SDK         // retries below the policy that it does not see; nil = none
	Gateway   *Gateway     // what stands before the provider; nil = nothing

	// Queue, if not nil, is where the operations come from: what is not done in time
	// is delivered again, to another process.
	Queue *Redelivery

	// LearnsUsage is the share of given-up requests whose usage is learned once the
	// provider has finished them, and told by revision 1.
	LearnsUsage float64
}

// Redelivery of a message queue.
type Redelivery struct {
	Visibility    time.Duration // a message that is not acknowledged so long after its delivery is delivered again
	MaxDeliveries int           // the first included, 1..1000
}

// Gateway is a proxy that retries itself, and keeps answers under their keys.
type Gateway struct {
	Policy     retry.Policy
	Limits     retry.Limits
	Idempotent bool // a key that is being executed is refused, one that was answered is replayed
}

// Provider serves requests.
type Provider struct {
	Name string
	// Utilization of its servers by the mean load of the workloads, above 0 and
	// below 1; 0 = 0.05. So its capacity grows with what is asked of it.
	Utilization float64
	// Patience is how long a line there may be in front of the servers, in time to
	// work it off; beyond it requests are shed. 0 = 5 s.
	Patience time.Duration
	// Cancels: it stops to generate when the caller has left. Most do not.
	Cancels bool
	// RateLimit is a bucket of requests, a minute's worth of this many times the mean
	// load; 0 = 12.
	RateLimit float64
}

// Target says whom something concerns; an empty field is any.
type Target struct{ Provider, Model, Service string }

func (t Target) matches(w *Workload) bool {
	return (t.Provider == "" || t.Provider == w.Provider) && (t.Model == "" || t.Model == w.Model) && (t.Service == "" || t.Service == w.Service)
}

// Fault makes a provider worse for a time. Several at a time add up.
type Fault struct {
	Provider string
	Model    string // "" = all
	Window
	RampUp, RampDown time.Duration // how long it takes to come and to go, within the window

	ErrorRates     [Zones]float64 // share of requests that fail in each zone
	Mix            failure.Mix    // of these failures; nil = failure.Degraded
	HangRate       float64        // share of all requests that take one to two minutes longer
	BreakRate      float64        // share of streams that break after content
	LatencyFactor  float64        // of every answer; 0 = 1
	CapacityFactor float64        // share of the servers' time that is left; 0 = 1
	Quota          bool           // the account's quota is used up
}

// EveryZone is the same rate in all of them.
func EveryZone(rate float64) (out [Zones]float64) {
	for i := range out {
		out[i] = rate
	}
	return out
}

// Surge multiplies the arrivals of what it matches.
type Surge struct {
	Target
	Window
	Factor float64 // 0..100
}

// Resubmission is what users and second processes do: they submit operations again.
type Resubmission struct {
	Target
	Window
	Share  float64       // of the operations
	Within time.Duration // of their start
	Times  int           // at most so many more submissions each, at least one
}

// Restart ends all processes of a service and starts others: what they were at goes
// on, but budgets and breakers are new.
type Restart struct {
	Service string // "" = all
	At      time.Duration
}

// SinkOutage keeps emitters of a service from sending. Each keeps Buffer records, sends
// them at the end of the window, and drops the others.
type SinkOutage struct {
	Service string // "" = all
	Window
	Buffer int
}

// Stats is what a run knows beyond its records.
type Stats struct {
	Operations uint64
	Records    uint64 // handed out, revisions included
	Dropped    map[string]uint64
	Providers  map[string]ProviderStats
}

// ProviderStats are a provider's own counts.
type ProviderStats struct {
	Servers   int
	Calls     uint64 // all requests
	Generated uint64 // complete answers, those that nobody waited for included
	Unheard   uint64 // of them those that nobody waited for
	Shed      uint64 // refused for a full line
	Limited   uint64 // refused by the rate limit
}
