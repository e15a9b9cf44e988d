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

	mu         sync.Mutex
	young, old map[string]*buckets // see of
}

type buckets struct{ records, bytes *rate.Limiter }

// manyTenants is how many tenants make a generation; two are remembered. Who has
// sent nothing while so many others did is forgotten and begins with full buckets.
const manyTenants = 10_000

func newTenantLimiter(l TenantLimits, maxRecords int, maxBytes int64) *tenantLimiter {
	return &tenantLimiter{limits: l, burstRecords: maxRecords, burstBytes: int(maxBytes), young: map[string]*buckets{}}
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
	held, wait := t.look(now, body)
	if wait > 0 {
		return wait
	}
	for b, u := range held {
		b.records.AllowN(now, u.records)
		b.bytes.AllowN(now, u.bytes)
	}
	return 0
}

// wait is how long until a tenant may send anything, without charging it.
func (t *tenantLimiter) wait(now time.Time, tenant string) time.Duration {
	if t.off() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, wait := t.look(now, map[string]*usage{tenant: {1, 1}})
	return wait
}

// look finds the buckets of a body and how long it would have to wait.
func (t *tenantLimiter) look(now time.Time, body map[string]*usage) (map[*buckets]*usage, time.Duration) {
	wait := time.Duration(0)
	held := make(map[*buckets]*usage, len(body)) // whatever is forgotten meanwhile
	for tenant, u := range body {
		b := t.of(tenant)
		held[b] = u
		wait = max(wait, shortfall(b.records, now, u.records), shortfall(b.bytes, now, u.bytes))
	}
	return held, wait
}

// shortfall is how long until n tokens are there.
func shortfall(l *rate.Limiter, now time.Time, n int) time.Duration {
	missing := float64(n) - l.TokensAt(now)
	if l.Limit() == rate.Inf || missing <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(missing / float64(l.Limit()) * float64(time.Second)))
}

// of finds the buckets of a tenant, or makes full ones. A tenant that is met moves
// to the young generation; when that is full it becomes the old one, and the old
// one is forgotten: bounded, and of constant cost.
func (t *tenantLimiter) of(tenant string) *buckets {
	if b, ok := t.young[tenant]; ok {
		return b
	}
	b, ok := t.old[tenant]
	if !ok {
		b = &buckets{
			records: rate.NewLimiter(limit(t.limits.RecordsPerSecond), t.burstRecords),
			bytes:   rate.NewLimiter(limit(t.limits.BytesPerSecond), t.burstBytes),
		}
	}
	if len(t.young) >= manyTenants {
		t.young, t.old = map[string]*buckets{}, t.young
	}
	t.young[tenant] = b
	return b
}

func limit(perSecond float64) rate.Limit {
	if perSecond == 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}
