package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/op"
)

// ledger is a table of the application.
func (b *bench) ledger() {
	b.t.Helper()
	if _, err := b.db.ExecContext(b.t.Context(), "CREATE TABLE ledger (k text)"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) entries() int {
	b.t.Helper()
	var n int
	if err := b.db.QueryRowContext(b.t.Context(), "SELECT count(*) FROM ledger").Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// enter writes to the ledger and returns a result.
func enter(result string) func(context.Context, *sql.Tx) ([]byte, error) {
	return func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO ledger VALUES ('x')")
		return []byte(result), err
	}
}

func (b *bench) once(key, args string, do func(context.Context, *sql.Tx) ([]byte, error)) (res effects.Result, err error) {
	err = b.tx(func(tx *sql.Tx) (err error) {
		res, err = b.Once(b.t.Context(), tx, key, []byte(args), effects.InTransaction, do)
		return err
	})
	return res, err
}

func TestOnceKeepsTheFirstResult(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.ledger()
		for i, want := range []bool{false, true, true} {
			res, err := b.once("k", `{"a":1, "b":2}`, enter(fmt.Sprint("result ", i)))
			if err != nil || string(res.Value) != "result 0" || res.Replayed != want {
				t.Fatalf("run %d: %q, %v, %v", i, res.Value, res.Replayed, err)
			}
		}
		if res, err := b.once("k", `{"b":2,"a":1}`, enter("")); err != nil || !res.Replayed {
			t.Errorf("the same arguments in another order: %+v, %v", res, err)
		}
		if res, err := b.once("k", "", enter("")); err != nil || !res.Replayed {
			t.Errorf("without arguments: %+v, %v", res, err)
		}
		_, err := b.once("k", `{"a":2}`, enter(""))
		wantError(t, err, effects.ErrConflict)
		if n := b.entries(); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
		for range 2 { // an empty result is kept as well
			if res, err := b.once("empty", "", enter("")); err != nil || len(res.Value) != 0 {
				t.Errorf("%+v, %v", res, err)
			}
		}
		b.records.want(t, 5)
	})
}

func TestOnceFreesTheKeyOfWhatFailed(t *testing.T) {
	boom := errors.New("boom")
	failing := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, _ = enter("")(ctx, tx)
		return nil, boom
	}
	broken := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		_, _ = enter("")(ctx, tx)
		_, err := tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)")
		return nil, err
	}
	onBench(t, func(t *testing.T, b *bench) {
		b.ledger()
		err := b.tx(func(tx *sql.Tx) error {
			_, err := b.Once(t.Context(), tx, "a", nil, effects.InTransaction, failing)
			wantError(t, err, boom)
			if _, err := b.Once(t.Context(), tx, "a", nil, effects.InTransaction, broken); err == nil {
				t.Error("an SQL error was swallowed")
			}
			_, err = b.Once(t.Context(), tx, "b", nil, effects.InTransaction, enter("")) // tx may be used further
			return err
		})
		if err != nil || b.entries() != 1 {
			t.Fatalf("%v, %d effects, want that of b", err, b.entries())
		}
		if res, err := b.once("a", "", enter("")); err != nil || res.Replayed || b.entries() != 2 {
			t.Errorf("the key of what failed: %+v, %v", res, err)
		}
		rolledBack := errors.New("rolled back")
		wantError(t, b.tx(func(tx *sql.Tx) error {
			_, err := b.Once(t.Context(), tx, "c", nil, effects.InTransaction, enter(""))
			return errors.Join(err, rolledBack)
		}), rolledBack)
		if res, err := b.once("c", "", enter("")); err != nil || res.Replayed || b.entries() != 3 {
			t.Errorf("after a rollback: %+v, %v", res, err)
		}
		if err := b.tx(func(tx *sql.Tx) error {
			_, err := b.Once(t.Context(), tx, "d", nil, effects.InTransaction, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
				_, err := b.Once(ctx, tx, "e", nil, effects.InTransaction, enter(""))
				return nil, err
			})
			return err
		}); err != nil || b.entries() != 4 {
			t.Errorf("one within another: %v", err)
		}
		if _, err := b.once("f", "", func(_ context.Context, tx *sql.Tx) ([]byte, error) { return nil, tx.Rollback() }); err == nil || !strings.Contains(err.Error(), "must not end") {
			t.Errorf("a function that ends the transaction: %v", err)
		}
	})
}

func TestOnceAmongMany(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.ledger()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if res, err := b.once("k", "", enter("the one")); err != nil || string(res.Value) != "the one" {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
		wg.Wait()
		if n := b.entries(); n != 1 {
			t.Errorf("%d effects, want 1", n)
		}
		b.records.want(t, 63)
	})
}

// TestOnceReportsAKeyInFlight: past lock_timeout or busy_timeout.
func TestOnceReportsAKeyInFlight(t *testing.T) {
	onEach(t, func(t *testing.T, s source) {
		impatient := s
		if s.Dialect == effects.SQLite {
			impatient.DSN = strings.Replace(s.DSN, "120000", "1", 1)
		} else {
			impatient.DSN += "&lock_timeout=1"
		}
		b, other := newBench(t, s), newBench(t, impatient)
		b.ledger()
		err := b.tx(func(tx *sql.Tx) error {
			if _, err := b.Once(t.Context(), tx, "k", nil, effects.InTransaction, enter("")); err != nil {
				return err
			}
			tx2, err := other.db.BeginTx(t.Context(), nil)
			if err != nil { // SQLite: another writer is in the way of the transaction itself
				return nil
			}
			defer tx2.Rollback()
			_, err = other.Once(t.Context(), tx2, "k", nil, effects.InTransaction, enter(""))
			wantError(t, err, effects.ErrInFlight)
			var e *effects.KeyError
			if !errors.As(err, &e) || e.Key != "k" {
				t.Errorf("%#v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := other.once("k", "", enter("")); err != nil || !res.Replayed {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestOnceReportsAKeyInFlightToADeferredTransaction(t *testing.T) {
	dsn := strings.Replace(sqliteDSN(t.TempDir()+"/test.db"), "_txlock=immediate", "_txlock=deferred", 1)
	dsn = strings.Replace(dsn, "120000", "1", 1)
	b := newBench(t, source{effects.SQLite, dsn})
	b.ledger()
	err := b.tx(func(tx *sql.Tx) error {
		if _, err := b.Once(t.Context(), tx, "k", nil, effects.InTransaction, enter("")); err != nil {
			return err
		}
		_, err := b.once("k", "", enter(""))
		wantError(t, err, effects.ErrInFlight)
		err = b.tx(func(tx *sql.Tx) error {
			_, err := b.Enqueue(t.Context(), tx, effects.Message{Key: "k", Topic: "t"})
			return err
		})
		wantError(t, err, effects.ErrInFlight)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOnceRefuses(t *testing.T) {
	b := newBench(t, source{effects.SQLite, sqliteDSN(t.TempDir() + "/test.db")})
	for name, c := range map[string]struct {
		key  string
		may  effects.Permission
		want string
	}{
		"no permission":      {"k", 0, "no fitting retry permission is declared"},
		"never":              {"k", effects.Never, "see Do"},
		"after lookup":       {"k", effects.AfterLookup, "see Do"},
		"unknown permission": {"k", 99, "unknown(99)"},
		"no key":             {"", effects.InTransaction, "empty"},
		"long key":           {strings.Repeat("k", 256), effects.InTransaction, "256 bytes"},
		"control character":  {"a\x00b", effects.InTransaction, "control character"},
		"not UTF-8":          {"a\xff", effects.InTransaction, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			err := b.tx(func(tx *sql.Tx) error {
				_, err := b.Once(t.Context(), tx, c.key, nil, c.may, func(context.Context, *sql.Tx) ([]byte, error) {
					t.Error("it ran")
					return nil, nil
				})
				return err
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestReplayedRecord: every field that can be known, and the operation that had the effect.
func TestReplayedRecord(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.ledger()
		_, err := b.once("k", `{"a":1}`, enter(""))
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Hour)
		for range 2 {
			if _, err := b.once("k", `{"a":1}`, enter("")); err != nil {
				t.Fatal(err)
			}
		}
		all := b.records.want(t, 2)
		a := all[0]
		if a.Tenant != "acme" || a.Service != "billing" || a.Provider != "effects" || a.IdempotencyKey != "k" || !strings.HasPrefix(a.Fingerprint, "sha256:") {
			t.Errorf("%+v", a)
		}
		if a.Cause != retrylens.CauseRedelivery || a.Attempt < 100 || a.Position() != 0 || a.UpstreamCalls != retrylens.Some[uint16](0) ||
			a.Delivery != retrylens.DeliveryFull || a.Final != retrylens.Some(true) || a.StopReason != retrylens.StopDelivered {
			t.Errorf("%+v", a)
		}
		if started := b.clock.Now().Add(-time.Hour); !a.OperationStartedAt.Equal(started) || !a.StartedAt.Equal(b.clock.Now()) {
			t.Errorf("started at %v, the operation at %v", a.StartedAt, a.OperationStartedAt)
		}
		if all[1].LogicalID != a.LogicalID || all[1].Attempt == a.Attempt {
			t.Errorf("two repeats of one operation: %s/%d, %s/%d", a.LogicalID, a.Attempt, all[1].LogicalID, all[1].Attempt)
		}
	})
}

// TestReplayedRecordOfAnOperation: one in the context under the same key is the operation,
// also for the function, and gives the records their numbers.
func TestReplayedRecordOfAnOperation(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		for i, ctx := range []context.Context{
			op.With(t.Context(), op.Operation{ID: "op-1", Key: "k", Name: "invoice", Attributes: map[string]string{"a": "b"}}),
			op.With(t.Context(), op.Operation{ID: "op-1", Key: "k", Name: "invoice", Attributes: map[string]string{"a": "b"}, Deliveries: 2, StartedAt: b.clock.Now()}),
			op.With(t.Context(), op.Operation{ID: "of somebody else", Key: "other"}),
		} {
			err := b.tx(func(tx *sql.Tx) error {
				_, err := b.Once(ctx, tx, "k", nil, effects.Keyed, func(inner context.Context, _ *sql.Tx) ([]byte, error) {
					if h := op.From(inner); i > 0 || h != op.From(ctx) {
						t.Errorf("run %d has the operation %+v", i, h)
					}
					return nil, nil
				})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		all := b.records.want(t, 2)
		if a := all[0]; a.LogicalID != "op-1" || a.Attempt != 200 || a.Cause != retrylens.CauseRedelivery || a.Operation != "invoice" || a.Attributes["a"] != "b" {
			t.Errorf("%+v", a)
		}
		if a := all[1]; a.LogicalID != "op-1" || a.Attempt < 100 || a.Operation != "" {
			t.Errorf("%+v", a)
		}
		err := b.tx(func(tx *sql.Tx) error {
			_, err := b.Once(t.Context(), tx, "made", nil, effects.Keyed, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
				if o := op.From(ctx).Operation(); o.Key != "made" || o.Service != "billing" || o.Tenant != "acme" {
					t.Errorf("%+v", o)
				}
				return nil, nil
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestOnceAtAHigherIsolation: a key that another transaction committed after this one's
// snapshot is an error that says to try again, not a second effect and not an endless loop.
func TestOnceAtAHigherIsolation(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			b := newBench(t, source{effects.PostgreSQL, postgres(t).create(t)})
			b.ledger()
			tx, err := b.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback()
			var n int
			if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM ledger").Scan(&n); err != nil { // takes the snapshot
				t.Fatal(err)
			}
			if _, err := b.once("k", "", enter("")); err != nil {
				t.Fatal(err)
			}
			_, err = b.Once(t.Context(), tx, "k", nil, effects.InTransaction, enter(""))
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != "40001" {
				t.Errorf("%v, want a serialization failure", err)
			}
		})
	}
}
