package engine_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(openerEnv); dir != "" {
		os.Exit(opener(dir))
	}
	os.Exit(enginetest.Run(m))
}

// testContext ends before the test binary's own timeout would.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a pool that dials through c, as the owner.
func connect(t *testing.T, c *engine.Client) driver.Conn {
	t.Helper()
	ep, err := c.Endpoint(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return connectAs(t, c, ep)
}

func connectAs(t *testing.T, c *engine.Client, ep engine.Endpoint) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Addr:        []string{"engine:0"}, // not used: DialContext knows
		DialContext: dialer(c),
		Auth:        clickhouse.Auth{Database: ep.Database, Username: ep.User, Password: ep.Password},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// eventually polls until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen within 30 s: %s", what)
		}
	}
}

func scalar[T any](t *testing.T, conn driver.Conn, sql string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(testContext(t), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func exec(t *testing.T, conn driver.Conn, sql string) {
	t.Helper()
	if err := conn.Exec(testContext(t), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
