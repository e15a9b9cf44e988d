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
	pagesKept   = 32
)

// memo keeps reports for a minute: questions with the same times have the same answer,
// records that arrived since aside. Who asks what is being asked waits for that answer.
type memo struct {
	source  api.Source
	timeout time.Duration
	now     func() time.Time

	mu      sync.Mutex
	entries map[string]*kept
}

type kept struct {
	at   time.Time
	done chan struct{}
	r    *metrics.Report
	err  error
}

func newMemo(source api.Source, timeout time.Duration, now func() time.Time) *memo {
	return &memo{source: source, timeout: timeout, now: now, entries: map[string]*kept{}}
}

// Report is Source.Report; the report is shared and must not be changed.
func (m *memo) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	return m.reportWithin(ctx, q, memoAge)
}

// reportWithin is a report that is no older than age.
func (m *memo) reportWithin(ctx context.Context, q metrics.Query, age time.Duration) (*metrics.Report, error) {
	key := fmt.Sprint(q.CountersOnly, query.Encode(q).Encode())
	m.mu.Lock()
	e := m.entries[key]
	if e == nil || m.now().Sub(e.at) > age {
		e = &kept{at: m.now(), done: make(chan struct{})}
		m.evict()
		m.entries[key] = e
		go m.ask(context.WithoutCancel(ctx), key, q, e)
	}
	m.mu.Unlock()
	select {
	case <-e.done:
		return e.r, e.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask outlives the request that asked: others may wait for the answer too.
func (m *memo) ask(ctx context.Context, key string, q metrics.Query, e *kept) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	e.r, e.err = m.source.Report(ctx, q)
	if e.err != nil || len(e.r.Rows) > memoRows {
		m.mu.Lock()
		if m.entries[key] == e {
			delete(m.entries, key)
		}
		m.mu.Unlock()
	}
	close(e.done)
}

// evict makes room for one more.
func (m *memo) evict() {
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
