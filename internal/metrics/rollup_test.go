package metrics_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

func foldRollup(t *testing.T, attempts []retrylens.Attempt, asOf time.Time) *metrics.RollupPart {
	t.Helper()
	p, err := metrics.FoldRollup(attempts, metrics.Query{AsOf: asOf, Bucket: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A rollup's groups add up to the report, and its spend moved to where it was
// executed to the report by what was executed.
func TestRollupAddsUp(t *testing.T) {
	eachHistory(t, func(t *testing.T, _ *rand.Rand, attempts []retrylens.Attempt) {
		asOf := histories.Base.Add(10 * time.Minute)
		p := foldRollup(t, attempts, asOf)
		var whole metrics.Counters
		spend := map[[2]string]*metrics.Counters{}
		for i := range p.Home {
			whole.Add(&p.Home[i].Counters)
		}
		sameCounters(t, "home", whole, sum(fold(t, attempts, metrics.Query{})))
		for _, g := range p.Spend {
			k := [2]string{g.Dims[6], g.Dims[7]}
			if spend[k] == nil {
				spend[k] = &metrics.Counters{}
			}
			spend[k].Add(&g.Counters)
		}
		for _, row := range fold(t, attempts, metrics.Query{GroupBy: []metrics.Dimension{metrics.DimExecutedProvider, metrics.DimExecutedModel}}).Rows {
			if moved := spend[[2]string{row.Dims[0], row.Dims[1]}]; moved != nil && moved.ExecutedAttempts > row.ExecutedAttempts {
				t.Errorf("%v: %d moved there, %d executed there", row.Dims, moved.ExecutedAttempts, row.ExecutedAttempts)
			}
		}
	})
}

// Between two losses no state changes: what LossTimes says of one as_of holds for
// every other within.
func TestStatesHoldBetweenLosses(t *testing.T) {
	eachHistory(t, func(t *testing.T, r *rand.Rand, attempts []retrylens.Attempt) {
		asOf := histories.Base.Add(time.Duration(r.IntN(90)-30) * time.Minute)
		for _, l := range foldRollup(t, attempts, asOf).Losses {
			q := metrics.Query{From: time.UnixMilli(l.BucketMS).UTC(), To: time.UnixMilli(l.BucketMS + 60_000).UTC(), AsOf: asOf}
			want := sum(fold(t, attempts, q))
			at := func(ms int64) metrics.Counters {
				q.AsOf = time.UnixMilli(ms).UTC()
				return sum(fold(t, attempts, q))
			}
			if l.LastLossMS > 0 {
				sameCounters(t, "at the last loss", at(l.LastLossMS), want)
				if got := at(l.LastLossMS - 1); got.Lost >= want.Lost {
					t.Errorf("before the last loss %d are lost, at it %d", got.Lost, want.Lost)
				}
			}
			if l.NextLossMS != metrics.NoLoss {
				sameCounters(t, "before the next loss", at(l.NextLossMS-1), want)
				if got := at(l.NextLossMS); got.Lost <= want.Lost {
					t.Errorf("at the next loss %d are lost, before it %d", got.Lost, want.Lost)
				}
			}
		}
	})
}
