package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/effects"
)

// contentious are databases that undo what others are in the way of: PostgreSQL at each
// isolation level by default, SQLite that waits for nobody.
func contentious(t *testing.T, test func(t *testing.T, s source)) {
	for _, level := range []string{"serializable", "repeatable read", "read committed"} {
		t.Run("postgresql, "+level, func(t *testing.T) {
			test(t, source{effects.PostgreSQL, postgres(t).create(t) + "&default_transaction_isolation=" + url.PathEscape(level)})
		})
	}
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		newBench(t, source{effects.SQLite, sqliteDSN(path)}) // the switch to WAL waits for nobody
		test(t, source{effects.SQLite, "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(20)&_pragma=synchronous(NORMAL)"})
	})
}

// TestContention: many processes drain, reconcile, call, enqueue and migrate at once on databases that
// undo statements because of each other. Each effect happens once, and what fails says by name
// that it may be tried again.
func TestContention(t *testing.T) {
	contentious(t, func(t *testing.T, s source) {
		b := newBench(t, s)
		const workers, each = 16, 12
		var sent, called sync.Map
		count := func(m *sync.Map, key string) {
			n, _ := m.LoadOrStore(key, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
		tool := effects.Tool{Name: "pay", Retry: effects.Keyed, Call: func(_ context.Context, c effects.Call) ([]byte, error) {
			count(&called, c.Key)
			return []byte("paid"), nil
		}}
		handlers := map[string]effects.Handler{"mail": {Retry: effects.Keyed, Dispatch: func(_ context.Context, m effects.Message) error {
			count(&sent, m.Key)
			return nil
		}}}
		var wg sync.WaitGroup
		for w := range workers {
			store := b.another(effects.Options{Clock: clock.Real()})
			wg.Go(func() {
				b.patiently(func() error { return effects.Migrate(t.Context(), b.db, s.Dialect) })
				for i := range each {
					key := fmt.Sprint(w%4, "-", i) // four workers want the same
					b.patiently(func() error {
						return b.tx(func(tx *sql.Tx) error {
							_, err := store.Enqueue(t.Context(), tx, effects.Message{Key: key, Topic: "mail"})
							return err
						})
					})
					b.patiently(func() error {
						_, err := store.Do(t.Context(), tool, key, nil)
						return err
					})
					b.patiently(func() error {
						_, err := store.Drain(t.Context(), effects.DrainOptions{Handlers: handlers, Workers: 2})
						return err
					})
					b.patiently(func() error {
						_, err := store.Reconcile(t.Context(), effects.ReconcileOptions{Tools: []effects.Tool{tool}})
						return err
					})
				}
			})
		}
		wg.Wait()
		for name, m := range map[string]*sync.Map{"sent": &sent, "called": &called} {
			keys := 0
			m.Range(func(key, n any) bool {
				if keys++; n.(*atomic.Int64).Load() != 1 {
					t.Errorf("%s under %v: %d times", name, key, n.(*atomic.Int64).Load())
				}
				return true
			})
			if keys != 4*each {
				t.Errorf("%d keys were %s, want %d", keys, name, 4*each)
			}
		}
		if st := b.stats(); st.Ready != 0 || st.Done != 4*each || st.Pending != 0 || st.Committed != 4*each {
			t.Errorf("%+v", st)
		}
	})
}

// patiently tries again what says that it may be.
func (b *bench) patiently(do func() error) {
	b.t.Helper()
	for {
		switch err := do(); {
		case err == nil:
			return
		case errors.Is(err, effects.ErrContended), errors.Is(err, effects.ErrInFlight), commitFailed(err):
		default:
			b.t.Error(err)
			return
		}
	}
}

// commitFailed tells of a transaction of the test's own that could not begin or commit.
func commitFailed(err error) bool {
	var state interface{ SQLState() string }
	var code interface{ Code() int }
	return errors.As(err, &state) && state.SQLState() == "40001" || errors.As(err, &code) && code.Code()&0xff == 5
}

// TestContentionHasAnEnd: a writer that stays costs a statement some tries, no more, and the error has its name.
func TestContentionHasAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	newBench(t, source{effects.SQLite, sqliteDSN(path)})
	b := newBench(t, source{effects.SQLite, "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(1)"})
	err := b.tx(func(*sql.Tx) error {
		_, err := b.Do(t.Context(), effects.Tool{Name: "pay", Retry: effects.Keyed, Call: func(context.Context, effects.Call) ([]byte, error) {
			t.Error("called, though that could not be written down")
			return nil, nil
		}}, "key", nil)
		return err
	})
	wantError(t, err, effects.ErrContended)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err = b.tx(func(*sql.Tx) error {
		_, err := b.Drain(ctx, effects.DrainOptions{Handlers: map[string]effects.Handler{"mail": {Retry: effects.Keyed, Dispatch: func(context.Context, effects.Message) error { return nil }}}})
		return err
	})
	if err == nil {
		t.Error("a drain of a database that is held and of a caller that has left has succeeded")
	}
}

// TestContentionOfTheCallers: in the caller's own transaction nothing is tried again; the
// error says that the whole of it may be.
func TestContentionOfTheCallers(t *testing.T) {
	b := newBench(t, source{effects.PostgreSQL, postgres(t).create(t) + "&default_transaction_isolation=serializable"})
	first, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.ExecContext(t.Context(), "SELECT count(*) FROM retrylens_once"); err != nil { // its snapshot is from now
		t.Fatal(err)
	}
	none := func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil }
	if _, err := b.Once(t.Context(), first, "key", nil, effects.InTransaction, none); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	_, err = b.Once(t.Context(), second, "key", nil, effects.InTransaction, none)
	wantError(t, err, effects.ErrContended)
	if err := second.Rollback(); err != nil {
		t.Error(err)
	}
}
