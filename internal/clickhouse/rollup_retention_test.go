package clickhouse_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
)

// expiredDay and keptDay are the ages in days of the two days of outlived: the
// attempts of the first have expired, its rollups are there.
const expiredDay, keptDay = 45, 5

// outlived is a store with an operation every quarter of an hour of two days, the last
// one of each unfinished.
func outlived(t *testing.T) (s *clickhouse.Store, day func(age int) time.Time) {
	t.Helper()
	const database = "retrylens_expired"
	c := config(t, enginetest.Shared(t), database)
	c.RetentionDays = 90
	s = openStore(t, c)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	day = func(age int) time.Time { return today.AddDate(0, 0, -age) }
	var all []retrylens.Attempt
	for _, age := range []int{expiredDay, keptDay} {
		for i := range 96 {
			outcome := retrylens.OutcomeSuccess
			if i == 95 {
				outcome = retrylens.OutcomeError
			}
			all = append(all, one(fmt.Sprint("op-", age, "-", i), day(age).Add(time.Duration(i)*15*time.Minute), outcome))
		}
	}
	write(t, s, all...)
	if _, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{}); err != nil {
		t.Fatal(err)
	}
	c.RetentionDays = 30
	openStore(t, c)
	if err := s.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s.attempts DROP PARTITION '%s'", database, day(expiredDay).Format(time.DateOnly))); err != nil { // as the TTL does
		t.Fatal(err)
	}
	return s, day
}

// TestExpiredAttemptsAreCountedByTheirRollups holds every way to ask about days whose
// attempts are gone to the same figures, whatever waits for the finaliser meanwhile.
func TestExpiredAttemptsAreCountedByTheirRollups(t *testing.T) {
	s, day := outlived(t)
	compareOutlived(t, s, day, "expired")
	if err := s.Exec(t.Context(), "INSERT INTO "+s.Database()+".prices VALUES ('openai', 'm', '2020-01-01 00:00:00', 1, 1, 1, 1, 1)"); err != nil {
		t.Fatal(err)
	}
	compareOutlived(t, s, day, "a price waits")
	if _, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{}); err != nil {
		t.Fatal(err)
	}
	write(t, s, one("late", day(expiredDay).Add(7*time.Minute), retrylens.OutcomeSuccess))
	compareOutlived(t, s, day, "a late record waits")
	r, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{})
	if err != nil || r.Expired != 1 || r.Minutes != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	compareOutlived(t, s, day, "a late record is dropped")
}

func compareOutlived(t *testing.T, s *clickhouse.Store, day func(int) time.Time, when string) {
	t.Helper()
	for _, age := range []int{expiredDay, keptDay} {
		whileOpen := day(age).Add(23*time.Hour + 50*time.Minute)
		for _, w := range []struct {
			from, to time.Duration
			want     uint64
		}{
			{0, 24 * time.Hour, 96}, {-time.Hour, 25 * time.Hour, 96}, {8 * time.Minute, 7*time.Hour + 31*time.Minute, 30},
			{0, 6 * time.Hour, 24}, {15 * time.Minute, 16 * time.Minute, 1}, {23 * time.Hour, 24 * time.Hour, 4},
		} {
			q := metrics.Query{From: day(age).Add(w.from), To: day(age).Add(w.to), AsOf: day(0)}
			for _, by := range []metrics.Dimension{metrics.DimModel, metrics.DimService, metrics.DimExecutedModel} {
				q.GroupBy = []metrics.Dimension{by}
				requireOutlived(t, s, when, q, w.want, age == expiredDay)
			}
			q.GroupBy, q.AsOf = nil, whileOpen
			requireOutlived(t, s, when, q, w.want, age == expiredDay)
		}
	}
	for _, q := range []metrics.Query{{}, {Bucket: time.Hour}, {Bucket: 24 * time.Hour}, {Bucket: time.Minute, GroupBy: []metrics.Dimension{metrics.DimTenant}}} {
		q.AsOf = day(0)
		r, err := s.Report(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, row := range r.Rows {
			sum += row.Operations
		}
		if sum != 2*96 {
			t.Errorf("%s, everything by %v: %d operations", when, q.Bucket, sum)
		}
	}
}

// requireOutlived holds a report to the count of operations and, where quantiles are no
// longer there, to saying so.
func requireOutlived(t *testing.T, s *clickhouse.Store, when string, q metrics.Query, want uint64, expired bool) {
	t.Helper()
	r, err := s.Report(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	row, unknown := r.Rows[0], slices.Equal(r.Unknown, []string{"latency_ms", "retry_tax_ms"})
	if q.Spend() {
		row.Operations = row.ExecutedAttempts
	}
	if lost := expired && slices.Contains(q.GroupBy, metrics.DimService); row.Operations != want || unknown != lost || !q.Spend() && row.Latency.P50.Set == unknown {
		t.Errorf("%s, %v to %v as of %v by %v: %d operations, p50 %v, unknown %v; want %d", when, q.From, q.To, q.AsOf, q.GroupBy,
			row.Operations, row.Latency.P50, r.Unknown, want)
	}
}

// TestWhereMinutesHaveExpiredHoursAreWhole asks about days of which rollups by hour are all
// that is left, with windows and buckets off the hour.
func TestWhereMinutesHaveExpiredHoursAreWhole(t *testing.T) {
	c := config(t, enginetest.Shared(t), "retrylens_hours")
	c.RetentionDays = 200
	s := openStore(t, c)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -100)
	for i := range 96 {
		write(t, s, one(fmt.Sprint("op-", i), day.Add(time.Duration(i)*15*time.Minute), retrylens.OutcomeSuccess))
	}
	if _, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{}); err != nil {
		t.Fatal(err)
	}
	c.RetentionDays = 30
	openStore(t, c)
	for _, expire := range []string{
		"ALTER TABLE retrylens_hours.attempts DROP PARTITION '" + day.Format(time.DateOnly) + "'",
		"ALTER TABLE retrylens_hours.rollups DELETE WHERE level = 'minute' SETTINGS mutations_sync = 1", // as their TTLs do
	} {
		if err := s.Exec(t.Context(), expire); err != nil {
			t.Fatal(err)
		}
	}
	asOf := day.AddDate(0, 0, 100)
	at := day.Add
	for name, c := range map[string]struct {
		q, want metrics.Query
		n       uint64
	}{
		"off the hour":          {metrics.Query{From: at(8 * time.Minute), To: at(7*time.Hour + 31*time.Minute)}, metrics.Query{From: at(0), To: at(8 * time.Hour)}, 32},
		"within an hour":        {metrics.Query{From: at(16 * time.Minute), To: at(17 * time.Minute)}, metrics.Query{From: at(0), To: at(time.Hour)}, 4},
		"on the hour":           {metrics.Query{From: at(time.Hour), To: at(3 * time.Hour)}, metrics.Query{From: at(time.Hour), To: at(3 * time.Hour)}, 8},
		"until now":             {metrics.Query{From: at(time.Second), To: asOf.Add(time.Second)}, metrics.Query{From: at(0), To: asOf.Add(time.Second)}, 96},
		"buckets below an hour": {metrics.Query{From: at(0), To: at(2 * time.Hour), Bucket: time.Minute}, metrics.Query{From: at(0), To: at(2 * time.Hour), Bucket: time.Hour}, 8},
		"buckets off the hour":  {metrics.Query{From: at(0), To: at(6 * time.Hour), Bucket: 90 * time.Minute}, metrics.Query{From: at(0), To: at(6 * time.Hour), Bucket: 2 * time.Hour}, 24},
		"of hours without any":  {metrics.Query{From: at(-7 * time.Minute), To: at(24*time.Hour + 7*time.Minute)}, metrics.Query{From: at(-7 * time.Minute), To: at(24*time.Hour + 7*time.Minute)}, 96},
		"from the year 1 on":    {metrics.Query{From: time.Time{}.Add(time.Second), To: at(time.Hour)}, metrics.Query{From: time.Time{}.Add(time.Second), To: at(time.Hour)}, 4},
		"all, by the minute":    {metrics.Query{Bucket: time.Minute}, metrics.Query{Bucket: time.Hour}, 96},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.AsOf = asOf
			r, err := s.Report(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			sum := uint64(0)
			for _, row := range r.Rows {
				sum += row.Operations
			}
			if sum != c.n || !r.From.Equal(c.want.From) || !r.To.Equal(c.want.To) || r.Bucket != c.want.Bucket {
				t.Errorf("%d operations of %v to %v by %v, want %d of %+v", sum, r.From, r.To, r.Bucket, c.n, c.want)
			}
		})
	}
}
