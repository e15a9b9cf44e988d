package effects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/retry/keys"
)

// ReconcileOptions of [Store.Reconcile]. Zero values are the defaults.
type ReconcileOptions struct {
	Tools []Tool // required: whose calls to look at; those of other tools stay

	// MinAge is for how long a call whose owner has gone is left to that owner's own next try.
	MinAge time.Duration
	// MaxAge is how long an outcome is sought before the call is set aside for a person;
	// default 24 h after the call ended.
	MaxAge time.Duration
	// Backoff is the wait after so many answers in a row that were none; default full jitter, 5 s to 10 min.
	Backoff func(failures int) time.Duration
}

// Reconciled counts what a Reconcile found.
type Reconciled struct {
	Committed   int // they had happened, or were called again as their permission allows
	NotHappened int // or were compensated; a Do under the key calls again
	Waiting     int // still not known
	SetAside    int // for a person, see Unresolved and Settle
}

// Reconcile finds out what became of calls that a crash or a timeout left pending: those
// whose lease has ended, each at most once, until none is due, ctx ends or the database
// fails. By permission: Repeatable and Keyed calls are made again, AfterLookup ones
// looked up, Never ones compensated where there is a Compensate and set aside where
// not. Any number may run at once, also beside Do: each call is leased by one at a time.
func (s *Store) Reconcile(ctx context.Context, o ReconcileOptions) (Reconciled, error) {
	if err := o.check(); err != nil {
		return Reconciled{}, err
	}
	r := &reconciler{Store: s, o: o}
	err := r.run(ctx)
	if err != nil {
		return r.n, fmt.Errorf("effects: reconcile: %w", err)
	}
	return r.n, nil
}

func (o *ReconcileOptions) check() error {
	if len(o.Tools) == 0 {
		return errors.New("effects: ReconcileOptions.Tools is empty")
	}
	names := map[string]bool{}
	for i := range o.Tools {
		if err := o.Tools[i].check(); err != nil {
			return err
		}
		if names[o.Tools[i].Name] {
			return fmt.Errorf("effects: ReconcileOptions.Tools has two of name %q", o.Tools[i].Name)
		}
		names[o.Tools[i].Name] = true
	}
	if o.MinAge < 0 || o.MaxAge < 0 {
		return errors.New("effects: ReconcileOptions.MinAge and MaxAge must not be negative")
	}
	if o.MaxAge == 0 {
		o.MaxAge = 24 * time.Hour
	}
	if o.Backoff == nil {
		o.Backoff = fullJitter(5*time.Second, 10*time.Minute)
	}
	return nil
}

type reconciler struct {
	*Store
	o ReconcileOptions
	n Reconciled
}

func (r *reconciler) run(ctx context.Context) error {
	var start int64
	if _, err := r.one(ctx, r.Store.o.DB, `SELECT {now}`, nil, &start); err != nil {
		return err
	}
	for ctx.Err() == nil {
		c, found, err := r.claim(ctx, start)
		if err != nil || !found {
			return err
		}
		gap("reconcile.claimed")
		if err := r.resolve(ctx, c); err != nil && !errors.Is(err, ErrLeaseLost) {
			return err
		}
		gap("reconcile.written")
	}
	return context.Cause(ctx)
}

// claim leases the pending call that has been due for longest, of those due at the start.
func (r *reconciler) claim(ctx context.Context, start int64) (*call, bool, error) {
	c := &call{taken: r.timer.Now()}
	args := []any{keys.New(), ms(r.Store.o.Lease), start, start - ms(r.o.MinAge)}
	in := make([]string, len(r.o.Tools))
	for i := range r.o.Tools {
		args = append(args, r.o.Tools[i].Name)
		in[i] = fmt.Sprintf("$%d", len(args))
	}
	found, err := r.one(ctx, r.Store.o.DB, `UPDATE retrylens_calls SET lease = $1, due_ms = {now} + $2
		WHERE key = (SELECT key FROM retrylens_calls WHERE state = 'pending' AND due_ms <= $3 AND ended_ms <= $4 AND tool IN (`+strings.Join(in, ", ")+`)
			ORDER BY due_ms LIMIT 1 {skip})
		RETURNING `+callColumns, args, c.columns()...)
	return c, found, err
}

func (r *reconciler) resolve(ctx context.Context, c *call) error {
	t := &r.o.Tools[slices.IndexFunc(r.o.Tools, func(t Tool) bool { return t.Name == c.tool })]
	v := r.decide(ctx, t, c)
	gap("reconcile.decided")
	switch {
	case v.next == known:
		return r.counted(&r.n.Committed, r.commit(ctx, c, v.result))
	case v.next == repeat && v.fresh:
		return r.counted(&r.n.NotHappened, r.settle(ctx, c, stateNotHappened, v))
	case v.next == repeat:
		return r.repeated(ctx, t, c, v)
	case v.next == hopeless:
		return r.counted(&r.n.SetAside, r.settle(ctx, c, stateUnresolved, v))
	case v.after == 0 && fromMS(c.now-c.ended) > r.o.MaxAge:
		v.cause = fmt.Errorf("not known for %v: %w", r.o.MaxAge, v.cause)
		return r.counted(&r.n.SetAside, r.settle(ctx, c, stateUnresolved, v))
	}
	return r.counted(&r.n.Waiting, r.release(ctx, c, v, r.pause(c, v)))
}

func (r *reconciler) counted(n *int, err error) error {
	if err == nil {
		*n++
	}
	return err
}

func (r *reconciler) pause(c *call, v verdict) time.Duration {
	return max(v.after, r.o.Backoff(c.lookups+1), time.Millisecond)
}

// repeated calls again what may be. A call that fails so that it may have happened is due again
// after a pause.
func (r *reconciler) repeated(ctx context.Context, t *Tool, c *call, v verdict) error {
	_, err := r.repeat(ctx, t, c, v)
	switch {
	case err == nil:
		r.n.Committed++
	case errors.Is(err, ErrUnknown):
		r.n.Waiting++
		return r.postpone(ctx, c, r.pause(c, v))
	case marked[*notHappenedError](err):
		r.n.NotHappened++
	case errors.Is(err, ErrInFlight):
	default:
		return err
	}
	return nil
}

// postpone moves the next look at a call that nobody has leased since.
func (r *reconciler) postpone(ctx context.Context, c *call, after time.Duration) error {
	ctx, cancel := r.afterwards(ctx)
	defer cancel()
	_, err := r.exec(ctx, r.Store.o.DB, `UPDATE retrylens_calls SET due_ms = {now} + $1 WHERE key = $2 AND state = 'pending' AND lease = ''`, ms(after), c.key)
	return err
}

// PendingCall is a call whose outcome is not known.
type PendingCall struct {
	Call
	Tool      string
	LastError string
	CreatedAt time.Time
}

// Unresolved lists calls that were set aside for a person, oldest first, at most limit. Their
// Key is the one for Settle; the receiver may know the call under another one if it
// was compensated before.
func (s *Store) Unresolved(ctx context.Context, limit int) ([]PendingCall, error) {
	var out []PendingCall
	err := s.each(ctx, s.o.DB, `SELECT `+callColumns+` FROM retrylens_calls WHERE state = 'unresolved' ORDER BY created_ms, key LIMIT $1`, []any{limit}, func() { out = nil }, func(rows *sql.Rows) error {
		var c call
		err := rows.Scan(c.columns()...)
		p := PendingCall{Call: c.public(), Tool: c.tool, LastError: c.lastError, CreatedAt: time.UnixMilli(c.created)}
		p.Key = c.key
		out = append(out, p)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("effects: %w", err)
	}
	return out, nil
}

// Settle writes what a person found out about a call that was set aside: with Happened
// its Result is what every repeat gets, with DidNotHappen the next Do calls again. Unknown,
// and a key that is not set aside, are errors.
func (s *Store) Settle(ctx context.Context, key string, f Finding) error {
	state := stateCommitted
	switch f.Outcome {
	case Happened:
	case DidNotHappen:
		state = stateNotHappened
	default:
		return errors.New("effects: settle: the Finding must be Happened or DidNotHappen")
	}
	n, err := s.exec(ctx, s.o.DB, `UPDATE retrylens_calls SET state = $1, result = $2, lease = '', last_error = '', settled_ms = {now} WHERE key = $3 AND state = 'unresolved'`,
		state, bytes(f.Result), key)
	if err != nil {
		return fmt.Errorf("effects: settle: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("effects: settle: no call with key %.64q is set aside; Unresolved lists those that are", key)
	}
	return nil
}
