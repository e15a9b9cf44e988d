package ingestd

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// TenantLimits are what one tenant may send on average; a burst is as much as
// one body may hold. 0 = no limit.
type TenantLimits struct {
	RecordsPerSecond float64
	BytesPerSecond   float64 // after decompression
}

// tenantLimiter holds every tenant to its limits.
type tenantLimiter struct {
	limits       TenantLimits
	burstRecords int
	burstBytes   int

	mu      sync.Mutex
	tenants map[string]*buckets
}

type buckets struct{ records, bytes *rate.Limiter }

// manyTenants is how many are remembered before those that sent nothing lately
// are forgotten: their buckets are full, which is what a new one is.
const manyTenants = 10_000

func newTenantLimiter(l TenantLimits, maxRecords int, maxBytes int64) *tenantLimiter {
	return &tenantLimiter{limits: l, burstRecords: maxRecords, burstBytes: int(maxBytes), tenants: map[string]*buckets{}}
}

func (t *tenantLimiter) off() bool { return t.limits == TenantLimits{} }

// usage is what a body holds of one tenant.
type usage struct {
	records int
	bytes   int
}

// take charges a body to its tenants, all or none, and tells how long to wait
// when one of them has sent too much.
func (t *tenantLimiter) take(now time.Time, body map[string]*usage) time.Duration {
	if t.off() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := time.Duration(0)
	for tenant, u := range body {
		b := t.of(now, tenant)
		wait = max(wait, shortfall(b.records, now, u.records), shortfall(b.bytes, now, u.bytes))
	}
	if wait > 0 {
		return wait
	}
	for tenant, u := range body {
		b := t.tenants[tenant]
		b.records.AllowN(now, u.records)
		b.bytes.AllowN(now, u.bytes)
	}
	return 0
}

// shortfall is how long until n tokens are there.
func shortfall(l *rate.Limiter, now time.Time, n int) time.Duration {
	missing := float64(n) - l.TokensAt(now)
	if l.Limit() == rate.Inf || missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(l.Limit()) * float64(time.Second)))
}

func (t *tenantLimiter) of(now time.Time, tenant string) *buckets {
	b, ok := t.tenants[tenant]
	if !ok {
		if len(t.tenants) >= manyTenants {
			t.forget(now)
		}
		b = &buckets{
			records: rate.NewLimiter(limit(t.limits.RecordsPerSecond), t.burstRecords),
			bytes:   rate.NewLimiter(limit(t.limits.BytesPerSecond), t.burstBytes),
		}
		t.tenants[tenant] = b
	}
	return b
}

func (t *tenantLimiter) forget(now time.Time) {
	for tenant, b := range t.tenants {
		if shortfall(b.records, now, t.burstRecords) == 0 && shortfall(b.bytes, now, t.burstBytes) == 0 {
			delete(t.tenants, tenant)
		}
	}
}

func limit(perSecond float64) rate.Limit {
	if perSecond == 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}
