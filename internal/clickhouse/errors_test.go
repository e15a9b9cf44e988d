package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

func TestErrorsAreToldApart(t *testing.T) {
	code := func(n int32, text string) error {
		return fmt.Errorf("clickhouse: insert 3 attempts: %w", &driver.Exception{Code: n, Message: text})
	}
	overHTTP := func(n int, text string) error {
		return fmt.Errorf("[HTTP 500] response body: \"Code: %d. DB::Exception: %s\"", n, text)
	}
	for _, c := range []struct {
		err  error
		want clickhouse.Kind
	}{
		{io.EOF, clickhouse.KindRetry},
		{context.DeadlineExceeded, clickhouse.KindRetry},
		{errors.New("read: connection reset by peer"), clickhouse.KindRetry},
		{code(241, "Memory limit (total) exceeded"), clickhouse.KindRetry},
		{code(252, "Too many parts (3000 with average size of 1 MiB) in table"), clickhouse.KindRetry},
		{code(252, "Too many partitions for single INSERT block (more than 100)"), clickhouse.KindSplit},
		{overHTTP(252, "Too many partitions for single INSERT block (more than 100)"), clickhouse.KindSplit},
		{overHTTP(252, "Too many parts"), clickhouse.KindRetry},
		{code(242, "Table is in readonly mode (replica path: /x)"), clickhouse.KindRetry},
		{code(999, "Coordination error: Session expired"), clickhouse.KindRetry},
		{code(202, "Too many simultaneous queries"), clickhouse.KindRetry},
		{code(745, "CPU is overloaded"), clickhouse.KindRetry},
		{code(243, "Cannot reserve 1.00 MiB, not enough space"), clickhouse.KindRetry},
		{code(319, "Unknown quorum status"), clickhouse.KindRetry},
		{code(4711, "never heard of"), clickhouse.KindRetry},
		{code(469, "Constraint `c` for table t is violated"), clickhouse.KindData},
		{code(53, "Type mismatch"), clickhouse.KindData},
		{&column.ColumnConverterError{Op: "Append", To: "UInt8"}, clickhouse.KindData},
		{code(516, "retrylens: Authentication failed"), clickhouse.KindFatal},
		{code(60, "Table retrylens.attempts does not exist"), clickhouse.KindFatal},
		{code(81, "Database retrylens does not exist"), clickhouse.KindFatal},
		{overHTTP(497, "Not enough privileges"), clickhouse.KindFatal},
		{&driver.Exception{Code: 279, Message: "All connection tries failed", Nested: []driver.Exception{{Code: 516, Message: "Authentication failed"}}}, clickhouse.KindFatal},
	} {
		if got := clickhouse.Classify(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// What a real engine says.
func TestErrorsOfAnEngine(t *testing.T) {
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	good := retrylens.Attempt{Tenant: "acme", LogicalID: "op", Provider: "p", StartedAt: at, Outcome: retrylens.OutcomeSuccess}
	good.Normalize()
	bad := good
	bad.Provider = "forbidden"
	s := newStore(t)
	exec := func(q string) {
		t.Helper()
		if err := s.Exec(t.Context(), strings.ReplaceAll(q, "DB", s.Database())); err != nil {
			t.Fatal(err)
		}
	}
	kind := func(a retrylens.Attempt, want clickhouse.Kind) {
		t.Helper()
		err := s.Write(t.Context(), []retrylens.Attempt{a})
		if err == nil || clickhouse.Classify(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	exec("ALTER TABLE DB.attempts ADD CONSTRAINT c CHECK provider != 'forbidden'")
	kind(bad, clickhouse.KindData)
	if err := s.Write(t.Context(), []retrylens.Attempt{good}); err != nil {
		t.Fatal(err)
	}
	exec("ALTER TABLE DB.attempts DROP CONSTRAINT c")
	exec("ALTER TABLE DB.attempts MODIFY SETTING parts_to_throw_insert = 1, parts_to_delay_insert = 1")
	kind(good, clickhouse.KindRetry)
	exec("DROP TABLE DB.emitter_seqs_of_attempts")
	exec("DROP TABLE DB.attempts")
	kind(good, clickhouse.KindFatal)
}

func TestALoginThatIsWrong(t *testing.T) {
	c := config(t, enginetest.Shared(t), "retrylens_login")
	c.URL = strings.Replace(c.URL, ":", ":x", 2)
	c.URL = strings.Replace(c.URL, "clickhouse:x//", "clickhouse://", 1)
	_, err := clickhouse.Open(t.Context(), c)
	if err == nil || clickhouse.Classify(err) != clickhouse.KindFatal {
		t.Errorf("%v", err)
	}
}
