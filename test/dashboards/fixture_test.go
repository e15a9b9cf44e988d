package dashboards

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/wire"
)

// asOf of the golden attempts.
var asOf = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

var midnight = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// hostileNames are what a sender may call a provider, and a link a variable.
var hostileNames = []string{
	`it's`, `ends\`, `\' OR 1 = 1 --`, `'; DROP TABLE x --`, `a"b`, "a.c", "abc", ".*", "(x|y)", "[a]", "{a}", "a b+c", "%27", "$__all", "${tenant}", "日本\u202e", "`tick", "&var-model=x", "line\nbreak",
}

// fixture is a store of golden attempts, and some of hostile names, with its rollups.
type fixture struct {
	attempts []retrylens.Attempt
	store    *clickhouse.Store
	viewer   driver.Conn
	folded   map[string]*metrics.Report
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	e := enginetest.Start(t)
	f := &fixture{attempts: append(golden(t), hostileAttempts()...), folded: map[string]*metrics.Report{}}
	at, err := e.Endpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.store, err = clickhouse.Open(t.Context(), clickhouse.Config{URL: address(at), Dial: e.DialTCP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.store.Close() })
	if _, err := f.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	// In two passes, so that most buckets were computed twice.
	for _, part := range [][]retrylens.Attempt{f.attempts[:len(f.attempts)/2], f.attempts[len(f.attempts)/2:]} {
		if err := f.store.Write(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Finalise(t.Context(), clickhouse.FinaliseOptions{AsOf: asOf}); err != nil {
			t.Fatal(err)
		}
	}
	f.say(t)
	f.viewer = viewer(t, e)
	return f
}

// say has an ingest service and an alert in the store.
func (f *fixture) say(t *testing.T) {
	t.Helper()
	now := time.Now()
	err := f.store.WriteIngestStatus(t.Context(), clickhouse.IngestStatus{Node: "n1", StartedAt: now.Add(-time.Hour), At: now, RejectedLines: 3, DeadLetters: 1, SpoolBytes: 4096, SpoolAgeMS: 1500})
	if err != nil {
		t.Fatal(err)
	}
	err = f.store.SaveAlerts(t.Context(), []clickhouse.AlertRow{{Rule: "AmplificationHigh", GroupKey: "k", ActiveAt: midnight.Add(time.Hour), Status: "firing", Severity: "page", Body: "{}"}})
	if err != nil {
		t.Fatal(err)
	}
}

func address(at engine.Endpoint) string {
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/" + at.Database}
	return u.String()
}

// viewer connects as the data source does: the native protocol, the user that may only read.
func viewer(t *testing.T, e *engine.Client) driver.Conn {
	t.Helper()
	at, err := e.ViewerEndpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := driver.Open(&driver.Options{
		Addr: []string{at.TCPAddr}, Auth: driver.Auth{Database: at.Database, Username: at.User, Password: at.Password},
		DialContext: func(ctx context.Context, _ string) (net.Conn, error) { return e.DialTCP(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func golden(t *testing.T) []retrylens.Attempt {
	t.Helper()
	data, err := os.ReadFile("../../internal/metrics/testdata/golden/attempts.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	var out []retrylens.Attempt
	var d wire.Decoder
	for line := range bytes.Lines(bytes.TrimSpace(data)) {
		var a retrylens.Attempt
		if err := d.Decode(bytes.TrimSpace(line), &a); err != nil {
			t.Fatal(err)
		}
		a.Normalize()
		out = append(out, a)
	}
	return out
}

// hostileAttempts are two attempts of an operation for each hostile name, the second at another
// provider: an error of a cost, then a success.
func hostileAttempts() []retrylens.Attempt {
	var out []retrylens.Attempt
	for i, name := range hostileNames {
		start := midnight.Add(90*time.Minute + time.Duration(i)*time.Second)
		for n := range 2 {
			a := retrylens.Attempt{
				Tenant: "strange", LogicalID: fmt.Sprint("strange-", i), OperationStartedAt: start, Attempt: int32(n), Provider: name, Model: name, Service: name,
				StartedAt: start.Add(time.Duration(n) * time.Second), DurationMS: retrylens.Some(int64(700)), Outcome: retrylens.OutcomeSuccess,
				PromptTokens: retrylens.Some(int64(10)), CostUSD: retrylens.Some(retrylens.PicoUSD(1e9)),
			}
			if n == 0 {
				a.Outcome, a.ErrorClass = retrylens.OutcomeError, retrylens.ClassTimeout
			} else {
				a.Cause, a.Provider = retrylens.CausePolicy, "rescuer"
			}
			a.Normalize()
			out = append(out, a)
		}
	}
	return out
}

// fold is the reference for a question, kept for the next panel that asks the same.
func (f *fixture) fold(t *testing.T, q metrics.Query) *metrics.Report {
	t.Helper()
	key := fmt.Sprintf("%v", q)
	if r, ok := f.folded[key]; ok {
		return r
	}
	r, err := metrics.Fold(f.attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	f.folded[key] = r
	return r
}

// answer is what a query gives.
type answer struct {
	columns []string
	rows    [][]any
}

func (f *fixture) ask(ctx context.Context, sql string) (answer, error) {
	rows, err := f.viewer.Query(ctx, sql)
	if err != nil {
		return answer{}, fmt.Errorf("%w\n%s", err, sql)
	}
	defer rows.Close()
	a := answer{columns: rows.Columns()}
	for rows.Next() {
		to := make([]any, len(a.columns))
		for i, c := range rows.ColumnTypes() {
			to[i] = reflect.New(c.ScanType()).Interface()
		}
		if err := rows.Scan(to...); err != nil {
			return a, err
		}
		for i := range to {
			to[i] = reflect.ValueOf(to[i]).Elem().Interface()
		}
		a.rows = append(a.rows, to)
	}
	if err := rows.Err(); err != nil {
		return a, fmt.Errorf("%w\n%s", err, sql)
	}
	return a, nil
}

// numberOf is a cell as a number; false = NULL.
func numberOf(v any) (float64, bool) {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return 0, false
		}
		r = r.Elem()
	}
	if d, ok := r.Interface().(decimal.Decimal); ok {
		return d.InexactFloat64(), true
	}
	switch {
	case r.CanInt():
		return float64(r.Int()), true
	case r.CanUint():
		return float64(r.Uint()), true
	}
	return r.Float(), true
}
