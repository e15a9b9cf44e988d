package clickhouse

import (
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// folder adds up the rows of every slice. Slices and levels may add to it at once.
type folder struct {
	q      metrics.Query
	lock   sync.Mutex
	groups map[string]*foldGroup
	total  metrics.Counters // of the whole report, whatever its groups
}

type foldGroup struct {
	metrics.Row
	latency, retryTax metrics.Sketch
}

func newFolder(q metrics.Query) *folder {
	return &folder{q: q, groups: map[string]*foldGroup{}}
}

// reset forgets what was added.
func (f *folder) reset() {
	f.groups, f.total = map[string]*foldGroup{}, metrics.Counters{}
}

func (f *folder) add(r *foldRow, statement string) {
	r.complete(statement)
	f.lock.Lock()
	defer f.lock.Unlock()
	f.total.Add(&r.Counters)
	if r.empty() || f.q.Spend() && r.ExecutedAttempts == 0 {
		return
	}
	g := f.group(r.key(f.q))
	g.Add(&r.Counters)
	for _, idx := range r.latency {
		g.latency.AddBucket(idx, 1)
	}
	for _, idx := range r.retryTax {
		g.retryTax.AddBucket(idx, 1)
	}
	g.retryTax.AddBucket(0, r.untaxed)
}

// empty tells the row of a statement without groups that found nothing.
func (r *foldRow) empty() bool {
	return r.Operations == 0 && r.KeyConflicts == 0 && r.ExecutedAttempts == 0
}

// group is the one of a key; the caller holds the lock.
func (f *folder) group(k metrics.Key) *foldGroup {
	// Values hold no control characters, so the joined key is unique.
	key := strings.Join(k.Dims, "\x00") + "\x00" + k.Bucket.Format(time.RFC3339)
	g := f.groups[key]
	if g == nil {
		g = &foldGroup{Row: metrics.Row{Key: k}}
		f.groups[key] = g
	}
	return g
}

// addAttempts adds whole operations of a slice by the reference fold.
func (f *folder) addAttempts(attempts []retrylens.Attempt, w window) error {
	q := f.q
	q.From, q.To = time.UnixMilli(w.from).UTC(), time.UnixMilli(w.to).UTC()
	p, err := metrics.FoldPartial(attempts, q)
	if err == nil {
		f.addPartial(p)
	}
	return err
}

// addPartial adds what the reference fold says of some operations.
func (f *folder) addPartial(p *metrics.Partial) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.total.Add(&p.Total)
	for i := range p.Groups {
		from := &p.Groups[i]
		g := f.group(from.Key)
		g.Add(&from.Counters)
		g.latency.Merge(&from.Latency)
		g.retryTax.Merge(&from.RetryTax)
	}
}

func (f *folder) rows(quantiles bool) []metrics.Row {
	rows := make([]metrics.Row, 0, len(f.groups))
	held := heldFigures(f.q)
	for _, g := range f.groups {
		if f.q.Spend() {
			g.Counters = g.SpendOnly()
		} else if quantiles {
			g.Latency, g.RetryTax = g.latency.Quantiles(), g.retryTax.Quantiles()
			g.Samples = &metrics.Samples{Latency: g.latency, RetryTax: g.retryTax}
		}
		if len(f.q.Needs) > 0 { // attempts tell all
			g.Counters = rollup.Keep(&g.Counters, held)
		}
		rows = append(rows, g.Row)
	}
	return rows
}
