package ingestd

import (
	"fmt"
	"testing"
	"time"
)

func TestTenantLimits(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	l := newTenantLimiter(TenantLimits{RecordsPerSecond: 10, BytesPerSecond: 1000}, 100, 50_000)
	take := func(records, bytes int) time.Duration {
		return l.take(now, map[string]*usage{"acme": {records, bytes}})
	}
	if wait := take(100, 50_000); wait != 0 {
		t.Errorf("a whole body at once: wait %v", wait)
	}
	if wait := take(20, 1); wait != 2*time.Second {
		t.Errorf("20 records: wait %v", wait)
	}
	if wait := take(1, 5000); wait != 5*time.Second {
		t.Errorf("5000 bytes: wait %v", wait)
	}
	now = now.Add(2 * time.Second)
	if wait := take(20, 1000); wait != 0 {
		t.Errorf("after 2 s: wait %v", wait)
	}
	// A body of two tenants is charged to both or to none.
	both := map[string]*usage{"acme": {1, 1}, "globex": {100, 1}}
	if wait := l.take(now, both); wait == 0 {
		t.Error("acme has nothing left")
	}
	if wait := l.take(now, map[string]*usage{"globex": {100, 1}}); wait != 0 {
		t.Errorf("globex was charged: wait %v", wait)
	}
}

// However many tenants there are, in one body or over time, what is remembered is
// bounded and nobody is charged for others.
func TestManyTenants(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	l := newTenantLimiter(TenantLimits{RecordsPerSecond: 0.001}, 10, 10)
	for round := range 5 {
		body := map[string]*usage{}
		for i := range manyTenants + 2000 {
			body[fmt.Sprint(round, "-", i)] = &usage{1, 1}
		}
		if wait := l.take(now, body); wait != 0 {
			t.Fatalf("round %d: wait %v", round, wait)
		}
		if n := len(l.young) + len(l.old); n > 2*manyTenants {
			t.Fatalf("%d are remembered", n)
		}
	}
}

// Who sends again and again is not forgotten for the sake of others.
func TestABusyTenantIsRemembered(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	l := newTenantLimiter(TenantLimits{RecordsPerSecond: 0.001}, 100, 100)
	l.take(now, map[string]*usage{"busy": {99, 1}})
	for i := range 3 * manyTenants {
		l.take(now, map[string]*usage{fmt.Sprint(i): {1, 1}})
		if i%1000 == 0 && l.wait(now, "busy") != 0 {
			t.Fatal("charged by asking")
		}
	}
	if l.take(now, map[string]*usage{"busy": {2, 1}}) == 0 {
		t.Error("forgotten")
	}
}

// One body as large as a body may be always passes a full bucket.
func TestAWholeBurstPasses(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	l := newTenantLimiter(TenantLimits{RecordsPerSecond: 5}, 50_000, 1000)
	if l.wait(now, "acme") != 0 || l.take(now, map[string]*usage{"acme": {50_000, 1000}}) != 0 {
		t.Error("refused")
	}
}
