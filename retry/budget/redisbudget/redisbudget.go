package redisbudget

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/retrylens/retrylens/retry/budget"
)

//go:embed bucket.lua
var bucketLua string

var bucket = redis.NewScript(bucketLua)

// OnError says what Take answers while Redis does not.
type OnError string

// The choices.
const (
	Local  OnError = "local"  // a small bucket of this process decides (default)
	Open   OnError = "open"   // every retry may go
	Closed OnError = "closed" // no retry goes
)

// Options make a budget. Client and Provider are required.
type Options struct {
	// Client must have ContextTimeoutEnabled, or Timeout would mean nothing to it, and
	// should not retry by itself (MaxRetries: -1): a script that is run twice fills or
	// takes twice.
	Client   redis.Scripter
	Provider string         // one bucket each
	Prefix   string         // of the key; default "retrylens:retry_budget:"
	Bucket   budget.Options // of the whole fleet; zero = budget.Default
	OnError  OnError        // default local
	// Fallback is this process's bucket for OnError local; zero = a tenth of Bucket's
	// tokens, the same per success. It is filled by successes at all times.
	Fallback  budget.Options
	Timeout   time.Duration    // of one round trip; default 100 ms
	Cooldown  time.Duration    // after an error Redis is not asked for so long; default 1 s, negative = none
	TTL       time.Duration    // a bucket that nobody touched for so long is full again; default 24 h, at least 1 s
	Now       func() time.Time // for Cooldown; default time.Now
	OnFailure func(error)      // told every failed round trip; nil = nobody
}

// Budget implements [budget.Budget]. It is safe for concurrent use.
type Budget struct {
	o        Options
	key      string
	fallback *budget.Local

	earned   atomic.Int64 // thousandths that Redis does not know of
	downTill atomic.Int64 // Unix ns
	sending  atomic.Bool
	flushes  sync.WaitGroup
}

// New returns the budget, or an error that names a bad option. It does not connect.
func New(o Options) (*Budget, error) {
	o.defaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("redisbudget: %w", err)
	}
	return &Budget{o: o, key: o.Prefix + o.Provider, fallback: budget.New(o.Fallback)}, nil
}

func (o *Options) defaults() {
	setDefault(&o.Prefix, "retrylens:retry_budget:")
	setDefault(&o.Bucket, budget.Default())
	setDefault(&o.OnError, Local)
	setDefault(&o.Fallback, budget.Options{Tokens: o.Bucket.Tokens / 10, PerSuccess: o.Bucket.PerSuccess})
	setDefault(&o.Timeout, 100*time.Millisecond)
	setDefault(&o.Cooldown, time.Second)
	setDefault(&o.TTL, 24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (o *Options) validate() error {
	switch {
	case o.Client == nil:
		return errors.New("Options.Client is missing")
	case !heedsContext(o.Client):
		return errors.New("Options.Client must have ContextTimeoutEnabled, or Options.Timeout has no effect")
	case o.Provider == "":
		return errors.New("Options.Provider is missing")
	case o.OnError != Local && o.OnError != Open && o.OnError != Closed:
		return fmt.Errorf("Options.OnError must be local, open or closed, got %q", o.OnError)
	case o.Timeout < 0:
		return fmt.Errorf("Options.Timeout must be positive, got %v", o.Timeout)
	case o.TTL < time.Second:
		return fmt.Errorf("Options.TTL must be at least 1s, got %v", o.TTL)
	}
	if err := o.Bucket.Validate(); err != nil {
		return fmt.Errorf("Options.Bucket.%w", err)
	}
	if err := o.Fallback.Validate(); err != nil {
		return fmt.Errorf("Options.Fallback.%w", err)
	}
	return nil
}

// heedsContext is false for a client that is known to ignore deadlines of contexts.
func heedsContext(c redis.Scripter) bool {
	switch c := c.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled
	}
	return true
}

// Take as in [budget.Budget]: one round trip, at most Options.Timeout long.
func (b *Budget) Take(ctx context.Context) bool {
	earned := b.earned.Swap(0)
	ok, err := b.run(ctx, earned, budget.Milli)
	if err == nil {
		return ok
	}
	b.unsent(earned, err)
	switch b.o.OnError {
	case Open:
		return true
	case Closed:
		return false
	}
	return b.fallback.Take(ctx)
}

// Return as in [budget.Budget]. It does not wait for the network.
func (b *Budget) Return(context.Context) { b.earn(budget.Milli) }

// Success as in [budget.Budget]. It does not wait for the network.
func (b *Budget) Success(ctx context.Context) {
	b.fallback.Success(ctx)
	b.earn(budget.MilliTokens(b.o.Bucket.PerSuccess))
}

// earn collects, and sends a whole token in the background, one at a time.
func (b *Budget) earn(milli int64) {
	if b.earned.Add(milli) < budget.Milli || b.down() || !b.sending.CompareAndSwap(false, true) {
		return
	}
	b.flushes.Go(func() {
		defer b.sending.Store(false)
		_ = b.Flush(context.Background()) // told through OnFailure
	})
}

// Flush sends what was earned since the last round trip, at most a whole bucket.
func (b *Budget) Flush(ctx context.Context) error {
	earned := min(b.earned.Swap(0), budget.MilliTokens(b.o.Bucket.Tokens))
	if earned == 0 {
		return nil
	}
	_, err := b.run(ctx, earned, 0)
	b.unsent(earned, err)
	return err
}

// unsent keeps what certainly did not reach Redis. After any other error it may have,
// and is given up: the bucket may be poorer than it should be, never richer.
func (b *Budget) unsent(earned int64, err error) {
	if errors.Is(err, errDown) {
		b.earned.Add(earned)
	}
}

// Close flushes and waits for what is on its way. It is called after the last use,
// before the client is closed.
func (b *Budget) Close(ctx context.Context) error {
	b.flushes.Wait()
	return b.Flush(ctx)
}

var errDown = errors.New("redisbudget: Redis failed a moment ago")

func (b *Budget) down() bool { return b.o.Now().UnixNano() < b.downTill.Load() }

// run is one round trip of the script; false if the bucket had less than take.
func (b *Budget) run(ctx context.Context, earned, take int64) (bool, error) {
	if b.down() {
		return false, errDown
	}
	ctx, cancel := context.WithTimeout(ctx, b.o.Timeout)
	defer cancel()
	size := budget.MilliTokens(b.o.Bucket.Tokens)
	taken, err := bucket.Run(ctx, b.o.Client, []string{b.key}, size, earned, take, b.o.TTL.Milliseconds()).Int()
	if err != nil {
		b.downTill.Store(b.o.Now().Add(b.o.Cooldown).UnixNano())
		if b.o.OnFailure != nil {
			b.o.OnFailure(err)
		}
		return false, err
	}
	return taken == 1, nil
}
