package gauges

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Source answers what a snapshot asks. It must be safe for concurrent use.
type Source interface {
	Report(context.Context, metrics.Query) (*metrics.Report, error)
}

// Window is how far back gauges look, and how often they are taken anew.
type Window struct {
	Name  string // value of the label window
	Span  time.Duration
	Every time.Duration
}

// Windows are those of every snapshot.
var Windows = []Window{
	{"1m", time.Minute, 15 * time.Second},
	{"5m", 5 * time.Minute, 15 * time.Second},
	{"1h", time.Hour, time.Minute},
}

// Other is the value of tenant, provider and model of the series that holds what is
// beyond the top ones.
const Other = "other"

// dimensions are the labels beside the window.
var dimensions = []metrics.Dimension{metrics.DimTenant, metrics.DimProvider, metrics.DimModel}

// view is what was seen through one window.
type view struct {
	window       Window
	at           time.Time // as_of
	rows         []metrics.Row
	completeness *metrics.Completeness
}

// take looks through a window: the top series by operations, the rest as one, computed
// from its operations and not from the other series' figures.
func take(ctx context.Context, s Source, w Window, now time.Time, top int) (*view, error) {
	now = now.UTC().Truncate(time.Millisecond)
	r, err := s.Report(ctx, metrics.Query{From: now.Add(-w.Span), To: now, AsOf: now, GroupBy: dimensions})
	if err != nil {
		return nil, err
	}
	return &view{window: w, at: now, rows: topRows(r.Rows, top), completeness: r.Completeness}, nil
}

// topRows keeps the rows of most operations and joins the rest, and whoever calls
// itself other, into one row.
func topRows(rows []metrics.Row, top int) []metrics.Row {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b metrics.Row) int {
		return cmp.Or(compareBool(named(a), named(b)), cmp.Compare(b.Operations, a.Operations), a.Compare(b.Key))
	})
	n := min(top, len(rows))
	for n > 0 && named(rows[n-1]) {
		n--
	}
	if n == len(rows) {
		return rows
	}
	return append(slices.Clip(rows[:n]), metrics.Merge(metrics.Key{Dims: []string{Other, Other, Other}}, rows[n:]...))
}

func named(r metrics.Row) bool {
	return strings.Join(r.Dims, "\x00") == Other+"\x00"+Other+"\x00"+Other
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
