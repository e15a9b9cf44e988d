package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// TestOperationsAreFoundAsTheReferenceFindsThem on random histories: the same
// operations in the same order, whole and page by page.
func TestOperationsAreFoundAsTheReferenceFindsThem(t *testing.T) {
	store := newStore(t)
	first := *seed
	if first == 0 {
		first = uint64(time.Now().Unix() / 86400 * 1000)
	}
	for i := range uint64(3) {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(first+i, 2))
			attempts := histories.Generate(first+i, 1200)
			writeInPieces(t, store, attempts, rnd)
			for range 12 {
				compareSearches(t, store, attempts, randomSearch(rnd, attempts))
			}
		})
	}
}

func randomSearch(rnd *rand.Rand, attempts []retrylens.Attempt) metrics.Search {
	s := metrics.Search{Query: randomQuery(rnd, attempts), Limit: 1 + rnd.IntN(60)}
	s.GroupBy, s.Bucket = nil, 0
	some := attempts[rnd.IntN(len(attempts))]
	switch rnd.IntN(8) {
	case 0:
		s.LogicalIDs = []string{some.LogicalID, "nobody's"}
	case 1:
		s.IdempotencyKeys = []string{some.IdempotencyKey}
	case 2:
		s.ProviderRequestIDs = []string{some.ProviderRequestID}
	case 3:
		s.ErrorClasses = []retrylens.ErrorClass{some.ErrorClass, retrylens.ClassTimeout}
	case 4:
		s.Outcomes = []retrylens.Outcome{some.Outcome}
	case 5:
		s.States, s.ErrorClasses = []metrics.State{metrics.StateLost, metrics.StateFailed}, []retrylens.ErrorClass{some.ErrorClass}
	}
	return s
}

// compareSearches walks through all pages.
func compareSearches(t *testing.T, store *clickhouse.Store, attempts []retrylens.Attempt, s metrics.Search) {
	t.Helper()
	for page := 0; ; page++ {
		want, err := metrics.Find(attempts, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Operations(t.Context(), s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%+v: page %d has %d operations, want %d", s, page, len(got), len(want))
		}
		for i := range want {
			if got[i].Place() != want[i].Place() || len(got[i].Records) != len(want[i].Records) || got[i].State != want[i].State {
				t.Fatalf("%+v: page %d: operation %d is %+v, want %+v", s, page, i, got[i].Place(), want[i].Place())
			}
		}
		if len(want) < s.Limit || page > 5 {
			return
		}
		s.After = want[len(want)-1].Place()
	}
}

// TestSearchTextIsNeverSQL: whatever stands in a filter is a value.
func TestSearchTextIsNeverSQL(t *testing.T) {
	store := newStore(t)
	if err := store.Write(t.Context(), histories.Generate(1, 50)); err != nil {
		t.Fatal(err)
	}
	for _, evil := range []string{"'", "') OR 1=1 --", `\`, "{limit:UInt32}", "'; DROP TABLE attempts; --", "\x00", "🙂"} {
		s := metrics.Search{
			Query: metrics.Query{AsOf: histories.Now, Filters: map[metrics.Dimension][]string{}}, Limit: 10,
			LogicalIDs: []string{evil}, IdempotencyKeys: []string{evil}, ProviderRequestIDs: []string{evil},
			ErrorClasses: []retrylens.ErrorClass{retrylens.ErrorClass(evil)}, Outcomes: []retrylens.Outcome{retrylens.Outcome(evil)},
			After: metrics.Cursor{Start: histories.Now, Tenant: evil, LogicalID: evil},
		}
		for _, d := range metrics.Dimensions[:6] {
			s.Filters[d] = []string{evil}
		}
		if ops, err := store.Operations(t.Context(), s); err != nil || len(ops) > 0 {
			t.Errorf("%q: %d operations, %v", evil, len(ops), err)
		}
		if _, err := store.Report(t.Context(), s.Query); err != nil {
			t.Errorf("report of %q: %v", evil, err)
		}
	}
}
