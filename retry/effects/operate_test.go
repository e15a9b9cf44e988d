package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
)

func TestMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, s source) {
		db, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.PingContext(t.Context()); err != nil { // SQLite waits for nobody when it makes a new file a WAL one
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := effects.Migrate(t.Context(), db, s.Dialect); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := db.ExecContext(t.Context(), effects.Schema(s.Dialect)); err != nil {
			t.Errorf("the schema over itself: %v", err)
		}
		if _, err := db.ExecContext(t.Context(), "UPDATE retrylens_effects_schema SET version = 99"); err != nil {
			t.Fatal(err)
		}
		err = effects.Migrate(t.Context(), db, s.Dialect)
		if err == nil || !strings.Contains(err.Error(), "version 99") {
			t.Errorf("a later schema: %v", err)
		}
		if err := effects.Migrate(t.Context(), db, 0); err == nil || effects.Schema(0) != "" {
			t.Errorf("no dialect: %v", err)
		}
	})
}

// TestMigrateANewFile: processes that open and migrate a new SQLite file at once, with WAL or
// without, do not get into each other's way.
func TestMigrateANewFile(t *testing.T) {
	for _, options := range []string{"?_pragma=busy_timeout(10000)", "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"} {
		path := filepath.Join(t.TempDir(), "new.db")
		var wg sync.WaitGroup
		for range 4 { // pools of their own, as processes have
			wg.Go(func() {
				db, err := sql.Open("sqlite", "file:"+path+options)
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if err := effects.Migrate(t.Context(), db, effects.SQLite); err != nil {
					t.Errorf("%q: %v", options, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestDatabaseClock: without a clock of its own a store uses the database's.
func TestDatabaseClock(t *testing.T) {
	onEach(t, func(t *testing.T, s source) {
		b := newBench(t, s)
		own, err := effects.New(effects.Options{DB: b.db, Dialect: s.Dialect})
		if err != nil {
			t.Fatal(err)
		}
		k := &bank{}
		before := time.Now().UnixMilli()
		if _, err := own.Do(t.Context(), k.tool(effects.Never), "k", nil); err != nil {
			t.Fatal(err)
		}
		var created, settled int64
		if err := b.db.QueryRowContext(t.Context(), "SELECT created_ms, settled_ms FROM retrylens_calls").Scan(&created, &settled); err != nil {
			t.Fatal(err)
		}
		if after := time.Now().UnixMilli(); created < before-1 || settled < created || settled > after+1 {
			t.Errorf("created %d, settled %d, want within %d..%d", created, settled, before, after)
		}
	})
}

func TestPrune(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k, a := &bank{}, &agent{fail: 3}
		nothing := func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil }
		_, err := b.once("once", "", nothing)
		if err != nil {
			t.Fatal(err)
		}
		b.mustEnqueue("sent")
		b.drain(mail((&mailbox{}).handler()), effects.Drained{Dispatched: 1})
		b.mustEnqueue("waiting")
		if _, err := b.do(k.tool(effects.Keyed)); err != nil {
			t.Fatal(err)
		}
		_, err = b.Run(t.Context(), "open", a.steps())
		wantError(t, err, effects.ErrUnknown)
		a.fail = 0
		if _, err := b.Run(t.Context(), "finished", a.steps()); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Hour)
		if n, err := b.Prune(t.Context(), time.Hour); err != nil || n != 0 {
			t.Errorf("pruned %d, %v, want nothing", n, err)
		}
		b.clock.Advance(time.Millisecond)
		if n, err := b.Prune(t.Context(), time.Hour); err != nil || n != 6 {
			t.Errorf("pruned %d, %v, want once, sent, k and the finished run's three", n, err)
		}
		if s := b.stats(); s.Ready != 1 || s.Pending != 1 || s.Committed != 2 {
			t.Errorf("left %+v", s)
		}
		if _, err := b.Prune(t.Context(), 0); err == nil {
			t.Error("pruned all")
		}
	})
}

// TestServe drains and reconciles round after round, and goes on after a failure.
func TestServe(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		k := &bank{}
		b.pend(k, k.tool(effects.AfterLookup), true)
		b.mustEnqueue("a")
		failed := make(chan error, 1)
		drain := mail((&mailbox{answer: func(effects.Message) error { return effects.Poison(errors.New("no")) }}).handler())
		o := effects.ServeOptions{Drain: &drain, Reconcile: &effects.ReconcileOptions{Tools: []effects.Tool{k.tool(effects.AfterLookup)}}, Every: time.Second,
			OnError: func(err error) { failed <- err }}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { done <- b.Serve(ctx, o) }()
		round := func() {
			t.Helper()
			if err := b.clock.BlockUntil(ctx, 1); err != nil {
				t.Fatal(err)
			}
		}
		round()
		for s := b.stats(); s.SetAside != 1 || s.Committed != 1; s = b.stats() {
			if ctx.Err() != nil {
				t.Fatalf("%+v", s)
			}
		}
		if _, err := b.db.ExecContext(ctx, "ALTER TABLE retrylens_outbox RENAME TO away"); err != nil {
			t.Fatal(err)
		}
		round()
		b.clock.Advance(time.Second)
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		round()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestServeRefuses(t *testing.T) {
	b := newBench(t, source{effects.SQLite, sqliteDSN(t.TempDir() + "/test.db")})
	drain := mail((&mailbox{}).handler())
	for want, o := range map[string]effects.ServeOptions{
		"neither":  {OnError: func(error) {}},
		"OnError":  {Drain: &drain},
		"negative": {Drain: &drain, OnError: func(error) {}, Every: -1},
	} {
		if err := b.Serve(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for want, o := range map[string]effects.Options{
		"Options.DB is missing":   {Dialect: effects.SQLite},
		"give effects.PostgreSQL": {DB: db},
		"at least 1s":             {DB: db, Dialect: effects.SQLite, Lease: time.Millisecond},
	} {
		if _, err := effects.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		effects.PostgreSQL.String(): "postgresql", effects.SQLite.String(): "sqlite", effects.Dialect(7).String(): "unknown(7)",
		effects.Permission(0).String(): "undeclared", effects.Never.String(): "never", effects.Permission(9).String(): "unknown(9)",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
