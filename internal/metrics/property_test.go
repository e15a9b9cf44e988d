package metrics_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// eachHistory runs a property on seeded histories; the seed is in the name of
// the subtest.
func eachHistory(t *testing.T, property func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt)) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			property(t, rand.New(rand.NewPCG(seed, 1)), histories.Generate(seed, 400))
		})
	}
}

var everyHome = []metrics.Dimension{
	metrics.DimTenant, metrics.DimService, metrics.DimEnvironment, metrics.DimOperation, metrics.DimProvider, metrics.DimModel,
}

func fold(t *testing.T, attempts []retrylens.Attempt, q metrics.Query) *metrics.Report {
	t.Helper()
	if q.AsOf.IsZero() {
		q.AsOf = histories.Base.Add(10 * time.Minute) // some are open, some lost
	}
	r, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sum adds up all rows.
func sum(reports ...*metrics.Report) metrics.Counters {
	var c metrics.Counters
	for _, r := range reports {
		for i := range r.Rows {
			c.Add(&r.Rows[i].Counters)
		}
	}
	return c
}

func sameCounters(t *testing.T, what string, got, want metrics.Counters) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func TestOrderAndDuplicatesDoNotMatter(t *testing.T) {
	eachHistory(t, func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt) {
		q := metrics.Query{GroupBy: everyHome, Bucket: time.Minute}
		want := fold(t, attempts, q)
		again := slices.Concat(attempts, attempts[:r.IntN(len(attempts))])
		r.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		if got := fold(t, again, q); !reflect.DeepEqual(got, want) {
			t.Errorf("got %s\nwant %s", marshal(t, got), marshal(t, want))
		}
	})
}

func TestWindowsAddUp(t *testing.T) {
	eachHistory(t, func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt) {
		whole := fold(t, attempts, metrics.Query{})
		var parts []*metrics.Report
		var from time.Time
		for _, cut := range cuts(r) {
			parts = append(parts, fold(t, attempts, metrics.Query{From: from, To: cut}))
			from = cut
		}
		parts = append(parts, fold(t, attempts, metrics.Query{From: from}))
		sameCounters(t, "sum of windows", sum(parts...), sum(whole))
	})
}

// cuts returns increasing instants, many of them on the edges of minutes.
func cuts(r *rand.Rand) []time.Time {
	var out []time.Time
	for range 1 + r.IntN(6) {
		cut := histories.Base.Add(time.Duration(r.IntN(4*3600*1000)-2*3600*1000) * time.Millisecond)
		if r.IntN(2) == 0 {
			cut = cut.Truncate(time.Minute)
		}
		out = append(out, cut)
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

func TestGroupsAddUp(t *testing.T) {
	eachHistory(t, func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt) {
		whole := fold(t, attempts, metrics.Query{})
		dims := slices.Clone(everyHome)
		r.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
		q := metrics.Query{GroupBy: dims[:r.IntN(len(dims)+1)], Bucket: time.Duration(r.IntN(3)) * 17 * time.Minute}
		sameCounters(t, fmt.Sprint(q.GroupBy, q.Bucket), sum(fold(t, attempts, q)), sum(whole))
	})
}

func TestFiltersAreGroups(t *testing.T) {
	eachHistory(t, func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt) {
		groups := fold(t, attempts, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider}})
		for _, row := range groups.Rows {
			got := fold(t, attempts, metrics.Query{Filters: map[metrics.Dimension][]string{
				metrics.DimTenant: {row.Dims[0]}, metrics.DimProvider: {row.Dims[1], "nobody"},
			}})
			sameCounters(t, fmt.Sprint(row.Dims), sum(got), row.Counters)
		}
	})
}

func TestSpendAddsUp(t *testing.T) {
	eachHistory(t, func(t *testing.T, _ *rand.Rand, attempts []retrylens.Attempt) {
		whole := sum(fold(t, attempts, metrics.Query{}))
		spend := sum(fold(t, attempts, metrics.Query{
			GroupBy: []metrics.Dimension{metrics.DimExecutedModel, metrics.DimService, metrics.DimExecutedProvider},
		}))
		sameCounters(t, "spend", spend, whole.SpendOnly())
	})
}

// TestPartsMakeTheWhole holds identities between counters that no formula
// spells out.
func TestPartsMakeTheWhole(t *testing.T) {
	eachHistory(t, func(t *testing.T, _ *rand.Rand, attempts []retrylens.Attempt) {
		c := sum(fold(t, attempts, metrics.Query{}))
		for what, pair := range map[string][2]uint64{
			"states":        {c.Succeeded + c.Failed + c.Open + c.Lost, c.Operations},
			"causes":        {total(c.UpstreamCallsByCause), c.UpstreamCalls},
			"positions":     {total(c.AttemptsByPosition), c.Attempts},
			"successes":     {total(c.SuccessesByPosition), c.Attempts - c.FailedAttempts},
			"reasons":       {total(c.OrphanedTokensByReason), c.OrphanedPromptTokens + c.OrphanedCompletionTokens},
			"usage sources": {total(c.OrphanedTokensByUsageSource), c.OrphanedPromptTokens + c.OrphanedCompletionTokens},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %d of %d", what, pair[0], pair[1])
			}
		}
		var cost retrylens.Money
		for m := range maps.Values(c.OrphanedCostUSDByReason) {
			cost = cost.Add(m)
		}
		if cost != c.OrphanedCostUSD || cost.Cmp(c.BilledCostUSD) > 0 {
			t.Errorf("cost by reason %s, orphaned %s, billed %s", cost, c.OrphanedCostUSD, c.BilledCostUSD)
		}
	})
}

func total(m map[string]uint64) uint64 {
	n := uint64(0)
	for _, v := range m {
		n += v
	}
	return n
}
