package clickhouse_test

import (
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// On two shards, whichever of them a finaliser is connected to, rollups are the
// same as the reference fold, before and after more has come.
func TestRollupsOfTwoShards(t *testing.T) {
	var stores []*clickhouse.Store
	for _, e := range enginetest.StartCluster(t, 2) {
		c := config(t, e, "retrylens")
		c.Cluster, c.EachNode = enginetest.Cluster, true
		stores = append(stores, openStore(t, c))
	}
	attempts := histories.Generate(11, 600)
	half := len(attempts) / 2
	write(t, stores[0], attempts[:half]...)
	if r := finalise(t, stores[1], clickhouse.FinaliseOptions{AsOf: histories.Base}); r.Minutes == 0 {
		t.Fatalf("%+v", r)
	}
	write(t, stores[1], attempts[half:]...)
	queries := []metrics.Query{
		{GroupBy: metrics.HomeDimensions, Bucket: time.Minute},
		{GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimExecutedModel}},
		{Filters: map[metrics.Dimension][]string{metrics.DimTenant: {histories.Tenants[0]}}},
	}
	check := func(wantSpans bool) {
		t.Helper()
		for _, s := range stores {
			s.SetAttemptsWindow(0)
			for _, q := range queries {
				q.From, q.To, q.AsOf = histories.Base.Add(-3*time.Hour), histories.Base.Add(3*time.Hour), histories.Now
				compareRolled(t, s, attempts, q)
				if _, buckets, spans, err := s.PlannedReport(t.Context(), q); err != nil || !wantSpans && (buckets == 0 || spans > 0) {
					t.Errorf("%d buckets, %d spans, %v", buckets, spans, err)
				}
			}
		}
	}
	check(true)
	finalise(t, stores[0], clickhouse.FinaliseOptions{})
	check(false)
	if st, err := stores[1].FinaliserStatus(t.Context()); err != nil || st.DirtyMinutes != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}
