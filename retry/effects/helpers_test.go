package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/emit"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(workerEnv); config != "" {
		os.Exit(work(config))
	}
	code := m.Run()
	if shared.c != nil {
		shared.c.stop()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// source is an empty database that several processes can open.
type source struct {
	Dialect effects.Dialect
	DSN     string
}

func (s source) open() (*sql.DB, error) {
	driver := "pgx"
	if s.Dialect == effects.SQLite {
		driver = "sqlite"
	}
	db, err := sql.Open(driver, s.DSN)
	if err == nil {
		db.SetMaxOpenConns(10)
		db.SetMaxIdleConns(10)
	}
	return db, err
}

// sqliteDSN of a file that many connections write to. WAL without a sync per commit loses
// nothing when a process is killed.
func sqliteDSN(path string) string {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(120000)", "journal_mode(WAL)", "synchronous(NORMAL)"}}
	return "file:" + path + "?" + q.Encode()
}

// onEach runs the test on an empty database of each kind.
func onEach(t *testing.T, test func(t *testing.T, s source)) {
	t.Run("postgresql", func(t *testing.T) { test(t, source{effects.PostgreSQL, postgres(t).create(t)}) })
	t.Run("sqlite", func(t *testing.T) {
		test(t, source{effects.SQLite, sqliteDSN(filepath.Join(t.TempDir(), "test.db"))})
	})
}

// bench is a store on a migrated database with a clock that stands.
type bench struct {
	*effects.Store
	t       *testing.T
	db      *sql.DB
	source  source
	clock   *clock.Fake
	records *recorder
}

const lease = 30 * time.Second

func newBench(t *testing.T, s source) *bench {
	t.Helper()
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := effects.Migrate(t.Context(), db, s.Dialect); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: db, source: s, clock: clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), records: &recorder{}}
	b.Store = b.another(effects.Options{})
	return b
}

// another store on the same database, as of another process.
func (b *bench) another(o effects.Options) *effects.Store {
	b.t.Helper()
	o.DB, o.Dialect, o.Lease = b.db, b.source.Dialect, lease
	if o.Clock == nil {
		o.Clock = b.clock
	}
	if o.Records == nil {
		o.Records = b.records
	}
	o.Tenant, o.Service = "acme", "billing"
	s, err := effects.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// onBench runs the test with a store on each kind of database.
func onBench(t *testing.T, test func(t *testing.T, b *bench)) {
	onEach(t, func(t *testing.T, s source) { test(t, newBench(t, s)) })
}

// tx runs do in a transaction and commits it unless do fails.
func (b *bench) tx(do func(tx *sql.Tx) error) error {
	return inTx(b.t.Context(), b.db, do)
}

func inTx(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (b *bench) stats() effects.Stats {
	b.t.Helper()
	s, err := b.Stats(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// recorder keeps records, each checked by the record's own rules.
type recorder struct {
	mu  sync.Mutex
	all []retrylens.Attempt
}

func (r *recorder) Emit(a *retrylens.Attempt, _ emit.Late) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *a)
}

// take returns what was recorded since the last take.
func (r *recorder) take(t *testing.T) []retrylens.Attempt {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	for i := range all {
		emit.Fit(&all[i])
		if err := emit.Check(&all[i]); err != nil {
			t.Errorf("record %+v: %v", all[i], err)
		}
		if all[i].Outcome != retrylens.OutcomeReplayed {
			t.Errorf("a record with outcome %s", all[i].Outcome)
		}
	}
	return all
}

// wantReplays takes the records and compares their number.
func (r *recorder) want(t *testing.T, n int) []retrylens.Attempt {
	t.Helper()
	all := r.take(t)
	if len(all) != n {
		t.Fatalf("%d records of suppressed repeats, want %d: %+v", len(all), n, all)
	}
	return all
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}
