package clickhouse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/wire"
	"github.com/retrylens/retrylens/schema"
)

func open(tb testing.TB, c clickhouse.Config) *clickhouse.Store {
	tb.Helper()
	s, err := clickhouse.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestMigrateAppliesOnceAndSaysSo(t *testing.T) {
	s := open(t, config(t, enginetest.Shared(t), "retrylens_migrate"))
	if err := s.SchemaReady(t.Context()); !errors.Is(err, clickhouse.ErrSchemaMissing) {
		t.Fatalf("before: %v", err)
	}
	first, err := s.Migrate(t.Context())
	if err != nil || len(first) == 0 {
		t.Fatalf("first: %v, %v", first, err)
	}
	second, err := s.Migrate(t.Context())
	if err != nil || len(second) != 0 {
		t.Fatalf("second: %v, %v", second, err)
	}
	if err := s.SchemaReady(t.Context()); err != nil {
		t.Fatalf("after: %v", err)
	}
}

func TestMigrateFromSeveralProcessesAtOnce(t *testing.T) {
	e := enginetest.Shared(t)
	var wg sync.WaitGroup
	for range 4 {
		s := open(t, config(t, e, "retrylens_migrate_race"))
		wg.Go(func() {
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	s := openStore(t, config(t, enginetest.Shared(t), "retrylens_newer"))
	if err := s.Exec(t.Context(), "INSERT INTO retrylens_newer.schema_migrations (id, name) VALUES (9999, 'future')"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); !errors.Is(err, clickhouse.ErrSchemaNewer) {
		t.Fatalf("got %v", err)
	}
}

func TestMigrateChangesTheRetention(t *testing.T) {
	c := config(t, enginetest.Shared(t), "retrylens_retention")
	openStore(t, c)
	c.RetentionDays = 30
	s := openStore(t, c)
	for _, table := range []string{"attempts", "emitter_seqs"} {
		create, err := s.CreateQuery(t.Context(), table)
		if err != nil {
			t.Fatal(err)
		}
		if !containsDays(create, 30) {
			t.Errorf("%s: %s", table, create)
		}
	}
	// Whoever migrates without asking for a retention leaves it.
	c.RetentionDays = 0
	s = openStore(t, c)
	if got, err := s.Retention(t.Context()); err != nil || got != 30*24*time.Hour {
		t.Errorf("retention is %v, %v", got, err)
	}
}

func TestFactsOfAServer(t *testing.T) {
	s := newStore(t)
	if v, err := s.Version(t.Context()); err != nil || !strings.HasPrefix(v, "26.") {
		t.Errorf("version %q, %v", v, err)
	}
	if skew, err := s.Skew(t.Context(), time.Now); err != nil || skew.Abs() > time.Minute {
		t.Errorf("skew %v, %v", skew, err)
	}
	if free, err := s.FreeBytes(t.Context()); err != nil || free == 0 {
		t.Errorf("free %d, %v", free, err)
	}
	newest, err := clickhouse.NewestMigration()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.SchemaVersion(t.Context()); err != nil || v != newest {
		t.Errorf("schema %d, want %d, %v", v, newest, err)
	}
	if may, err := s.MayInsert(t.Context()); err != nil || !may {
		t.Errorf("may insert: %v, %v", may, err)
	}
	if got, err := s.Retention(t.Context()); err != nil || got != schema.DefaultRetentionDays*24*time.Hour {
		t.Errorf("retention %v, %v", got, err)
	}
}

func containsDays(create string, days int) bool {
	return slices.Contains(splitWords(create), fmt.Sprintf("toIntervalDay(%d)", days))
}

// The cluster rendering needs a Keeper to run; the real engine parses it.
func TestClusterRenderingParses(t *testing.T) {
	s := newStore(t)
	for _, o := range []schema.Options{{Database: "retrylens", Cluster: "main"}, {Database: "retrylens", Cluster: "main", EachNode: true}} {
		migrations, err := schema.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range migrations {
			for _, q := range m.Statements {
				if err := s.Parse(t.Context(), q); err != nil {
					t.Errorf("%s: %v\n%s", m.Name, err, q)
				}
			}
		}
	}
}

func TestTableNamesTheFieldsOfTheRecord(t *testing.T) {
	s := newStore(t)
	columns, err := s.ColumnNames(t.Context(), "attempts")
	if err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(wire.Fields), "version")
	slices.Sort(want)
	slices.Sort(columns)
	if !slices.Equal(columns, want) {
		t.Errorf("columns %v\nfields %v", columns, want)
	}
}

func TestUnreachableStore(t *testing.T) {
	_, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: "clickhouse://u:secret@127.0.0.1:1/db"})
	if !errors.Is(err, clickhouse.ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
	if s := err.Error(); slices.Contains(splitWords(s), "secret") {
		t.Errorf("the password is in the message: %s", s)
	}
}

// A TTL is a 32-bit time: beyond its end every row would count as expired.
func TestRowsSurviveTheLongestRetention(t *testing.T) {
	c := config(t, enginetest.Shared(t), "retrylens_forever")
	c.RetentionDays = schema.MaxRetentionDays
	s := openStore(t, c)
	attempts := histories.Generate(1, 50)
	if err := s.Write(t.Context(), attempts); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), "OPTIMIZE TABLE retrylens_forever.attempts FINAL"); err != nil {
		t.Fatal(err)
	}
	ops, err := s.LocalOperations(t.Context())
	if err != nil || len(ops) == 0 {
		t.Errorf("%d operations left, %v", len(ops), err)
	}
}
