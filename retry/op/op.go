package op

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/keys"
)

// Operation is what a caller says of its intent. The zero Operation is a nameless one
// without a key.
type Operation struct {
	ID  string // logical_id of the records, 1..256 bytes; empty = a new UUIDv7
	Key string // idempotency key, 1..255 bytes, the same for every try; empty = unkeyed: hardly retried

	Name                         string // business operation, such as "summarise"
	Service, Environment, Tenant string // empty = the transport's

	Policy    *retry.Policy // nil = the engine's
	Cheap     bool          // costs little should it fail: preferred as a breaker's probe
	HedgeSafe bool          // a second copy does no harm

	// Deliveries is how often the intent was handed to a process before: 0 for the first
	// time. A redelivery from a queue gives its count; its attempts are numbered from
	// 100 times it, with cause redelivery. StartedAt is then the time of the first
	// attempt of all, from the message.
	Deliveries int
	StartedAt  time.Time // zero = when the first try starts

	// Persist is called with the key before the first byte is sent, once; an error keeps
	// everything from being sent. nil = the key is derived or kept already.
	Persist func(ctx context.Context, key string) error

	Attributes map[string]string // of every record; at most 16, not changed afterwards
}

// Handle is an operation with what its tries share. It is safe for concurrent use.
type Handle struct {
	op Operation

	mu        sync.Mutex
	base      int32 // number of the first attempt of this run
	next      int32
	used      [2]uint64 // of the numbers from base on
	startedAt time.Time
	begun     bool   // startedAt stays as it is
	id        string // where the caller gave none

	persist   sync.Mutex // not mu: Persist may ask for the operation's ID
	persisted bool
}

type contextKey struct{}

// With returns a context that carries the operation. Every request sent with it is a try
// of this one operation: one context per intent, not per program.
func With(ctx context.Context, o Operation) context.Context {
	return context.WithValue(ctx, contextKey{}, NewHandle(o))
}

// From returns the operation of the context, nil without one.
func From(ctx context.Context) *Handle {
	h, _ := ctx.Value(contextKey{}).(*Handle)
	return h
}

const runLength = 100 // attempts of one run, docs/record.md

// NewHandle is for those who keep an operation elsewhere than in a context.
func NewHandle(o Operation) *Handle {
	h := &Handle{op: o, startedAt: o.StartedAt}
	h.base = int32(min(max(o.Deliveries, 0), (math.MaxInt32-runLength)/runLength)) * runLength
	h.next = h.base
	return h
}

// Operation is what the caller said; it must not be changed. Its ID may be empty: see ID.
func (h *Handle) Operation() *Operation { return &h.op }

// ID of the operation, made at the first call if the caller gave none.
func (h *Handle) ID() string {
	if h.op.ID != "" {
		return h.op.ID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.id == "" {
		h.id = keys.New()
	}
	return h.id
}

// Begin tells the number of the next attempt and the start of the operation's first one:
// now, if this is it.
func (h *Handle) Begin(now time.Time) (next int32, startedAt time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(now)
	return h.next, h.startedAt
}

// begin holds the start of the operation fast. One that the caller names may be another host's, whose
// clock is ahead, or none at all (0 in a message): records with it would be refused.
func (h *Handle) begin(now time.Time) {
	if !h.begun && (h.startedAt.Before(earliest) || h.startedAt.After(now)) {
		h.startedAt = now
	}
	h.begun = true
}

var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) // of times in a record

// Number of the next attempt.
func (h *Handle) Number() int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

// Claim gives out n as the number of an attempt that starts now, or the next free one if
// it is taken. It tells the start of the operation's first attempt as well: now, if this is it.
func (h *Handle) Claim(n int32, now time.Time) (number int32, startedAt time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(now)
	i := n - h.base
	if i < 0 || i >= 128 || h.used[i/64]&(1<<(i%64)) != 0 {
		n = h.next
	}
	h.use(n)
	return n, h.startedAt
}

// Take gives out the number of an attempt, above all others.
func (h *Handle) Take() int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.next
	h.use(n)
	return n
}

func (h *Handle) use(n int32) {
	if i := n - h.base; i >= 0 && i < 128 {
		h.used[i/64] |= 1 << (i % 64)
	}
	h.next = max(h.next, n+1)
}

// Skip makes n the number of the next attempt unless it is above that already: attempts
// before it were made by somebody who cannot be asked.
func (h *Handle) Skip(n int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = max(h.next, n)
}

// Persist calls the operation's Persist unless that was done.
func (h *Handle) Persist(ctx context.Context) error {
	if h.op.Persist == nil {
		return nil
	}
	h.persist.Lock()
	defer h.persist.Unlock()
	if h.persisted {
		return nil
	}
	if err := h.op.Persist(ctx, h.op.Key); err != nil {
		return fmt.Errorf("op: the key was not persisted, so nothing was sent: %w", err)
	}
	h.persisted = true
	return nil
}
