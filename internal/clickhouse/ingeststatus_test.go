package clickhouse_test

import (
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestIngestStatusIsServedInReports(t *testing.T) {
	s := newStore(t)
	completeness := func(filters map[metrics.Dimension][]string) *metrics.Completeness {
		t.Helper()
		r, err := s.Report(t.Context(), metrics.Query{AsOf: time.Now(), Filters: filters})
		if err != nil {
			t.Fatal(err)
		}
		return r.Completeness
	}
	write := func(node string, started, at time.Duration, rejected, dead, age uint64) {
		t.Helper()
		now := time.Now()
		err := s.WriteIngestStatus(t.Context(), clickhouse.IngestStatus{
			Node: node, StartedAt: now.Truncate(time.Hour).Add(started), At: now.Add(at), RejectedLines: rejected, DeadLetters: dead, SpoolAgeMS: age,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if c := completeness(nil); c.RejectedLines.Set || c.DeadLetters.Set || c.SpoolAgeMS.Set {
		t.Errorf("before: %+v", c)
	}
	write("a", -5*time.Hour, -11*time.Minute, 3, 1, 99_000) // an earlier run
	if c := completeness(nil); c.RejectedLines.Set {
		t.Errorf("no node reports any more: %+v", c)
	}
	write("a", 0, -time.Minute, 4, 0, 70_000)
	write("a", 0, 0, 5, 0, 2_000)
	write("b", 0, 0, 10, 2, 500)
	c := completeness(nil)
	if c.RejectedLines != retrylens.Some[uint64](18) || c.DeadLetters != retrylens.Some[uint64](3) || c.SpoolAgeMS != retrylens.Some[int64](2000) {
		t.Errorf("%+v", c)
	}
	if c := completeness(map[metrics.Dimension][]string{metrics.DimTenant: {"acme"}}); c.RejectedLines.Set {
		t.Errorf("of some tenants: %+v", c)
	}
}

func TestReportsOfAnOlderSchema(t *testing.T) {
	s := newStore(t)
	if err := s.Exec(t.Context(), "DROP TABLE "+s.Database()+".ingest_status"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Report(t.Context(), metrics.Query{AsOf: time.Now()})
	if err != nil || r.Completeness.SpoolAgeMS.Set {
		t.Errorf("%v", err)
	}
}
