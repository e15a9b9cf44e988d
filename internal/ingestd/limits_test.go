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

func TestTenantsThatAreSilentAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	l := newTenantLimiter(TenantLimits{RecordsPerSecond: 10}, 10, 10)
	for i := range manyTenants {
		l.take(now, map[string]*usage{fmt.Sprint(i): {1, 1}})
	}
	now = now.Add(time.Minute)
	l.take(now, map[string]*usage{"another": {1, 1}})
	if n := len(l.tenants); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}
