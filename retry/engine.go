package retry

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/retrylens/retrylens/retry/breaker"
	"github.com/retrylens/retrylens/retry/budget"
	"github.com/retrylens/retrylens/retry/bulkhead"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/hedge"
)

// Options make an engine. The zero value is a usable one.
type Options struct {
	Policy    *Policy           // of operations without their own; nil = Interactive
	Limits    *Limits           // of each provider; nil = DefaultLimits
	Providers map[string]Limits // of the providers that have their own
	// Budget makes the retry budget of a provider, once; nil = one of this process, by
	// the limits. See package redisbudget for a fleet's.
	Budget func(provider string) budget.Budget
	// Clock is the time. Do needs a full [clock.Clock]; a simulator's may tell the
	// time only. nil = the operating system's.
	Clock Now
	// Rand is the source of jitter; nil = the runtime's. It is guarded by a lock.
	Rand     rand.Source
	Observer Observer // nil = none
	// OnBreaker is told each change of a breaker, from the goroutine that caused it and
	// outside of the breaker's lock; it must not call back into the engine. nil = nobody.
	OnBreaker func(provider string, from, to breaker.State)
}

// Now tells the time.
type Now interface{ Now() time.Time }

// Engine decides for all operations of a process. It is safe for concurrent use.
type Engine struct {
	o      Options
	policy Policy
	limits Limits
	now    func() time.Time
	intn   func(int64) int64
	clock  clock.Clock    // nil if Options.Clock only tells the time
	copies sync.WaitGroup // losers of hedges that have not ended

	mu        sync.RWMutex
	providers map[string]*provider
}

// provider is what the operations of one provider share.
type provider struct {
	name     string
	limits   Limits
	budget   budget.Budget
	breaker  *breaker.Breaker
	bulkhead *bulkhead.Bulkhead
	hedges   *hedge.Tracker // nil without hedging
}

// New returns an engine, or an error that names a knob which is out of range.
func New(o Options) (*Engine, error) {
	e := &Engine{o: o, policy: Interactive(), limits: DefaultLimits(), providers: map[string]*provider{}}
	if o.Policy != nil {
		e.policy = *o.Policy
	}
	if o.Limits != nil {
		e.limits = *o.Limits
	}
	err := errors.Join(e.policy.Validate(), e.limits.Validate())
	for name, l := range o.Providers {
		if bad := l.Validate(); bad != nil {
			err = errors.Join(err, fmt.Errorf("provider %s: %w", name, bad))
		}
	}
	if err != nil {
		return nil, err
	}
	e.setClock(o.Clock)
	e.intn = randomness(o.Rand)
	return e, nil
}

func (e *Engine) setClock(c Now) {
	if c == nil {
		c = clock.Real()
	}
	e.now = c.Now
	e.clock, _ = c.(clock.Clock)
}

// randomness of src for concurrent use.
func randomness(src rand.Source) func(int64) int64 {
	if src == nil {
		return rand.Int64N
	}
	var mu sync.Mutex
	r := rand.New(src)
	return func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Int64N(n)
	}
}

// provider returns the one of that name, made at its first use.
func (e *Engine) provider(name string) *provider {
	e.mu.RLock()
	p := e.providers[name]
	e.mu.RUnlock()
	if p != nil {
		return p
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if p = e.providers[name]; p == nil {
		p = e.newProvider(name)
		e.providers[name] = p
	}
	return p
}

func (e *Engine) newProvider(name string) *provider {
	l, ok := e.o.Providers[name]
	if !ok {
		l = e.limits
	}
	p := &provider{name: name, limits: l, bulkhead: bulkhead.New(l.Bulkhead)}
	if p.budget = budget.Budget(budget.New(l.RetryBudget)); e.o.Budget != nil {
		p.budget = e.o.Budget(name)
	}
	var onChange func(from, to breaker.State)
	if e.o.OnBreaker != nil {
		onChange = func(from, to breaker.State) { e.o.OnBreaker(name, from, to) }
	}
	p.breaker = breaker.New(l.Breaker, onChange)
	if l.Hedging.Enabled {
		p.hedges = hedge.NewTracker(l.Hedging)
	}
	return p
}

// Begin starts a run of op. It decides nothing yet: see [Run.Start].
func (e *Engine) Begin(op Op) *Run {
	r := &Run{e: e, op: op, policy: &e.policy, next: op.FirstAttempt}
	if op.Policy != nil {
		r.policy = op.Policy
	}
	if r.op.StartedAt.IsZero() {
		r.op.StartedAt = e.now()
	}
	r.deadline = r.op.StartedAt.Add(r.policy.WallClockBudget)
	if d := op.Deadline; !d.IsZero() && d.Before(r.deadline) {
		r.deadline = d
	}
	r.limit = r.deadline.Sub(r.op.StartedAt)
	r.target = e.provider(op.Provider)
	return r
}

// ProviderState is what an engine shows of one provider.
type ProviderState struct {
	Provider    string
	Breaker     breaker.Snapshot
	Bulkhead    bulkhead.Snapshot
	RetryBudget float64 // tokens left, -1 where the budget does not tell
}

// State of a provider, for metrics and status pages. A provider that was never
// called is made by asking.
func (e *Engine) State(name string) ProviderState {
	p, now := e.provider(name), e.now()
	s := ProviderState{Provider: name, Breaker: p.breaker.Snapshot(now), Bulkhead: p.bulkhead.Snapshot(now), RetryBudget: -1}
	if b, ok := p.budget.(interface{ Tokens() float64 }); ok {
		s.RetryBudget = b.Tokens()
	}
	return s
}
