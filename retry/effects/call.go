package effects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/retrylens/retrylens/retry/fingerprint"
	"github.com/retrylens/retrylens/retry/keys"
)

// States of a call.
const (
	statePending     = "pending"
	stateCommitted   = "committed"
	stateNotHappened = "not_happened"
	stateUnresolved  = "unresolved"
)

// call is a row of retrylens_calls, with the present moment by the clock of its database.
type call struct {
	key, tool, run       string
	step                 int
	args                 []byte
	fingerprint          string
	state                string
	result               []byte
	attempts, round      int
	lookups              int
	lease                string
	due, called, ended   int64 // Unix ms
	lastError, logicalID string
	created              int64
	now                  int64
	taken                time.Time // when the lease was asked for, if it is ours
}

const callColumns = `key, tool, run, step, args, fingerprint, state, result, attempts, round, lookups, lease, due_ms, called_ms, ended_ms,
	last_error, logical_id, created_ms, {now}`

func (c *call) columns() []any {
	return []any{&c.key, &c.tool, &c.run, &c.step, &c.args, &c.fingerprint, &c.state, &c.result, &c.attempts, &c.round, &c.lookups, &c.lease,
		&c.due, &c.called, &c.ended, &c.lastError, &c.logicalID, &c.created, &c.now}
}

func (c *call) intent() intent {
	return intent{key: c.key, name: c.tool, fingerprint: c.fingerprint, logicalID: c.logicalID, createdMS: c.created}
}

// public is the call as the tool's functions see it.
func (c *call) public() Call {
	key := c.key
	if c.round > 0 {
		key = keys.Derive("after compensation", c.key, strconv.Itoa(c.round))
	}
	return Call{Key: key, Args: c.args, Attempt: c.attempts, Run: c.run, Step: c.step}
}

// Do calls the tool unless it was called under key before, and returns what the first call
// returned. The call is written down as pending, durably, before it is made and as
// committed after it, so that a crash or a timeout in between leaves a row that says so. args
// are kept, given to the tool, and compared: the same key with other ones is ErrConflict.
//
// A key that another process has now is ErrInFlight. Where a call may have happened, what
// comes next is up to the tool's permission: Repeatable and Keyed ones are called
// again, AfterLookup ones are looked up first, and Never ones are compensated where there is a
// Compensate; else, and where the lookup cannot tell, the error is ErrUnknown, at once
// and whenever it is asked again, until Reconcile or Settle know. Both are a *KeyError that says how long
// to wait.
//
// Do makes one call and retries nothing itself: the retry layer belongs into the tool (package
// retryhttp), which finds the operation with its key in the context.
func (s *Store) Do(ctx context.Context, t Tool, key string, args []byte) (Result, error) {
	if err := t.check(); err != nil {
		return Result{}, err
	}
	if err := checkKey(key); err != nil {
		return Result{}, err
	}
	return s.do(ctx, &t, &call{key: key, step: -1, args: args})
}

func (s *Store) do(ctx context.Context, t *Tool, c *call) (Result, error) {
	began := s.timer.Now()
	c.tool, c.fingerprint, c.logicalID = t.Name, fingerprint.Body(c.args), logicalID(ctx, c.key)
	gap("call.begin")
	fresh, err := s.insert(ctx, c)
	if err != nil {
		return Result{}, fmt.Errorf("effects: %w", err)
	}
	if fresh {
		gap("call.pending")
		return s.perform(ctx, t, c)
	}
	var kept call
	found, err := s.one(ctx, s.o.DB, `SELECT `+callColumns+` FROM retrylens_calls WHERE key = $1`, []any{c.key}, kept.columns()...)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("effects: %w", err)
	case !found: // it was pruned just now
		return Result{}, inFlight(c, 0)
	case kept.tool != c.tool || kept.run != c.run || kept.fingerprint != c.fingerprint && c.run == "": // a step has the arguments that it began with
		return Result{}, fmt.Errorf("%w: key %.64q is one of tool %q", ErrConflict, kept.key, kept.tool)
	}
	return s.again(ctx, t, &kept, began)
}

// insert writes a fresh call as pending, under a lease; false if the key is there.
func (s *Store) insert(ctx context.Context, c *call) (bool, error) {
	c.taken = s.timer.Now()
	return s.one(ctx, s.o.DB, `INSERT INTO retrylens_calls
		(key, tool, run, step, args, fingerprint, state, result, lease, due_ms, called_ms, ended_ms, logical_id, created_ms)
		VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, {now} + $9, {now}, {now} + $9, $10, {now})
		ON CONFLICT DO NOTHING RETURNING `+callColumns,
		[]any{c.key, c.tool, c.run, c.step, bytes(c.args), c.fingerprint, []byte{}, keys.New(), ms(s.o.Lease), c.logicalID}, c.columns()...)
}

// again is for a key that was used before.
func (s *Store) again(ctx context.Context, t *Tool, c *call, began time.Time) (Result, error) {
	switch {
	case c.state == stateCommitted:
		s.replayed(ctx, c.intent(), began)
		return Result{Value: c.result, Replayed: true}, nil
	case c.state == stateUnresolved:
		return Result{}, unknown(c, verdict{next: hopeless, cause: errors.New(c.lastError)})
	case c.lease != "" && c.due > c.now:
		return Result{}, inFlight(c, fromMS(c.due-c.now))
	}
	taken, err := s.take(ctx, c)
	if err != nil {
		return Result{}, fmt.Errorf("effects: %w", err)
	}
	if !taken {
		return Result{}, inFlight(c, 0)
	}
	gap("again.taken")
	v := s.decide(ctx, t, c)
	gap("again.decided")
	return s.carryOut(ctx, t, c, v, began)
}

// carryOut does what a Do does with a verdict.
func (s *Store) carryOut(ctx context.Context, t *Tool, c *call, v verdict, began time.Time) (Result, error) {
	var err error
	switch v.next {
	case repeat:
		return s.repeat(ctx, t, c, v)
	case known:
		if err = s.commit(ctx, c, v.result); err == nil {
			s.replayed(ctx, c.intent(), began)
			return Result{Value: v.result, Replayed: true}, nil
		}
	case hopeless:
		err = s.settle(ctx, c, stateUnresolved, v)
	case wait:
		err = s.release(ctx, c, v, v.after)
	}
	if err != nil {
		return Result{}, fmt.Errorf("effects: %w", err)
	}
	return Result{}, unknown(c, v)
}

// take leases a call that is pending or did not happen, unless somebody was quicker.
func (s *Store) take(ctx context.Context, c *call) (bool, error) {
	c.taken = s.timer.Now()
	return s.one(ctx, s.o.DB, `UPDATE retrylens_calls SET lease = $1, due_ms = {now} + $2
		WHERE key = $3 AND state = $4 AND lease = $5 AND (lease = '' OR due_ms <= {now}) RETURNING `+callColumns,
		[]any{keys.New(), ms(s.o.Lease), c.key, c.state, c.lease}, c.columns()...)
}

// repeat begins another call of what we have leased.
func (s *Store) repeat(ctx context.Context, t *Tool, c *call, v verdict) (Result, error) {
	c.taken = s.timer.Now()
	began, err := s.one(ctx, s.o.DB, `UPDATE retrylens_calls SET state = 'pending', attempts = attempts + 1, round = round + $1, lookups = 0,
		due_ms = {now} + $2, ended_ms = {now} + $2, called_ms = CASE WHEN $3 > 0 THEN {now} ELSE called_ms END
		WHERE key = $4 AND lease = $5 RETURNING `+callColumns,
		[]any{v.rounds(), ms(s.o.Lease), bit(v.fresh), c.key, c.lease}, c.columns()...)
	if err != nil {
		return Result{}, fmt.Errorf("effects: %w", err)
	}
	if !began {
		return Result{}, inFlight(c, 0)
	}
	gap("call.pending")
	return s.perform(ctx, t, c)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// perform makes the call that was written down as pending, and writes down how it ended.
func (s *Store) perform(ctx context.Context, t *Tool, c *call) (Result, error) {
	value, begun, err := s.call(ctx, t, c)
	if !begun {
		return Result{}, &KeyError{Key: c.key, Tool: c.tool, Err: fmt.Errorf("%w: %w", ErrInFlight, err), Hint: "ask again under the same key"}
	}
	gap("call.returned")
	var written error
	switch {
	case err == nil:
		written = s.commit(ctx, c, value)
	case marked[*notHappenedError](err):
		written = s.settle(ctx, c, stateNotHappened, verdict{cause: err})
	default:
		written = s.ended(ctx, c, err)
		err = unknown(c, verdict{cause: err})
	}
	gap("call.written")
	if written != nil {
		err = unknown(c, verdict{cause: errors.Join(err, fmt.Errorf("how the call ended could not be written down: %w", written))})
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Value: value}, nil
}

// call makes the call under its lease, or does not begin it: then another process has the lease.
func (s *Store) call(ctx context.Context, t *Tool, c *call) (value []byte, begun bool, err error) {
	held, release, err := s.hold(ctx, c.taken, func(ctx context.Context) (bool, error) {
		n, err := s.exec(ctx, s.o.DB, `UPDATE retrylens_calls SET due_ms = {now} + $1, ended_ms = {now} + $1 WHERE key = $2 AND lease = $3 AND state = 'pending'`,
			ms(s.o.Lease), c.key, c.lease)
		return n == 1, err
	})
	if err != nil {
		return nil, false, err
	}
	defer release()
	held, cancel := limited(held, t.Timeout)
	defer cancel()
	public := c.public()
	in := c.intent()
	in.key = public.Key
	value, err = t.Call(s.operation(held, in, c.attempts), public)
	return value, true, err
}

// commit writes the result of a call that happened: whatever others have concluded
// meanwhile, unless they have begun another call. A result that is there already stays.
func (s *Store) commit(ctx context.Context, c *call, result []byte) error {
	return s.write(ctx, `UPDATE retrylens_calls SET state = 'committed', result = CASE state WHEN 'committed' THEN result ELSE $1 END,
		lease = '', last_error = '', settled_ms = {now} WHERE key = $2 AND attempts = $3`, bytes(result), c.key, c.attempts)
}

// settle writes an end that is no success.
func (s *Store) settle(ctx context.Context, c *call, state string, v verdict) error {
	return s.write(ctx, `UPDATE retrylens_calls SET state = $1, round = round + $2, lease = '', last_error = $3, settled_ms = {now} WHERE key = $4 AND lease = $5`,
		state, v.rounds(), v.text(), c.key, c.lease)
}

// ended lets go of a call that may have happened; others may find out at once.
func (s *Store) ended(ctx context.Context, c *call, failure error) error {
	return s.write(ctx, `UPDATE retrylens_calls SET due_ms = {now}, ended_ms = {now}, lease = '', last_error = $1 WHERE key = $2 AND lease = $3`,
		text(failure), c.key, c.lease)
}

// release lets go of a call of which nothing new is known.
func (s *Store) release(ctx context.Context, c *call, v verdict, after time.Duration) error {
	return s.write(ctx, `UPDATE retrylens_calls SET due_ms = {now} + $1, lookups = lookups + 1, lease = '', last_error = $2 WHERE key = $3 AND lease = $4`,
		ms(after), v.text(), c.key, c.lease)
}

// write is a statement that must meet one row, whether or not the caller has left.
func (s *Store) write(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := s.afterwards(ctx)
	defer cancel()
	n, err := s.exec(ctx, s.o.DB, statement, args...)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: another process has gone on", ErrLeaseLost)
	}
	return err
}
