package effects

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/fingerprint"
)

// Result of an effect.
type Result struct {
	Value    []byte // what its first run returned
	Replayed bool   // it had happened before; nothing was done now
}

// Once runs do in the caller's transaction unless that was done under key before, and
// returns what the first run returned. The key, what do writes through tx and its result
// become durable together when the caller commits, or not at all: exactly once.
//
// args are what the effect is made of, such as its JSON arguments: the same key with
// others is ErrConflict; nil = not compared. may says what do does outside of tx, if anything: that
// happens again when the transaction is rolled back after do has run, or its process dies, so
// only InTransaction, Repeatable and Keyed are taken.
//
// An error of do is returned; what do wrote through tx is undone, the key is free again and tx may
// be used further. do must not end tx.
//
// While another transaction has the key, Once waits until that ends: on PostgreSQL as
// long as ctx and lock_timeout allow, on SQLite, where any other writer is in the way, for the
// connection's busy_timeout. Past lock_timeout or busy_timeout it returns ErrInFlight; tx
// must then be rolled back, and the whole transaction may be tried again. At the isolation levels above READ
// COMMITTED, PostgreSQL may answer with a serialization failure (40001) instead: try again too.
func (s *Store) Once(ctx context.Context, tx *sql.Tx, key string, args []byte, may Permission, do func(context.Context, *sql.Tx) ([]byte, error)) (Result, error) {
	if err := checkKey(key); err != nil {
		return Result{}, err
	}
	if err := may.check("Once", InTransaction, Repeatable, Keyed); err != nil {
		return Result{}, err
	}
	began := s.timer.Now()
	in := intent{key: key, fingerprint: fingerprint.Body(args), logicalID: logicalID(ctx, key), createdMS: began.UnixMilli()}
	gap("once.begin")
	for {
		res, done, err := s.once(ctx, tx, &in, do, began)
		if err != nil {
			return Result{}, fmt.Errorf("effects: once: %w", err)
		}
		if done {
			return res, nil
		}
	}
}

// once is one round: false if the key was pruned between being found taken and being read.
func (s *Store) once(ctx context.Context, tx *sql.Tx, in *intent, do func(context.Context, *sql.Tx) ([]byte, error), began time.Time) (Result, bool, error) {
	n, err := s.exec(ctx, tx, `INSERT INTO retrylens_once (key, fingerprint, result, logical_id, created_ms)
		VALUES ($1, $2, $3, $4, {now}) ON CONFLICT DO NOTHING`, in.key, in.fingerprint, []byte{}, in.logicalID)
	if held(err) {
		err = &KeyError{Key: in.key, Err: fmt.Errorf("%w: %w", ErrInFlight, err), Hint: "roll back and try the transaction again"}
	}
	if err != nil {
		return Result{}, false, err
	}
	if n == 1 {
		gap("once.inserted")
		res, err := s.first(ctx, tx, *in, do)
		return res, true, err
	}
	var res Result
	kept := *in
	found, err := s.one(ctx, tx, `SELECT fingerprint, result, logical_id, created_ms FROM retrylens_once WHERE key = $1`,
		[]any{in.key}, &kept.fingerprint, &res.Value, &kept.logicalID, &kept.createdMS)
	if err != nil || !found {
		return Result{}, false, err
	}
	if kept.fingerprint != in.fingerprint && in.fingerprint != "" && kept.fingerprint != "" {
		return Result{}, false, fmt.Errorf("%w: key %.64q", ErrConflict, in.key)
	}
	res.Replayed = true
	s.replayed(ctx, kept, began)
	return res, true, nil
}

// first runs do behind a savepoint, so that its failure undoes its own writes alone.
func (s *Store) first(ctx context.Context, tx *sql.Tx, in intent, do func(context.Context, *sql.Tx) ([]byte, error)) (Result, error) {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT retrylens_once"); err != nil {
		return Result{}, err
	}
	value, err := do(s.operation(ctx, in, 1), tx)
	gap("once.ran")
	if err != nil {
		return Result{}, s.takeBack(ctx, tx, in.key, err)
	}
	if _, err := tx.ExecContext(ctx, "RELEASE SAVEPOINT retrylens_once"); err != nil {
		return Result{}, fmt.Errorf("the function must not end the transaction: %w", err)
	}
	if len(value) > 0 {
		if _, err := s.exec(ctx, tx, `UPDATE retrylens_once SET result = $1 WHERE key = $2`, value, in.key); err != nil {
			return Result{}, err
		}
	}
	gap("once.kept")
	return Result{Value: value}, nil
}

// takeBack undoes what do wrote and frees the key within tx. Where that fails, the error
// says that tx must be rolled back.
func (s *Store) takeBack(ctx context.Context, tx *sql.Tx, key string, failure error) error {
	ctx, cancel := s.afterwards(ctx)
	defer cancel()
	for _, text := range []string{"ROLLBACK TO SAVEPOINT retrylens_once", "RELEASE SAVEPOINT retrylens_once"} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%w (roll the transaction back: %w)", failure, err)
		}
	}
	if _, err := s.exec(ctx, tx, `DELETE FROM retrylens_once WHERE key = $1`, key); err != nil {
		return fmt.Errorf("%w (roll the transaction back: %w)", failure, err)
	}
	return failure
}
