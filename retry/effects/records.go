package effects

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/keys"
	"github.com/retrylens/retrylens/retry/op"
)

// intent is the logical operation behind a key, as far as records need it.
type intent struct {
	key, name   string
	fingerprint string
	logicalID   string // of the operation that had the effect
	createdMS   int64
}

// logicalID of an effect: that of the operation in the context if it has this very key,
// else one derived from the key, so that every process finds the same.
func logicalID(ctx context.Context, key string) string {
	if h := op.From(ctx); h != nil && h.Operation().Key == key {
		return h.ID()
	}
	return keys.Derive("effect", key)
}

// operation puts the intent into the context of its action, so that requests which it
// sends through retryhttp carry the key and are recorded as tries of one operation. An operation
// under the same key that is there already stays.
func (s *Store) operation(ctx context.Context, in intent, attempts int) context.Context {
	if h := op.From(ctx); h != nil && h.Operation().Key == in.key {
		return ctx
	}
	return op.With(ctx, op.Operation{ID: in.logicalID, Key: in.key, Name: in.name, Service: s.o.Service, Environment: s.o.Environment, Tenant: s.o.Tenant,
		Deliveries: attempts - 1, StartedAt: time.UnixMilli(in.createdMS)})
}

// replayed records a repeat that was suppressed: began is when it asked.
func (s *Store) replayed(ctx context.Context, in intent, began time.Time) {
	if s.o.Records == nil {
		return
	}
	now := s.timer.Now()
	a := &retrylens.Attempt{
		Tenant: s.o.Tenant, Service: s.o.Service, Environment: s.o.Environment, Provider: s.o.Provider,
		LogicalID: in.logicalID, Operation: in.name, IdempotencyKey: in.key, Fingerprint: in.fingerprint,
		StartedAt: began, DurationMS: retrylens.Some(now.Sub(began).Milliseconds()),
		Outcome: retrylens.OutcomeReplayed, Final: retrylens.Some(true), StopReason: retrylens.StopDelivered,
	}
	number(ctx, a, in)
	s.o.Records.Emit(a, nil)
}

// number gives the record its place in the operation: the next number of the operation in
// the context, if it is that one, else a random run, as one does who cannot know how many
// attempts went before.
func number(ctx context.Context, a *retrylens.Attempt, in intent) {
	h := op.From(ctx)
	if h == nil || h.ID() != in.logicalID {
		const runs = 1<<31/100 - 1
		a.Attempt = 100 * (1 + rand.Int32N(runs))
		a.Cause = retrylens.CauseRedelivery
		a.OperationStartedAt = time.UnixMilli(min(in.createdMS, a.StartedAt.UnixMilli()))
		return
	}
	o := h.Operation()
	a.Attributes = o.Attributes
	for _, f := range []struct {
		to   *string
		from string
	}{{&a.Operation, o.Name}, {&a.Service, o.Service}, {&a.Environment, o.Environment}, {&a.Tenant, o.Tenant}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	_, a.OperationStartedAt = h.Begin(a.StartedAt)
	a.Attempt = h.Take()
	if a.Attempt > 0 && a.Position() == 0 {
		a.Cause = retrylens.CauseRedelivery
	}
}
