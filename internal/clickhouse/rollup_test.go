package clickhouse_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// rolledStore answers from rollups wherever it can.
func rolledStore(t *testing.T) *clickhouse.Store {
	s := newStore(t)
	s.SetAttemptsWindow(0)
	return s
}

func finalise(t *testing.T, s *clickhouse.Store, o clickhouse.FinaliseOptions) clickhouse.FinaliseResult {
	t.Helper()
	if o.AsOf.IsZero() {
		o.AsOf = histories.Now
	}
	r, err := s.Finalise(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFinaliseOnce(t *testing.T) {
	s := rolledStore(t)
	attempts := histories.Generate(3, 2000)
	if err := s.Write(t.Context(), attempts); err != nil {
		t.Fatal(err)
	}
	r := finalise(t, s, clickhouse.FinaliseOptions{})
	t.Logf("%+v", r)
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		compareRolled(t, s, attempts, randomQuery(rnd, attempts))
	}
	q := metrics.Query{AsOf: histories.Now, Bucket: time.Minute, GroupBy: metrics.HomeDimensions}
	report, buckets, spans, err := s.PlannedReport(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(report.Rows), buckets, spans)
}

// compareRolled holds a report to the reference fold.
func compareRolled(t *testing.T, s *clickhouse.Store, attempts []retrylens.Attempt, q metrics.Query) {
	t.Helper()
	want, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Report(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	diffReports(t, q, got, want)
}
