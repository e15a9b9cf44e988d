package clickhouse_test

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// between is the view of the rollups of a window and step; filters are those of a dimension.
func between(s *clickhouse.Store, from, to time.Time, step int, filters map[string]string) string {
	args := []string{fmt.Sprintf("from = toDateTime(%d), to = toDateTime(%d), step = %d", from.Unix(), to.Unix(), step)}
	for _, d := range []string{"tenant", "service", "environment", "provider", "model"} {
		list, given := filters[d]
		if !given {
			list = "*"
		}
		args = append(args, d+" = '"+list+"'")
	}
	return s.Database() + ".rollups_between(" + strings.Join(args, ", ") + ")"
}

// TestRollupsBetweenEqualTheFold: whatever the window and the width, also when buckets were
// computed several times and what is dead is still there.
func TestRollupsBetweenEqualTheFold(t *testing.T) {
	s := rolledStore(t)
	attempts := histories.Generate(11, 4000)
	for _, part := range [][]retrylens.Attempt{attempts[:1500], attempts[1500:]} {
		write(t, s, part...)
		finalise(t, s, clickhouse.FinaliseOptions{})
	}
	base := histories.Base
	for _, w := range []struct{ from, to time.Time }{
		{base.Add(-48 * time.Hour), base.Add(72 * time.Hour)},
		{base.Truncate(24 * time.Hour), base.Truncate(24 * time.Hour).Add(24 * time.Hour)},
		{base.Add(7 * time.Minute).Truncate(time.Minute), base.Add(3 * time.Hour).Truncate(time.Minute)},
		{base.Add(-25 * time.Hour).Truncate(time.Minute), base.Add(25*time.Hour + 3*time.Minute).Truncate(time.Minute)},
		{base.Truncate(time.Minute), base.Add(time.Minute).Truncate(time.Minute)},
	} {
		for _, step := range []int{60, 300, 3600, 7200, 86400} {
			for _, filter := range []map[metrics.Dimension][]string{nil, {metrics.DimTenant: {"acme"}}, {metrics.DimProvider: {"openai", "anthropic"}}} {
				compareBetween(t, s, attempts, metrics.Query{From: w.from, To: w.to, AsOf: histories.Now, Filters: filter}, step)
			}
		}
	}
}

func compareBetween(t *testing.T, s *clickhouse.Store, attempts []retrylens.Attempt, q metrics.Query, step int) {
	t.Helper()
	report, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	want, lists := report.Rows[0], map[string]string{}
	for d, names := range q.Filters {
		lists[string(d)] = "%7B" + url.QueryEscape(strings.Join(names, ",")) + "%7D"
	}
	var operations, calls, violations uint64
	var cost decimal.Decimal
	var p99 *int64
	err = s.Value(t.Context(), "SELECT sum(operations), sum(upstream_calls), sum(retry_after_violations), sum(orphaned_cost_usd),"+
		" quantileExactWeightedOrNullArray(0.99)(latency_ms, latency_n) FROM "+between(s, q.From, q.To, step, lists)+" WHERE kind = 'home'",
		&operations, &calls, &violations, &cost, &p99)
	if err != nil {
		t.Fatal(err)
	}
	wantCost, _ := decimal.NewFromString(want.OrphanedCostUSD.String())
	if operations != want.Operations || calls != want.UpstreamCalls || violations != want.RetryAfterViolations || !cost.Equal(wantCost) {
		t.Errorf("%v..%v by %d s, %v: %d operations, %d calls, %d violations, %s USD; want %d, %d, %d, %s", q.From, q.To, step, q.Filters,
			operations, calls, violations, cost, want.Operations, want.UpstreamCalls, want.RetryAfterViolations, want.OrphanedCostUSD)
	}
	if exact := want.Latency.P99; (p99 != nil) != exact.Set || exact.Set && math.Abs(float64(*p99-exact.Value)) > 0.005*math.Abs(float64(exact.Value)) {
		t.Errorf("%v..%v by %d s, %v: p99 %v, want %v", q.From, q.To, step, q.Filters, p99, exact)
	}
}

// TestRollupsBetweenTakeNamesAsTheyAre: no name in a filter is read as SQL, as a pattern, or as
// another name.
func TestRollupsBetweenTakeNamesAsTheyAre(t *testing.T) {
	s := rolledStore(t)
	names := []string{"plain", `it's`, `back\slash`, `ends\`, `"`, "%", "*", "{a}", "}", "a b+c", "a.c", "abc", "日本", "\u202e", `'; DROP TABLE x --`, `\' OR 1 = 1 --`, "&x=y", "$__all", "%27"}
	at := histories.Base
	for i, name := range names {
		a := one(fmt.Sprint("op", i), at, retrylens.OutcomeSuccess)
		a.Model = name
		write(t, s, a)
	}
	finalise(t, s, clickhouse.FinaliseOptions{})
	for i, name := range names {
		encoded := strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
		both := strings.ReplaceAll(url.QueryEscape(name+","+names[(i+1)%len(names)]), "+", "%20")
		for list, want := range map[string]uint64{encoded: 1, "%7B" + encoded + "%7D": 1, "%7B" + both + "%7D": 2} {
			if list == "%2A" || strings.HasPrefix(name, "{") && list == encoded {
				continue // all, and a list in braces
			}
			var n uint64
			err := s.Value(t.Context(), "SELECT sum(operations) FROM "+between(s, at.Add(-time.Hour), at.Add(time.Hour), 60, map[string]string{"model": list})+" WHERE kind = 'home'", &n)
			if err != nil || n != want {
				t.Errorf("%q as %s: %d operations, %v; want %d", name, list, n, err, want)
			}
		}
	}
}

// TestRollupsBetweenOfTwoShards: the view of either shard sees both.
func TestRollupsBetweenOfTwoShards(t *testing.T) {
	var stores []*clickhouse.Store
	for _, e := range enginetest.StartCluster(t, 2) {
		c := config(t, e, "retrylens")
		c.Cluster, c.EachNode = enginetest.Cluster, true
		stores = append(stores, openStore(t, c))
	}
	attempts := histories.Generate(12, 600)
	for i, part := range [][]retrylens.Attempt{attempts[:300], attempts[300:]} {
		write(t, stores[i], part...)
		finalise(t, stores[i], clickhouse.FinaliseOptions{})
	}
	base := histories.Base.Truncate(time.Hour)
	for _, s := range stores {
		for _, step := range []int{60, 86400} {
			for _, filter := range []map[metrics.Dimension][]string{nil, {metrics.DimTenant: {histories.Tenants[0]}}} {
				compareBetween(t, s, attempts, metrics.Query{From: base.Add(-26 * time.Hour), To: base.Add(49 * time.Hour), AsOf: histories.Now, Filters: filter}, step)
			}
		}
	}
}
