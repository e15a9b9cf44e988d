package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

const (
	memoEntries = 64
	memoRows    = 5000 // of a report that is kept
	memoAge     = time.Minute
	usualAge    = 15 * time.Minute // of what was usual: records and prices that come late may be missing
	exampleAge  = 15 * time.Minute // of an example
	pagesKept   = 32
)

// memo keeps answers for a while. Who asks what is being asked waits for that answer.
type memo[V any] struct {
	timeout time.Duration
	now     func() time.Time

	mu      sync.Mutex
	entries map[string]*kept[V]
}

type kept[V any] struct {
	at   time.Time
	done chan struct{}
	v    V
	err  error
	kept time.Duration
}

// over tells an answer that is there and was to be kept for less.
func (e *kept[V]) over(now time.Time) bool {
	select {
	case <-e.done:
		return now.Sub(e.at) > e.kept
	default:
		return false
	}
}

func newMemo[V any](timeout time.Duration, now func() time.Time) *memo[V] {
	return &memo[V]{timeout: timeout, now: now, entries: map[string]*kept[V]{}}
}

// within is an answer that is no older than age, and than keep says of it. One that is to be
// kept for no time is not kept, nor is an error.
func (m *memo[V]) within(ctx context.Context, age time.Duration, key string, ask func(context.Context) (V, error), keep func(V) time.Duration) (V, error) {
	m.mu.Lock()
	e := m.entries[key]
	if e == nil || m.now().Sub(e.at) > age || e.over(m.now()) {
		e = &kept[V]{at: m.now(), done: make(chan struct{})}
		m.evict()
		m.entries[key] = e
		go m.ask(context.WithoutCancel(ctx), key, e, ask, keep)
	}
	m.mu.Unlock()
	select {
	case <-e.done:
		return e.v, e.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// ask outlives the request that asked: others may wait for the answer too.
func (m *memo[V]) ask(ctx context.Context, key string, e *kept[V], ask func(context.Context) (V, error), keep func(V) time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if e.v, e.err = ask(ctx); e.err == nil {
		e.kept = keep(e.v)
	}
	if e.kept <= 0 {
		m.mu.Lock()
		if m.entries[key] == e {
			delete(m.entries, key)
		}
		m.mu.Unlock()
	}
	close(e.done)
}

// evict makes room for one more.
func (m *memo[V]) evict() {
	for len(m.entries) >= memoEntries {
		oldest := ""
		for key, e := range m.entries {
			if oldest == "" || e.at.Before(m.entries[oldest].at) {
				oldest = key
			}
		}
		delete(m.entries, oldest)
	}
}

// report is Source.Report, for a minute: questions with the same times have the same answer,
// records that arrived since aside. The report is shared and must not be changed.
func (u *UI) report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	return u.reportWithin(ctx, q, memoAge)
}

// reportWithin is a report that is no older than age.
func (u *UI) reportWithin(ctx context.Context, q metrics.Query, age time.Duration) (*metrics.Report, error) {
	return u.reports.within(ctx, age, askedFor(q), func(ctx context.Context) (*metrics.Report, error) { return u.o.Source.Report(ctx, q) },
		func(r *metrics.Report) time.Duration {
			if len(r.Rows) > memoRows {
				return 0
			}
			return usualAge
		})
}

func askedFor(q metrics.Query) string {
	return fmt.Sprint(q.CountersOnly, q.Needs, query.Encode(q).Encode())
}

// lastPages keeps what pages last showed, for when the store is away.
type lastPages struct {
	mu    sync.Mutex
	pages map[string]lastPage
}

type lastPage struct {
	at    time.Time
	state *state
	body  any
}

func newLastPages() *lastPages { return &lastPages{pages: map[string]lastPage{}} }

// pageKey tells pages apart: by address, and by what the viewer may see.
func pageKey(ctx context.Context, s *state) string {
	tenants, restricted := api.Tenants(ctx)
	return fmt.Sprint(restricted, strings.Join(tenants, "\x00"), "\n", s.path, "?", s.values.Encode())
}

func (l *lastPages) keep(key string, p lastPage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages[key] = p
	if len(l.pages) > pagesKept {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(l.pages)), func(a, b string) int { return l.pages[a].at.Compare(l.pages[b].at) })
		delete(l.pages, oldest)
	}
}

func (l *lastPages) get(key string) (lastPage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pages[key]
	return p, ok
}
