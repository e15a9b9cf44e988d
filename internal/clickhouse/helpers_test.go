package clickhouse_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }

var databases atomic.Int64

// config is that of a database of the test's own on an engine.
func config(tb testing.TB, e *engine.Client, database string) clickhouse.Config {
	tb.Helper()
	at, err := e.Endpoint(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: at.TCPAddr, Path: "/" + database}
	return clickhouse.Config{URL: u.String(), Dial: func(ctx context.Context) (net.Conn, error) { return e.DialTCP(ctx) }}
}

// newStore is a migrated store in a database of its own.
func newStore(tb testing.TB) *clickhouse.Store {
	tb.Helper()
	return openStore(tb, config(tb, enginetest.Shared(tb), fmt.Sprintf("retrylens_%d", databases.Add(1))))
}

func openStore(tb testing.TB, c clickhouse.Config) *clickhouse.Store {
	tb.Helper()
	s, err := clickhouse.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	if _, err := s.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// folder runs cases of internal/metrics on ClickHouse, each on an emptied store.
type folder struct{ store *clickhouse.Store }

func (f folder) Fold(ctx context.Context, attempts []retrylens.Attempt, q metrics.Query) (*metrics.Report, error) {
	if err := f.store.Empty(ctx); err != nil {
		return nil, err
	}
	if err := f.store.Write(ctx, attempts); err != nil {
		return nil, err
	}
	return f.store.Report(ctx, q)
}

// splitWords splits at everything that separates words of SQL or of an address.
func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \n:@/,;", r) })
}
