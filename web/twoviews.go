package web

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens/internal/metrics"
)

// fewGroups are dimensions with few values together: their groups by bucket are cheap.
var fewGroups = []metrics.Dimension{metrics.DimProvider, metrics.DimModel}

// views are the same operations seen in several ways.
type views struct {
	series  *metrics.Report // by bucket
	groups  *metrics.Report // by group
	buckets *metrics.Report // by group and bucket; nil where groups may be many
}

// views answers q as a series of buckets and by groups. Where groups are few, one report
// is read and summed both ways: half the work. The answer is no older than age.
func (u *UI) views(ctx context.Context, q metrics.Query, bucket time.Duration, groups []metrics.Dimension, age time.Duration) (v views, err error) {
	q.Bucket, q.GroupBy = bucket, groups
	if !slices.ContainsFunc(groups, func(d metrics.Dimension) bool { return !slices.Contains(fewGroups, d) }) {
		if v.buckets, err = u.reportWithin(ctx, q, age); err == nil {
			v.series, v.groups = bySeries(v.buckets), byGroup(v.buckets)
		}
		return v, err
	}
	g, ctx := errgroup.WithContext(ctx)
	series, whole := q, q
	series.GroupBy, whole.Bucket = nil, 0
	g.Go(func() (err error) { v.series, err = u.reportWithin(ctx, series, age); return err })
	g.Go(func() (err error) { v.groups, err = u.reportWithin(ctx, whole, age); return err })
	return v, g.Wait()
}

// lastShown is the latest bucket in which attempts of a group failed with a class, of a
// class "" in any way, one that is whole rather than one that the window cuts, and how many
// did. Where groups may be many it is that of all groups.
func (v views) lastShown(dims []string, class string) (bucket time.Time, n uint64) {
	var cut time.Time
	var ofCut uint64
	r := v.buckets
	if r == nil {
		r = v.series
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		failed := row.FailedAttempts
		if class != "" {
			failed = row.ErrorsByClass[class]
		}
		if failed == 0 || v.buckets != nil && !slices.Equal(row.Dims, dims) {
			continue
		}
		whole := !row.Bucket.Before(r.From) && !row.Bucket.Add(r.Bucket).After(r.To)
		if whole && row.Bucket.After(bucket) {
			bucket, n = row.Bucket, failed
		} else if row.Bucket.After(cut) {
			cut, ofCut = row.Bucket, failed
		}
	}
	if n == 0 {
		return cut, ofCut
	}
	return bucket, n
}

// enough is how many failures a stretch of time should hold in which an example is looked for.
const enough = 40

// exampleWindows are where an example of a group and class is looked for: where it was
// seen last, at first as much of it as holds enough, and where that is not known of the group, in
// the last hour of the window too.
func (v views) exampleWindows(q metrics.Query, dims []string, class string) (out [][2]time.Time) {
	if shown, n := v.lastShown(dims, class); n > 0 {
		w := [2]time.Time{shown, shown.Add(v.series.Bucket)}
		if shown.Before(q.From) {
			w[0] = q.From
		}
		if w[1].After(q.To) {
			w[1] = q.To
		}
		if span := w[1].Sub(w[0]); n > enough && span > time.Minute {
			out = append(out, [2]time.Time{w[1].Add(-max(time.Minute, span/time.Duration(n/enough))), w[1]})
		}
		out = append(out, w)
	}
	if v.buckets != nil {
		return out
	}
	last := [2]time.Time{q.To.Add(-time.Hour), q.To}
	if last[0].Before(q.From) {
		last[0] = q.From
	}
	return append(out, last)
}

// bySeries sums the groups of each bucket.
func bySeries(r *metrics.Report) *metrics.Report {
	out := *r
	out.GroupBy = nil
	out.Rows = summed(r.Rows, func(k metrics.Key) metrics.Key { return metrics.Key{Bucket: k.Bucket} })
	return &out
}

// mostPoints is up to how many points a curve is drawn with.
const mostPoints = 1000

// everyBucket is a series with the buckets in which nothing started: curves break there. One
// of too many is left as it is.
func everyBucket(r *metrics.Report) *metrics.Report {
	if len(r.Rows) == 0 || r.Bucket <= 0 || r.To.Unix()-r.From.Unix() > mostPoints*int64(r.Bucket/time.Second) {
		return r
	}
	out := *r
	out.Rows = nil
	at := r.Rows[0].Bucket
	for at.After(r.From) {
		at = at.Add(-r.Bucket)
	}
	for i := 0; i < len(r.Rows) || at.Before(r.To); at = at.Add(r.Bucket) {
		if i < len(r.Rows) && !at.Before(r.Rows[i].Bucket) {
			at = r.Rows[i].Bucket
			out.Rows = append(out.Rows, r.Rows[i])
			i++
			continue
		}
		out.Rows = append(out.Rows, metrics.Row{Key: metrics.Key{Bucket: at}})
	}
	return &out
}

// byGroup sums the buckets of each group.
func byGroup(r *metrics.Report) *metrics.Report {
	out := *r
	out.Bucket = 0
	out.Rows = summed(r.Rows, func(k metrics.Key) metrics.Key { return metrics.Key{Dims: k.Dims} })
	return &out
}

// summed merges the rows whose keys become the same; sorted by key.
func summed(rows []metrics.Row, to func(metrics.Key) metrics.Key) []metrics.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Key = to(rows[i].Key)
	}
	slices.SortStableFunc(rows, func(a, b metrics.Row) int { return a.Key.Compare(b.Key) })
	var out []metrics.Row
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Key.Compare(rows[0].Key) == 0 {
			n++
		}
		out = append(out, metrics.Merge(rows[0].Key, rows[:n]...))
		rows = rows[n:]
	}
	return out
}
