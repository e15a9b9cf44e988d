package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// State of a [Breaker].
type State uint8

// States.
const (
	Closed   State = iota // calls pass
	Open                  // no call passes until the cooldown is over
	HalfOpen              // one probe at a time passes
)

// String is the state's name in metrics and logs.
func (s State) String() string { return [...]string{"closed", "open", "half_open"}[s] }

// Outcome of an admitted call.
type Outcome uint8

// Outcomes.
const (
	// Unknown says nothing about the provider: not sent, or the caller left. A probe
	// that ends so lets another one go.
	Unknown Outcome = iota
	// Success of the provider.
	Success
	// Failure of the provider.
	Failure
	// Neutral: it answered, and the fault is ours (a 4xx, a quota wall). No sample
	// while closed; a probe that ends so has shown that the provider is there.
	Neutral
)

// Breaker guards one provider. It is safe for concurrent use.
type Breaker struct {
	o        Options
	onChange func(from, to State)

	passes atomic.Uint64 // generation + 1 while closed, else 0: most calls need no lock

	mu          sync.Mutex
	state       State
	generation  uint64 // raised by every change of state: reports of older ones are ignored
	window      window
	consecutive int
	cooldown    time.Duration // of the present or the next opening
	until       time.Time     // end of the cooldown; half-open: when the probe counts as lost
	halfOpenAt  time.Time
	probing     bool
}

// New returns a closed breaker. onChange, if not nil, is called after each change
// of state, outside of the lock. The options are not checked: see [Options.Validate].
func New(o Options, onChange func(from, to State)) *Breaker {
	b := &Breaker{o: o, onChange: onChange, cooldown: o.Open, window: newWindow(o.Window)}
	b.passes.Store(1)
	return b
}

// Permit is an admitted call; its outcome is to be reported once with [Breaker.Done].
type Permit struct {
	Probe      bool // the one call that decides whether the breaker closes
	generation uint64
}

// Allow tells whether a call may go now. cheap marks a call that costs little
// should it fail: for Options.ProbeGrace after a cooldown only such a call probes.
func (b *Breaker) Allow(now time.Time, cheap bool) (Permit, bool) {
	if g := b.passes.Load(); g > 0 {
		return Permit{generation: g - 1}, true
	}
	b.mu.Lock()
	from := b.state
	p, ok := b.allow(now, cheap)
	to := b.state
	b.mu.Unlock()
	b.changed(from, to)
	return p, ok
}

func (b *Breaker) allow(now time.Time, cheap bool) (Permit, bool) {
	if b.state == Closed {
		return Permit{generation: b.generation}, true
	}
	if b.state == Open {
		if now.Before(b.until) {
			return Permit{}, false
		}
		b.enter(HalfOpen)
		b.halfOpenAt = b.until
	}
	if b.probing && now.Before(b.until) {
		return Permit{}, false
	}
	if !cheap && now.Sub(b.halfOpenAt) < b.o.ProbeGrace {
		return Permit{}, false
	}
	b.generation++ // a lost probe that reports late is ignored
	b.probing, b.until = true, now.Add(b.o.ProbeTimeout)
	return Permit{Probe: true, generation: b.generation}, true
}

// Done reports how an admitted call ended. Reports of calls that were admitted
// before the last change of state count for nothing, as does a second report of a probe.
func (b *Breaker) Done(now time.Time, p Permit, out Outcome) {
	b.mu.Lock()
	from := b.state
	if p.generation == b.generation {
		b.done(now, p, out)
	}
	to := b.state
	b.mu.Unlock()
	b.changed(from, to)
}

func (b *Breaker) done(now time.Time, p Permit, out Outcome) {
	switch {
	case b.state == Closed:
		b.sample(now, out)
	case b.state != HalfOpen || !p.Probe:
	case out == Failure:
		b.cooldown = min(2*b.cooldown, b.o.MaxOpen)
		b.open(now)
	case out == Unknown:
		b.probing = false
	default:
		b.cooldown = b.o.Open
		b.enter(Closed)
	}
}

func (b *Breaker) sample(now time.Time, out Outcome) {
	if out == Unknown || out == Neutral {
		return
	}
	failed := out == Failure
	total, failures := b.window.add(now, failed)
	if !failed {
		b.consecutive = 0
		return
	}
	b.consecutive++
	ratio := total >= b.o.MinSamples && float64(failures) >= b.o.FailureRatio*float64(total)
	if ratio || b.o.Consecutive > 0 && b.consecutive >= b.o.Consecutive {
		b.open(now)
	}
}

func (b *Breaker) open(now time.Time) {
	b.enter(Open)
	b.until = now.Add(b.cooldown)
}

func (b *Breaker) enter(s State) {
	b.state = s
	b.generation++
	b.passes.Store(0)
	if s == Closed {
		b.passes.Store(b.generation + 1)
	}
	b.probing = false
	b.consecutive = 0
	b.window.reset()
}

func (b *Breaker) changed(from, to State) {
	if from != to && b.onChange != nil {
		b.onChange(from, to)
	}
}

// Snapshot is what a breaker shows of itself.
type Snapshot struct {
	State    State
	Samples  int       // in the rolling window
	Failures int       // of them
	OpenTill time.Time // end of the cooldown, zero unless open
	Cooldown time.Duration
}

// Snapshot of the state at now. An open breaker whose cooldown is over is shown as
// open until a call asks.
func (b *Breaker) Snapshot(now time.Time) Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Snapshot{State: b.state, Cooldown: b.cooldown}
	s.Samples, s.Failures = b.window.sum(now)
	if b.state == Open {
		s.OpenTill = b.until
	}
	return s
}
