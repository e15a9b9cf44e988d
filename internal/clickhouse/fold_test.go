package clickhouse_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/conformance"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

var seed = flag.Uint64("seed", 0, "seed of the property tests; 0 = one of the day")

// The scripts run on the fold in SQL; that a few operations are folded here does
// not spare it any of them.
func TestFoldConformsToTheReference(t *testing.T) { conformance.Run(t, folder{inSQL(newStore(t))}) }

// inSQL has every operation folded by the engine.
func inSQL(s *clickhouse.Store) *clickhouse.Store {
	s.SetDirectOperations(-1)
	return s
}

// The fold in SQL and the reference fold agree on every figure of every group,
// whatever the history, its order and how often it is sent.
func TestFoldEqualsTheReferenceOnRandomHistories(t *testing.T) {
	store := newStore(t)
	first := *seed
	if first == 0 {
		first = uint64(time.Now().Unix() / 86400 * 1000)
	}
	for i := range uint64(12) {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) { compareFolds(t, store, first+i) })
	}
}

func compareFolds(t *testing.T, store *clickhouse.Store, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	attempts := histories.Generate(seed, 1500)
	writeInPieces(t, store, attempts, rnd)
	store.SetSliceRows([]uint64{1, 200, 1_000_000}[rnd.IntN(3)])
	store.SetDirectOperations([]int{-1, -1, 20, 1_000_000}[rnd.IntN(4)])
	for range 4 {
		q := randomQuery(rnd, attempts)
		want, err := metrics.Fold(attempts, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Report(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		diffReports(t, q, got, want)
	}
}

// writeInPieces empties the store and writes the attempts in random pieces, some
// of them twice.
func writeInPieces(t *testing.T, store *clickhouse.Store, attempts []retrylens.Attempt, rnd *rand.Rand) {
	t.Helper()
	if err := store.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	for piece := range slices.Chunk(attempts, 1+rnd.IntN(len(attempts))) {
		for range 1 + rnd.IntN(2) {
			if err := store.Write(t.Context(), piece); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func randomQuery(rnd *rand.Rand, attempts []retrylens.Attempt) metrics.Query {
	q := metrics.Query{AsOf: histories.Base.Add(time.Duration(rnd.IntN(30)) * time.Minute)}
	if rnd.IntN(4) > 0 {
		q.From = attempts[rnd.IntN(len(attempts))].OperationStartedAt.Add(time.Duration(rnd.IntN(120_000)-60_000) * time.Millisecond)
	}
	if rnd.IntN(4) > 0 {
		q.To = attempts[rnd.IntN(len(attempts))].OperationStartedAt.Add(time.Duration(rnd.IntN(120_000)) * time.Millisecond)
	}
	if !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From) {
		q.From, q.To = q.To, q.From
	}
	dims := metrics.Dimensions[:6]
	if rnd.IntN(3) == 0 {
		dims = []metrics.Dimension{metrics.DimTenant, metrics.DimService, metrics.DimExecutedProvider, metrics.DimExecutedModel}
	}
	for _, d := range dims {
		if rnd.IntN(3) == 0 {
			q.GroupBy = append(q.GroupBy, d)
		}
	}
	if rnd.IntN(3) == 0 {
		q.Bucket = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[rnd.IntN(4)]
	}
	if rnd.IntN(3) == 0 {
		some := attempts[rnd.IntN(len(attempts))]
		q.Filters = map[metrics.Dimension][]string{metrics.DimProvider: {some.Provider, "nobody"}}
		if rnd.IntN(2) == 0 {
			q.Filters[metrics.DimTenant] = []string{some.Tenant}
		}
	}
	return q
}

// diffReports compares everything but quantiles exactly.
func diffReports(t *testing.T, q metrics.Query, got, want *metrics.Report) {
	t.Helper()
	if len(got.Rows) != len(want.Rows) {
		t.Fatalf("%+v: %d rows, want %d", q, len(got.Rows), len(want.Rows))
	}
	for i := range want.Rows {
		g, w := got.Rows[i], want.Rows[i]
		for _, pair := range [][2]metrics.Quantiles{{g.Latency, w.Latency}, {g.RetryTax, w.RetryTax}} {
			if !near(pair[0].P50, pair[1].P50) || !near(pair[0].P90, pair[1].P90) || !near(pair[0].P99, pair[1].P99) {
				t.Errorf("%+v row %v: quantiles %v, want %v", q, w.Key, pair[0], pair[1])
			}
		}
		g.Latency, g.RetryTax = w.Latency, w.RetryTax
		if a, b := string(g.AppendJSON(nil, q.GroupBy)), string(w.AppendJSON(nil, q.GroupBy)); a != b {
			t.Errorf("%+v row %v:\n got %s\nwant %s", q, w.Key, a, b)
		}
	}
	got.Rows, want.Rows = nil, nil
	if got.Completeness != nil && want.Completeness != nil { // that of the store: no fold knows it
		got.Completeness.FinaliserLagMS = want.Completeness.FinaliserLagMS
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("%+v:\n got %s\nwant %s", q, a, b)
	}
}

func near(got, want retrylens.Opt[int64]) bool {
	return got.Set == want.Set && math.Abs(float64(got.Value-want.Value)) <= 0.005*math.Abs(float64(want.Value))
}

// An operation of more records than SQL folds takes another road to the same
// figures, on both sides of the limit, whichever of its rows come first, and
// whatever it is filtered by.
func TestFoldOfLargeOperations(t *testing.T) {
	store := inSQL(newStore(t))
	for _, n := range []int32{clickhouse.MaxRecords, clickhouse.MaxRecords + 1, 500} {
		attempts := longOperation(n)
		for _, order := range [][]retrylens.Attempt{attempts, backwards(attempts)} {
			if err := store.Empty(t.Context()); err != nil {
				t.Fatal(err)
			}
			// Two parts, so that either half can be read first.
			for _, half := range [][]retrylens.Attempt{order[:n/2], order[n/2:]} {
				if err := store.Write(t.Context(), half); err != nil {
					t.Fatal(err)
				}
			}
			for _, q := range largeQueries {
				want, err := metrics.Fold(attempts, q)
				if err != nil {
					t.Fatal(err)
				}
				got, err := store.Report(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				diffReports(t, q, got, want)
			}
		}
	}
}

func backwards(attempts []retrylens.Attempt) []retrylens.Attempt {
	out := slices.Clone(attempts)
	slices.Reverse(out)
	return out
}

// largeQueries include what only the operation's first record answers: its home
// and its start.
var largeQueries = []metrics.Query{
	{AsOf: histories.Now, GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimExecutedModel}},
	{AsOf: histories.Now, GroupBy: []metrics.Dimension{metrics.DimModel}, Bucket: time.Minute},
	{AsOf: histories.Now, Filters: map[metrics.Dimension][]string{metrics.DimModel: {"home"}}},
	{AsOf: histories.Now, Filters: map[metrics.Dimension][]string{metrics.DimModel: {"m1"}}},
	{AsOf: histories.Now, From: histories.Base, To: histories.Base.Add(time.Second)},
	{AsOf: histories.Now, From: histories.Base.Add(time.Second)},
}

// longOperation fails and is replayed in turn, on two hops, and succeeds at last.
func longOperation(n int32) []retrylens.Attempt {
	var out []retrylens.Attempt
	for i := range n {
		a := retrylens.Attempt{
			Tenant: "t", LogicalID: "long", Hop: retrylens.Hops[i%2], Attempt: i / 2, Provider: "p", Model: fmt.Sprint("m", i%3),
			OperationStartedAt: histories.Base.Add(time.Minute), StartedAt: histories.Base.Add(time.Duration(60+i) * time.Second),
			Outcome: retrylens.OutcomeError, ErrorClass: retrylens.ClassTimeout, PromptTokens: retrylens.Some(int64(i)), DurationMS: retrylens.Some(int64(100)),
		}
		if i < 2 { // the first of each hop says where the operation belongs
			a.Model, a.OperationStartedAt = "home", histories.Base
		}
		switch {
		case i >= n-2:
			a.Outcome, a.ErrorClass = retrylens.OutcomeSuccess, ""
		case i%5 == 1:
			a.Outcome, a.ErrorClass, a.ReplayOf = retrylens.OutcomeReplayed, "", retrylens.Some(max(0, i/2-1))
		}
		a.Normalize()
		out = append(out, a)
	}
	return out
}

// Each operation is judged once per report, whatever is inserted again or merged
// while it runs.
func TestReportIsStableUnderInsertsAndMerges(t *testing.T) {
	store := inSQL(newStore(t))
	attempts := histories.Generate(7, 3000)
	if err := store.Write(t.Context(), attempts); err != nil {
		t.Fatal(err)
	}
	q := metrics.Query{AsOf: histories.Now}
	want, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- disturb(ctx, store, attempts) }()
	for range 8 {
		got, err := store.Report(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		copied := *want
		diffReports(t, q, got, &copied)
	}
	stop()
	if err := <-done; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

func disturb(ctx context.Context, store *clickhouse.Store, attempts []retrylens.Attempt) error {
	for ctx.Err() == nil {
		for piece := range slices.Chunk(attempts, 500) {
			if err := store.Write(ctx, piece); err != nil {
				return err
			}
		}
		if err := store.Exec(ctx, "OPTIMIZE TABLE "+store.Database()+".attempts FINAL"); err != nil {
			return err
		}
	}
	return nil
}
