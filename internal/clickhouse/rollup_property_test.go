package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// Whatever comes late, is revised or sent twice, and wherever finalisers are
// killed, stall or run at once: at every moment a report that uses rollups is the
// reference fold, and in the end the rollups alone are.
func TestRollupsEqualTheFoldsOnRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().Unix() / 86400 * 1000)
	}
	const atLeast, budget = 3, 40 * time.Second
	began := time.Now()
	for i := uint64(0); i < atLeast || time.Since(began) < budget; i++ {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) {
			w := &rollupWorld{store: rolledStore(t), rnd: rand.New(rand.NewPCG(first+i, 7))}
			w.live(t, histories.Generate(first+i, 400))
		})
	}
}

// rollupWorld is a store while attempts come in and finalisers come and go.
type rollupWorld struct {
	store   *clickhouse.Store
	rnd     *rand.Rand
	written []retrylens.Attempt
	stalled []chan struct{} // closed = go on
	running sync.WaitGroup
}

func (w *rollupWorld) live(t *testing.T, attempts []retrylens.Attempt) {
	w.store.SetSliceRows([]uint64{100, 1_000_000}[w.rnd.IntN(2)])
	w.store.SetDirectOperations([]int{-1, 20, 1_000_000}[w.rnd.IntN(3)])
	w.store.SetFinaliseRows([]uint64{3, 30, 1_000_000}[w.rnd.IntN(3)], []int{1, 20, 1_000_000}[w.rnd.IntN(3)])
	broad := metrics.Query{AsOf: histories.Now, GroupBy: metrics.HomeDimensions}
	for len(attempts) > 0 {
		n := min(len(attempts), 1+w.rnd.IntN(250))
		w.write(t, attempts[:n])
		attempts = attempts[n:]
		w.disturb(t)
		compareRolled(t, w.store, w.written, randomQuery(w.rnd, w.written))
		if w.rnd.IntN(2) == 0 && len(attempts) > 0 { // a few late ones, of which rollups know nothing
			finalise(t, w.store, clickhouse.FinaliseOptions{})
			n := min(len(attempts), 1+w.rnd.IntN(4))
			w.write(t, attempts[:n])
			attempts = attempts[n:]
			compareRolled(t, w.store, w.written, broad)
		}
	}
	for _, c := range w.stalled {
		close(c)
	}
	w.running.Wait()
	w.settle(t)
}

func (w *rollupWorld) write(t *testing.T, piece []retrylens.Attempt) {
	t.Helper()
	for range 1 + w.rnd.IntN(2) {
		if err := w.store.Write(t.Context(), piece); err != nil {
			t.Fatal(err)
		}
	}
	w.written = append(w.written, piece...)
}

func (w *rollupWorld) options() clickhouse.FinaliseOptions {
	return clickhouse.FinaliseOptions{AsOf: histories.Base.Add(time.Duration(w.rnd.IntN(60)-20) * time.Minute)}
}

var errKilled = errors.New("killed")

// disturb has finalisers run: to their end, two at once, killed before a statement
// or in the midst of one, or stalled before one until others have gone on.
func (w *rollupWorld) disturb(t *testing.T) {
	t.Helper()
	at, kind := w.rnd.IntN(12), w.rnd.IntN(6)
	switch kind {
	case 0:
		finalise(t, w.store, w.options())
	case 1, 2:
		w.kill(t, at, kind == 2)
	case 3:
		w.stall(t, at)
	case 4:
		w.two(t)
	}
}

// kill ends a pass before its n-th statement, or while that runs.
func (w *rollupWorld) kill(t *testing.T, n int, amidst bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := w.store.Finalise(ctx, w.options().WithSteps(func(string) error {
		if n--; n >= 0 {
			return nil
		}
		if amidst {
			go cancel()
			return nil
		}
		return errKilled
	}))
	if err != nil && !errors.Is(err, errKilled) && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// stall has a pass wait before its n-th statement, with all that it has read, until
// the world ends.
func (w *rollupWorld) stall(t *testing.T, n int) {
	t.Helper()
	reached, resume := make(chan struct{}), make(chan struct{})
	w.stalled = append(w.stalled, resume)
	var once sync.Once
	o := w.options().WithSteps(func(string) error {
		if n--; n < 0 {
			once.Do(func() { close(reached) })
			<-resume
		}
		return nil
	})
	w.running.Go(func() {
		if _, err := w.store.Finalise(t.Context(), o); err != nil {
			t.Error(err)
		}
		once.Do(func() { close(reached) })
	})
	<-reached
}

func (w *rollupWorld) two(t *testing.T) {
	t.Helper()
	var both sync.WaitGroup
	for _, o := range []clickhouse.FinaliseOptions{w.options(), w.options()} {
		both.Go(func() {
			if _, err := w.store.Finalise(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}

// settle finalises to the end and holds the rollups alone to both folds.
func (w *rollupWorld) settle(t *testing.T) {
	t.Helper()
	finalise(t, w.store, clickhouse.FinaliseOptions{})
	st, err := w.store.FinaliserStatus(t.Context())
	if err != nil || st.DirtyMinutes != 0 || !st.Usable {
		t.Fatalf("%+v, %v", st, err)
	}
	from, to := histories.Base.Add(-3*time.Hour), histories.Base.Add(3*time.Hour)
	for _, q := range []metrics.Query{
		{GroupBy: metrics.HomeDimensions, Bucket: time.Minute},
		{GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider}, Bucket: time.Hour},
		{GroupBy: []metrics.Dimension{metrics.DimService, metrics.DimExecutedProvider, metrics.DimExecutedModel}},
		{},
	} {
		q.From, q.To, q.AsOf = from, to, histories.Now
		w.store.SetQuantileRows(0)
		rolled := w.onlyRollups(t, q)
		w.store.SetQuantileRows(1 << 40)
		compareRolled(t, w.store, w.written, q)
		w.store.SetAttemptsWindow(1 << 62)
		direct, err := w.store.Report(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		w.store.SetAttemptsWindow(0)
		if len(rolled.Unknown) > 0 {
			rolled.Unknown = nil
			for i := range direct.Rows {
				direct.Rows[i].Latency, direct.Rows[i].RetryTax = metrics.Quantiles{}, metrics.Quantiles{}
			}
		}
		diffReports(t, q, rolled, direct)
	}
}

func (w *rollupWorld) onlyRollups(t *testing.T, q metrics.Query) *metrics.Report {
	t.Helper()
	report, buckets, spans, err := w.store.PlannedReport(t.Context(), q)
	if err != nil || buckets == 0 || spans > 0 {
		t.Fatalf("%+v: %d buckets, %d spans of attempts, %v", q, buckets, spans, err)
	}
	return report
}
