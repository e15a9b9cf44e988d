package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
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

// one is an attempt of an operation of its own that starts then.
func one(id string, start time.Time, outcome retrylens.Outcome) retrylens.Attempt {
	a := retrylens.Attempt{Tenant: "acme", LogicalID: id, Provider: "openai", Model: "m", StartedAt: start, Outcome: outcome, DurationMS: retrylens.Some(int64(100))}
	if outcome == retrylens.OutcomeError {
		a.ErrorClass = retrylens.ClassTimeout
	}
	a.Normalize()
	return a
}

func write(t *testing.T, s *clickhouse.Store, attempts ...retrylens.Attempt) {
	t.Helper()
	if err := s.Write(t.Context(), attempts); err != nil {
		t.Fatal(err)
	}
}

func totals(t *testing.T, s *clickhouse.Store, q metrics.Query) metrics.Counters {
	t.Helper()
	r, err := s.Report(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows[0].Counters
}

// Settlements and prices change rollups of minutes long done; before they are, the
// report reads attempts.
func TestOverlaysDirtyRollups(t *testing.T) {
	s := rolledStore(t)
	attempts := overlaid()
	other := one("other", histories.Base.Add(time.Hour), retrylens.OutcomeSuccess)
	other.Model = "another"
	write(t, s, append(attempts, other)...)
	finalise(t, s, clickhouse.FinaliseOptions{})
	q := metrics.Query{AsOf: histories.Now, From: histories.Base, To: histories.Base.Add(12 * time.Hour)}
	before := totals(t, s, q)
	for _, c := range []struct{ insert, want string }{
		{"settlements VALUES ('openai', 'req-1', 1000, NULL, 2.25, 2)", "2.250000000000"},
		{"prices VALUES ('openai', 'm', '2026-11-01 00:00:00', 2, 0.5, 4, 8, 1)", "2.251830000000"},
		{"prices VALUES ('openai', 'm', '2026-11-01 00:00:00', 4, 0.5, 4, 8, 2)", "2.253030000000"},
	} {
		if err := s.Exec(t.Context(), "INSERT INTO "+s.Database()+"."+c.insert); err != nil {
			t.Fatal(err)
		}
		if st, err := s.FinaliserStatus(t.Context()); err != nil || st.Usable {
			t.Errorf("%s: usable before anybody looked: %+v, %v", c.insert, st, err)
		}
		if got := totals(t, s, q).BilledCostUSD.String(); got != c.want {
			t.Errorf("%s: before the pass %s, want %s", c.insert, got, c.want)
		}
		if r := finalise(t, s, clickhouse.FinaliseOptions{}); r.Minutes != 1 {
			t.Errorf("%s: %+v, want the one minute that it is about", c.insert, r)
		}
		report, buckets, spans, err := s.PlannedReport(t.Context(), q)
		if err != nil || buckets == 0 || spans > 0 {
			t.Fatalf("%d buckets, %d spans, %v", buckets, spans, err)
		}
		if got := report.Rows[0].BilledCostUSD.String(); got != c.want || before.BilledCostUSD.String() == c.want {
			t.Errorf("%s: after the pass %s, want %s", c.insert, got, c.want)
		}
	}
}

// What has expired is never computed anew: its rollups outlive the attempts.
func TestRollupsOutliveTheirAttempts(t *testing.T) {
	c := config(t, enginetest.Shared(t), "retrylens_outlive")
	c.RetentionDays = 30
	s := openStore(t, c)
	s.SetAttemptsWindow(0)
	old := one("old", histories.Base, retrylens.OutcomeSuccess)
	write(t, s, old)
	finalise(t, s, clickhouse.FinaliseOptions{})
	if err := s.Exec(t.Context(), "TRUNCATE TABLE retrylens_outlive.attempts"); err != nil { // as the TTL does
		t.Fatal(err)
	}
	write(t, s, one("late", histories.Base.Add(time.Second), retrylens.OutcomeSuccess))
	later := histories.Base.Add(30 * 24 * time.Hour)
	if r := finalise(t, s, clickhouse.FinaliseOptions{AsOf: later, Everything: true}); r.Expired != 1 || r.Minutes != 0 {
		t.Errorf("%+v, want one expired minute", r)
	}
	q := metrics.Query{AsOf: later, From: histories.Base.Add(-time.Hour), To: histories.Base.Add(8 * time.Hour)}
	if got := totals(t, s, q).Operations; got != 1 {
		t.Errorf("%d operations, want the 1 of the rollup", got)
	}
	if st, err := s.FinaliserStatus(t.Context()); err != nil || st.DirtyMinutes != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// An unfinished operation becomes lost 10 minutes after its last end, in rollups as
// in attempts, and so does it in reports of another time.
func TestOpenOperationsBecomeLost(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("open", histories.Base, retrylens.OutcomeError))
	q := metrics.Query{From: histories.Base, To: histories.Base.Add(12 * time.Hour)}
	ends := histories.Base.Add(100*time.Millisecond + 10*time.Minute)
	state := func(asOf time.Time) [3]uint64 {
		q.AsOf = asOf
		c := totals(t, s, q)
		_, buckets, _, err := s.PlannedReport(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return [3]uint64{c.Open, c.Lost, uint64(buckets)}
	}
	finalise(t, s, clickhouse.FinaliseOptions{AsOf: histories.Base.Add(time.Minute)})
	if a, b := state(ends.Add(-time.Millisecond)), state(ends); a != [3]uint64{1, 0, 1} || b != [3]uint64{0, 1, 0} {
		t.Errorf("from the rollup %v, of a later time %v", a, b)
	}
	if r := finalise(t, s, clickhouse.FinaliseOptions{AsOf: ends.Add(-time.Millisecond)}); r.Minutes != 0 {
		t.Errorf("before the loss: %+v", r)
	}
	if r := finalise(t, s, clickhouse.FinaliseOptions{AsOf: ends}); r.Minutes != 1 {
		t.Errorf("at the loss: %+v", r)
	}
	if a, b := state(ends.Add(-time.Millisecond)), state(ends); a != [3]uint64{1, 0, 0} || b != [3]uint64{0, 1, 1} {
		t.Errorf("of an earlier time %v, from the rollup %v", a, b)
	}
}

// Minutes that still get rows are left alone, but not for ever.
func TestYoungMinutesWait(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	if r := finalise(t, s, clickhouse.FinaliseOptions{MinAge: time.Hour}); r.Minutes != 0 || r.Waiting != 1 {
		t.Errorf("%+v", r)
	}
	st, err := s.FinaliserStatus(t.Context())
	if err != nil || st.DirtyMinutes != 1 || st.LastRunAt.IsZero() || st.Lag < 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if r := finalise(t, s, clickhouse.FinaliseOptions{}); r.Minutes != 1 || r.Waiting != 0 {
		t.Errorf("%+v", r)
	}
}

// Quantiles that rollups do not hold and that would need too many attempts are not
// told, and the report says which.
func TestQuantilesThatCannotBeKnown(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	finalise(t, s, clickhouse.FinaliseOptions{})
	q := metrics.Query{AsOf: histories.Now, From: histories.Base, To: histories.Base.Add(12 * time.Hour), GroupBy: []metrics.Dimension{metrics.DimService}}
	s.SetQuantileRows(0)
	r, err := s.Report(t.Context(), q)
	if err != nil || !slices.Equal(r.Unknown, []string{"latency_ms", "retry_tax_ms"}) || r.Rows[0].Latency.P50.Set || r.Rows[0].Operations != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	s.SetQuantileRows(1000)
	if r, err = s.Report(t.Context(), q); err != nil || r.Unknown != nil || r.Rows[0].Latency.P50.Value != 100 {
		t.Errorf("%+v, %v", r, err)
	}
	q.CountersOnly = true // few attempts or not: they are not read for quantiles
	if r, err = s.Report(t.Context(), q); err != nil || len(r.Unknown) != 2 || r.Rows[0].Latency.P50.Set || r.Rows[0].Operations != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Six hours are read from attempts alone, a moment more from rollups.
func TestShortWindowsReadAttempts(t *testing.T) {
	s := newStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	finalise(t, s, clickhouse.FinaliseOptions{})
	for span, want := range map[time.Duration]bool{6 * time.Hour: false, 6*time.Hour + time.Minute: true} {
		q := metrics.Query{AsOf: histories.Now, From: histories.Base, To: histories.Base.Add(span)}
		r, buckets, _, err := s.PlannedReport(t.Context(), q)
		if err != nil || buckets > 0 != want || r.Rows[0].Operations != 1 {
			t.Errorf("%v: %d buckets, %v", span, buckets, err)
		}
	}
}

// The loop goes on after a pass that failed, and waits longer then.
func TestFinaliserGoesOn(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	rename := func(from, to string) {
		if err := s.Exec(t.Context(), fmt.Sprintf("RENAME TABLE %s.%s TO %s.%s", s.Database(), from, s.Database(), to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("rollup_runs", "gone")
	var waits []time.Duration
	var errs []bool
	f := clickhouse.NewFinaliser(s, clickhouse.FinaliserOptions{
		Every: time.Second, MinAge: time.Nanosecond,
		Done: func(_ clickhouse.FinaliseResult, err error) { errs = append(errs, err != nil) },
		Pause: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			switch len(waits) {
			case 2:
				rename("gone", "rollup_runs")
			case 4:
				return context.Canceled
			}
			return nil
		},
	})
	if err := f.Run(t.Context()); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !slices.Equal(errs, []bool{true, true, false, false}) || !slices.Equal(waits, []time.Duration{time.Second, 2 * time.Second, time.Second, time.Second}) {
		t.Errorf("failed %v, waited %v", errs, waits)
	}
	if st, err := s.FinaliserStatus(t.Context()); err != nil || !st.Usable {
		t.Errorf("%+v, %v", st, err)
	}
}

// What the finaliser rests on: a mark is never visible before the rows that it
// stands for.
func TestMarksAreNeverAheadOfTheirRows(t *testing.T) {
	s := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		for i := range 150 {
			block := make([]retrylens.Attempt, 2000)
			for n := range block {
				block[n] = one(fmt.Sprint("op-", i, "-", n), histories.Base.Add(time.Duration(i)*time.Minute), retrylens.OutcomeSuccess)
			}
			if err := s.Write(ctx, block); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for checks := 0; ; checks++ {
		marked, missing, err := s.MarkedWithoutRows(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) > 0 {
			t.Fatalf("of %d marked minutes %v have no rows", marked, missing)
		}
		select {
		case err := <-done:
			if err != nil || checks == 0 {
				t.Fatalf("%d checks, %v", checks, err)
			}
			return
		default:
		}
	}
}

// A window of two thousand years by the minute costs what is in it.
func TestEndlessWindows(t *testing.T) {
	s := rolledStore(t)
	attempts := []retrylens.Attempt{one("a", histories.Base, retrylens.OutcomeSuccess), one("b", histories.Base.Add(26*time.Hour), retrylens.OutcomeError)}
	write(t, s, attempts...)
	asOf := histories.Base.Add(48 * time.Hour)
	for range 2 {
		for _, q := range []metrics.Query{
			{Bucket: time.Minute, From: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), To: time.Date(2200, 1, 1, 0, 0, 1, 0, time.UTC)},
			{Bucket: time.Minute}, {To: histories.Base.Add(time.Hour)}, {From: histories.Base.Add(time.Hour)},
		} {
			q.AsOf = asOf
			compareRolled(t, s, attempts, q)
		}
		finalise(t, s, clickhouse.FinaliseOptions{AsOf: asOf})
	}
}

// Marks that are done go, so that reports do not read them for ever; those that wait stay.
func TestMarksThatAreDoneAreMerged(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	finalise(t, s, clickhouse.FinaliseOptions{})
	for _, sign := range []string{"1", "-1"} {
		if err := s.Exec(t.Context(), "INSERT INTO "+s.Database()+".rollup_marks SELECT toDateTime(1700000000 + number * 60, 'UTC'), toUUID('00000000-0000-0000-0000-000000000001'), now64(3), "+sign+" FROM numbers(30000)"); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s, one("b", histories.Base.Add(time.Hour), retrylens.OutcomeSuccess))
	if r := finalise(t, s, clickhouse.FinaliseOptions{MinAge: time.Hour}); r.Waiting != 1 {
		t.Errorf("%+v", r)
	}
	var rows uint64
	if err := s.Value(t.Context(), "SELECT count() FROM "+s.Database()+".rollup_marks", &rows); err != nil || rows != 1 {
		t.Errorf("%d rows of marks, %v; want the one that waits", rows, err)
	}
}

// A piece of a series is kept by the versions of its buckets: asked again it is the same, and
// what is computed anew is read anew.
func TestKeptPiecesFollowTheirBuckets(t *testing.T) {
	s := rolledStore(t)
	attempts := histories.Generate(11, 3000)
	write(t, s, attempts...)
	finalise(t, s, clickhouse.FinaliseOptions{})
	queries := []metrics.Query{
		{Bucket: 15 * time.Minute}, {Bucket: 15 * time.Minute, GroupBy: []metrics.Dimension{metrics.DimProvider}}, {Bucket: time.Hour, GroupBy: []metrics.Dimension{metrics.DimExecutedModel}},
		{Bucket: 24 * time.Hour, Filters: map[metrics.Dimension][]string{metrics.DimTenant: {"acme"}}}, {Bucket: time.Hour, GroupBy: []metrics.Dimension{metrics.DimService}, Filters: map[metrics.Dimension][]string{metrics.DimProvider: {"openai"}}},
	}
	compare := func() {
		t.Helper()
		for _, q := range queries {
			for shift := range 3 { // the second and the third are made of the first one's pieces
				q.AsOf, q.From = histories.Now, histories.Base.Add(time.Duration(shift)*time.Minute)
				compareRolled(t, s, attempts, q)
			}
		}
	}
	compare()
	late := one("late", histories.Base.Add(70*time.Minute), retrylens.OutcomeError)
	attempts = append(attempts, late)
	write(t, s, late)
	compare()
	finalise(t, s, clickhouse.FinaliseOptions{})
	compare()
}

// What a look shares never tears what moves: an operation that goes over midnight between two
// reports of one look is in one of the two days.
func TestLooksDoNotTearWhatMoves(t *testing.T) {
	for name, window := range map[string][2]time.Duration{"the new day by its hours": {0, 36 * time.Hour}, "the old day by its hours": {12 * time.Hour, 48 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			s := rolledStore(t)
			if err := s.Exec(t.Context(), "SYSTEM STOP MERGES "+s.Database()+".rollups"); err != nil { // else it may be the merge that tells
				t.Fatal(err)
			}
			day := histories.Base.Truncate(24 * time.Hour)
			second := one("moves", day.Add(24*time.Hour+30*time.Second), retrylens.OutcomeSuccess)
			second.Attempt, second.Cause = 1, retrylens.CausePolicy
			write(t, s, one("still", day.Add(12*time.Hour), retrylens.OutcomeSuccess), second)
			finalise(t, s, clickhouse.FinaliseOptions{})
			look := clickhouse.Together(t.Context())
			q := metrics.Query{AsOf: histories.Now, From: day, To: day.Add(48 * time.Hour)}
			if _, err := s.Report(look, q); err != nil {
				t.Fatal(err)
			}
			write(t, s, one("moves", day.Add(24*time.Hour-10*time.Second), retrylens.OutcomeSuccess))
			finalise(t, s, clickhouse.FinaliseOptions{})
			q.From, q.To = day.Add(window[0]), day.Add(window[1])
			r, err := s.Report(look, q)
			if err != nil || r.Rows[0].Operations != 2 {
				t.Errorf("%+v, %v; before and after there are 2 operations", r.Rows, err)
			}
		})
	}
}

// Buckets may be as wide as a Duration is, and the first may start where 1970 did.
func TestWideBuckets(t *testing.T) {
	s := rolledStore(t)
	attempts := []retrylens.Attempt{one("a", histories.Base, retrylens.OutcomeSuccess), one("b", histories.Base.Add(26*time.Hour), retrylens.OutcomeError)}
	write(t, s, attempts...)
	asOf := histories.Base.Add(48 * time.Hour)
	for range 2 {
		for _, hours := range []time.Duration{24, 36500 * 24, 1_000_000, 1_193_047, 2_500_000} {
			for range 2 { // the second time from what is kept
				compareRolled(t, s, attempts, metrics.Query{AsOf: asOf, Bucket: hours * time.Hour})
				compareRolled(t, s, attempts, metrics.Query{AsOf: asOf, Bucket: hours * time.Hour, GroupBy: []metrics.Dimension{metrics.DimExecutedModel}})
			}
		}
		finalise(t, s, clickhouse.FinaliseOptions{AsOf: asOf})
	}
}

// A merge that the engine refuses fails no pass whose work is done.
func TestPassesDoNotDependOnMerges(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	if err := s.Exec(t.Context(), "INSERT INTO "+s.Database()+".rollup_marks SELECT toDateTime(1700000000 + number * 60, 'UTC'), toUUID('00000000-0000-0000-0000-000000000001'), now64(3), -1 FROM numbers(30000)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Exec(t.Context(), "SYSTEM STOP MERGES "+s.Database()+".rollup_marks"); err != nil {
		t.Fatal(err)
	}
	if r := finalise(t, s, clickhouse.FinaliseOptions{}); r.MergeErr == nil || r.Minutes != 1 {
		t.Errorf("%+v", r)
	}
	if err := s.Exec(t.Context(), "SYSTEM START MERGES "+s.Database()+".rollup_marks"); err != nil {
		t.Fatal(err)
	}
	if r := finalise(t, s, clickhouse.FinaliseOptions{}); r.MergeErr != nil {
		t.Errorf("asked again within the hour: %+v", r)
	}
}

// A mark that two finalisers end is ended once.
func TestMarksAreEndedOnce(t *testing.T) {
	s := rolledStore(t)
	write(t, s, one("a", histories.Base, retrylens.OutcomeSuccess))
	o := clickhouse.FinaliseOptions{AsOf: histories.Now}
	ended := false
	o = o.WithSteps(func(name string) error {
		if name != "remove marks" {
			return nil
		}
		ended = true
		_, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{AsOf: histories.Now})
		return err
	})
	finalise(t, s, o)
	var least int64
	if !ended {
		t.Error("no marks were removed")
	}
	if err := s.Value(t.Context(), "SELECT min(n) FROM (SELECT sum(sign) AS n FROM "+s.Database()+".rollup_marks GROUP BY minute, mark)", &least); err != nil || least != 0 {
		t.Errorf("marks sum up to %d, %v", least, err)
	}
}
