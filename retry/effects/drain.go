package effects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens/retry/keys"
)

// Handler sends the messages of a topic.
type Handler struct {
	// Retry must be Repeatable or Keyed, since a dispatch whose end was not written down is
	// repeated. For what may not be, dispatch through Store.Do.
	Retry Permission
	// KeyTTL is how long the receiver of a Keyed handler remembers a key, from the first
	// dispatch on; a message that is older is set aside instead of being sent again. Default 24 h.
	KeyTTL time.Duration
	// Timeout of one dispatch; 0 = none.
	Timeout time.Duration
	// Dispatch sends the message under its key. nil error = it was taken. It must end
	// when ctx does: the lease of the message may then be another process's.
	Dispatch func(ctx context.Context, m Message) error
}

// DrainOptions of [Store.Drain]. Zero values are the defaults.
type DrainOptions struct {
	Handlers    map[string]Handler               // by topic, required; messages of other topics stay
	Workers     int                              // dispatches at once; default 4
	MaxAttempts int                              // dispatches before a message is set aside; default 10
	Backoff     func(failures int) time.Duration // after so many dispatches; default full jitter, 1 s to 5 min
}

// Drained counts what a Drain did.
type Drained struct {
	Dispatched int // taken by their receivers
	Failed     int // to be tried again
	SetAside   int // poison, or failed too often
	Lost       int // dispatches whose lease went to another process, and which may so be repeated
}

// Drain dispatches messages until none is due, ctx ends or the database fails. Any number
// of drainers may run at once: each message is leased by one of them at a time, so at
// most one dispatch per key is under way. The lease is renewed while the dispatch lasts; it ends
// Lease after its process has died, and the message is dispatched again: at least once. There
// is no order between messages.
//
// A message is set aside, and counted in Stats, after MaxAttempts dispatches, whether they
// failed or killed their process, after an error marked with Poison, or once its
// receiver may have forgotten its key.
func (s *Store) Drain(ctx context.Context, o DrainOptions) (Drained, error) {
	if err := o.check(); err != nil {
		return Drained{}, err
	}
	d := &drainer{Store: s, o: o, topics: slices.Sorted(maps.Keys(o.Handlers))}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range d.o.Workers {
		wg.Go(func() {
			if err := d.work(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return d.n, fmt.Errorf("effects: drain: %w", err)
	}
	return d.n, nil
}

func (o *DrainOptions) check() error {
	if len(o.Handlers) == 0 {
		return errors.New("effects: DrainOptions.Handlers is empty")
	}
	for topic, h := range o.Handlers {
		if err := h.Retry.check(fmt.Sprintf("the handler of topic %q", topic), Repeatable, Keyed); err != nil {
			return err
		}
		if h.Dispatch == nil || h.Timeout < 0 || h.KeyTTL < 0 {
			return fmt.Errorf("effects: the handler of topic %q needs a Dispatch, and a Timeout and KeyTTL that are not negative", topic)
		}
	}
	if o.Workers < 0 || o.MaxAttempts < 0 {
		return errors.New("effects: DrainOptions.Workers and MaxAttempts must not be negative")
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 10
	}
	if o.Backoff == nil {
		o.Backoff = fullJitter(time.Second, 5*time.Minute)
	}
	return nil
}

type drainer struct {
	*Store
	o      DrainOptions
	topics []string

	mu sync.Mutex
	n  Drained
}

// leased is a message on its way.
type leased struct {
	Message
	in     intent
	id     int64
	lease  string
	spent  int
	called int64 // first dispatch, Unix ms
	now    int64
	taken  time.Time // when the lease was asked for
}

func (d *drainer) work(ctx context.Context) error {
	for ctx.Err() == nil {
		m, found, err := d.claim(ctx)
		if err != nil || !found {
			return err
		}
		gap("drain.claimed")
		if err := d.dispatch(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (d *drainer) count(f func(*Drained)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.n)
}

// claim leases the message that has been due for longest.
func (d *drainer) claim(ctx context.Context) (*leased, bool, error) {
	m := &leased{lease: keys.New(), taken: d.timer.Now()}
	args := []any{m.lease, ms(d.Store.o.Lease)}
	in := make([]string, len(d.topics))
	for i, t := range d.topics {
		args = append(args, t)
		in[i] = fmt.Sprintf("$%d", len(args))
	}
	var created int64
	found, err := d.one(ctx, d.Store.o.DB, `UPDATE retrylens_outbox SET attempts = attempts + 1, lease = $1, due_ms = {now} + $2,
		called_ms = CASE called_ms WHEN 0 THEN {now} ELSE called_ms END
		WHERE id = (SELECT id FROM retrylens_outbox WHERE state = 'ready' AND due_ms <= {now} AND topic IN (`+strings.Join(in, ", ")+`)
			ORDER BY due_ms, id LIMIT 1 {skip})
		RETURNING id, key, topic, payload, attempts, spent, called_ms, last_error, logical_id, created_ms, {now}`,
		args, &m.id, &m.Key, &m.Topic, &m.Payload, &m.Attempt, &m.spent, &m.called, &m.LastError, &m.in.logicalID, &created, &m.now)
	m.CreatedAt = time.UnixMilli(created)
	m.in.key, m.in.name, m.in.createdMS = m.Key, m.Topic, created
	return m, found, err
}

// dispatch sends m, unless it has used up its tries, and writes down how that ended.
func (d *drainer) dispatch(ctx context.Context, m *leased) error {
	h := d.o.Handlers[m.Topic]
	switch {
	case m.Attempt-m.spent > d.o.MaxAttempts:
		return d.setAside(ctx, m, fmt.Errorf("dispatched %d times, and each time its process ended or lost its lease", d.o.MaxAttempts))
	case h.Retry == Keyed && m.now-m.called > ms(ttl(h.KeyTTL)):
		return d.setAside(ctx, m, fmt.Errorf("first dispatched %v ago: its receiver may have forgotten the key", fromMS(m.now-m.called)))
	}
	err := d.send(ctx, h, m)
	gap("drain.dispatched")
	switch {
	case err == nil:
		return d.finish(ctx, m, "done", 0, "", func(n *Drained) { n.Dispatched++ })
	case marked[*poisonError](err) || m.Attempt-m.spent == d.o.MaxAttempts:
		return d.setAside(ctx, m, err)
	}
	wait := max(d.o.Backoff(m.Attempt-m.spent), time.Millisecond)
	return d.finish(ctx, m, "ready", ms(wait), text(err), func(n *Drained) { n.Failed++ })
}

func ttl(d time.Duration) time.Duration {
	if d == 0 {
		return defaultKeyTTL
	}
	return d
}

func (d *drainer) send(ctx context.Context, h Handler, m *leased) error {
	held, release, err := d.hold(ctx, m.taken, func(ctx context.Context) (bool, error) {
		n, err := d.exec(ctx, d.Store.o.DB, `UPDATE retrylens_outbox SET due_ms = {now} + $1 WHERE id = $2 AND lease = $3 AND state = 'ready'`,
			ms(d.Store.o.Lease), m.id, m.lease)
		return n == 1, err
	})
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := limited(held, h.Timeout)
	defer cancel()
	return h.Dispatch(d.operation(ctx, m.in, m.Attempt), m.Message)
}

func (d *drainer) setAside(ctx context.Context, m *leased, err error) error {
	return d.finish(ctx, m, "set_aside", 0, text(err), func(n *Drained) { n.SetAside++ })
}

// finish writes the message's next state and counts, unless the lease has gone to another.
func (d *drainer) finish(ctx context.Context, m *leased, state string, wait int64, lastError string, count func(*Drained)) error {
	ctx, cancel := d.afterwards(ctx)
	defer cancel()
	n, err := d.exec(ctx, d.Store.o.DB, `UPDATE retrylens_outbox SET state = $1, due_ms = {now} + $2, last_error = $3, lease = '',
		settled_ms = CASE $1 WHEN 'ready' THEN 0 ELSE {now} END WHERE id = $4 AND lease = $5`, state, wait, lastError, m.id, m.lease)
	if err != nil {
		return err
	}
	if n == 0 {
		count = func(n *Drained) { n.Lost++ }
	}
	d.count(count)
	gap("drain.finished")
	return nil
}
