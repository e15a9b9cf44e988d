package effects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/clock"
)

// Stats says how much is where. Ages are 0 where there is nothing.
type Stats struct {
	Ready       int           // messages to be dispatched, those on their way included
	OldestReady time.Duration // since the oldest of them was enqueued
	Done        int           // messages that were taken
	SetAside    int           // messages set aside

	Pending       int           // calls whose outcome is not known yet
	OldestPending time.Duration // since the oldest of them was made for the first time
	Committed     int           // calls that happened
	NotHappened   int           // calls that did not
	Unresolved    int           // calls set aside for a person
}

// Stats counts messages and calls. It reads both tables whole.
func (s *Store) Stats(ctx context.Context) (Stats, error) {
	var out Stats
	count := map[string]*int{"ready": &out.Ready, "done": &out.Done, "set_aside": &out.SetAside,
		statePending: &out.Pending, stateCommitted: &out.Committed, stateNotHappened: &out.NotHappened, stateUnresolved: &out.Unresolved}
	age := map[string]*time.Duration{"ready": &out.OldestReady, statePending: &out.OldestPending}
	err := s.each(ctx, s.o.DB, `SELECT state, count(*), {now} - min(created_ms) FROM retrylens_outbox GROUP BY state
		UNION ALL SELECT state, count(*), {now} - min(created_ms) FROM retrylens_calls GROUP BY state`, nil, func() {}, func(rows *sql.Rows) error {
		var state string
		var n int
		var oldest int64
		if err := rows.Scan(&state, &n, &oldest); err != nil {
			return err
		}
		if to := count[state]; to != nil {
			*to = n
		}
		if to := age[state]; to != nil {
			*to = fromMS(max(oldest, 0))
		}
		return nil
	})
	if err != nil {
		return Stats{}, fmt.Errorf("effects: %w", err)
	}
	return out, nil
}

// Prune forgets what was done longer ago than olderThan, and returns the number of
// rows: keys of Once, messages that were taken, calls that ended and are not those of a run with a
// later or open step. A key that is forgotten can have its effect again, so olderThan must
// exceed the longest time after which a repeat may come: the retention of a queue, a day of a
// person's retries.
func (s *Store) Prune(ctx context.Context, olderThan time.Duration) (int64, error) {
	if olderThan <= 0 {
		return 0, errors.New("effects: prune: olderThan must be positive")
	}
	total := int64(0)
	for _, statement := range []string{
		`DELETE FROM retrylens_once WHERE created_ms < {now} - $1`,
		`DELETE FROM retrylens_outbox WHERE state = 'done' AND settled_ms < {now} - $1`,
		`DELETE FROM retrylens_calls WHERE state IN ('committed', 'not_happened') AND settled_ms < {now} - $1 AND lease = '' AND (run = '' OR NOT EXISTS
			(SELECT 1 FROM retrylens_calls other WHERE other.run = retrylens_calls.run
				AND (other.state NOT IN ('committed', 'not_happened') OR other.settled_ms >= {now} - $1)))`,
	} {
		n, err := s.exec(ctx, s.o.DB, statement, ms(olderThan))
		if err != nil {
			return total, fmt.Errorf("effects: prune: %w", err)
		}
		total += n
	}
	return total, nil
}

// ServeOptions of [Store.Serve].
type ServeOptions struct {
	Drain     *DrainOptions     // nil = no draining
	Reconcile *ReconcileOptions // nil = no reconciling
	Every     time.Duration     // between rounds; default 1 s
	OnError   func(error)       // told of each round that failed; the next one is made all the same. Required
}

// Serve drains and reconciles, round after round, until ctx ends, and returns nil then. One in every process
// is fine.
func (s *Store) Serve(ctx context.Context, o ServeOptions) error {
	switch {
	case o.Drain == nil && o.Reconcile == nil:
		return errors.New("effects: ServeOptions has neither Drain nor Reconcile")
	case o.OnError == nil:
		return errors.New("effects: ServeOptions.OnError is missing: a round that fails must be seen")
	case o.Every < 0:
		return errors.New("effects: ServeOptions.Every must not be negative")
	case o.Every == 0:
		o.Every = time.Second
	}
	for wait := time.Duration(0); clock.Sleep(ctx, s.timer, wait) == nil; wait = o.Every {
		if err := s.round(ctx, o); err != nil && ctx.Err() == nil {
			o.OnError(err)
		}
	}
	return nil
}

func (s *Store) round(ctx context.Context, o ServeOptions) error {
	var drained, reconciled error
	if o.Drain != nil {
		_, drained = s.Drain(ctx, *o.Drain)
	}
	if o.Reconcile != nil {
		_, reconciled = s.Reconcile(ctx, *o.Reconcile)
	}
	return errors.Join(drained, reconciled)
}
