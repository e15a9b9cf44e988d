package clickhouse

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
	"github.com/retrylens/retrylens/schema"
)

// leastRetention is younger than what any retention removes, with an hour for clocks
// that differ.
const leastRetention = 24*time.Hour - expiryMargin - time.Hour

// expired is the time in Unix milliseconds before which attempts may be gone, if the
// window of q holds rollups from before; else 0.
func (s *Store) expired(ctx context.Context, m *moment, q metrics.Query) (int64, error) {
	if !q.From.IsZero() && time.Since(q.From) < leastRetention {
		return 0, nil
	}
	st, err := s.standing(ctx, m)
	if err != nil {
		return 0, err
	}
	days, err := s.days(ctx, m)
	if err != nil {
		return 0, err
	}
	before := oldest(st.now, st.retention)
	before -= before % minuteMS // that minute is computed no more, those behind it are
	for _, day := range days {
		began := q.From.IsZero() || day.Start > q.From.Add(-rollup.Day.Width()).UnixMilli() // maybe before the window
		if began && day.Start < before && (q.To.IsZero() || day.Start < q.To.UnixMilli()) {
			return before, nil
		}
	}
	return 0, nil
}

// wholeHours widens the ends of a window that lie in an hour whose rollups by minute may
// have expired to whole hours, which is all that is known there, and its buckets too.
func (s *Store) wholeHours(ctx context.Context, m *moment, q metrics.Query) (metrics.Query, error) {
	const least = time.Duration(schema.RollupMarkDays) * 24 * time.Hour // before which no minute has expired
	old := func(t time.Time) bool { return !t.IsZero() && time.Since(t) > least }
	fine := q.Bucket%time.Hour != 0 && (q.From.IsZero() || old(q.From))
	if !fine && !old(q.From) && !old(q.To) {
		return q, nil
	}
	st, err := s.standing(ctx, m)
	if err != nil {
		return q, err
	}
	days := schema.RollupMinuteDays(int(st.retention/(24*time.Hour))) - 1
	minutes := st.now.AddDate(0, 0, -days)
	from, to := q.From.Truncate(time.Hour), q.To.Truncate(time.Hour)
	for _, end := range []struct {
		at   *time.Time
		hour time.Time
		wide time.Time
	}{{&q.From, from, from}, {&q.To, to, to.Add(time.Hour)}} {
		if end.at.IsZero() || end.at.Equal(end.hour) || !end.at.Before(minutes) {
			continue
		}
		there, err := s.hoursThere(ctx, end.hour, end.hour.Add(time.Hour))
		if err != nil {
			return q, err
		}
		if there {
			*end.at = end.wide
		}
	}
	if fine {
		if !q.To.IsZero() && q.To.Before(minutes) {
			minutes = q.To
		}
		there, err := s.hoursThere(ctx, q.From, minutes)
		if err != nil {
			return q, err
		}
		if there {
			q.Bucket = (q.Bucket + time.Hour).Truncate(time.Hour)
		}
	}
	return q, nil
}

// hoursThere tells whether there are rollups of an hour that begins in [from, to).
func (s *Store) hoursThere(ctx context.Context, from, to time.Time) (bool, error) {
	var n uint64
	err := s.value(ctx, &n, "SELECT count() FROM "+s.database+".rollups WHERE level = 'hour' AND kind = 'bucket'"+
		" AND toInt64(toUnixTimestamp(bucket)) >= {from:Int64} AND toInt64(toUnixTimestamp(bucket)) < {to:Int64}",
		clickhouse.Named("from", from.Unix()), clickhouse.Named("to", to.Unix()))
	if isUnknownTable(err) {
		return false, nil
	}
	return n > 0, err
}
