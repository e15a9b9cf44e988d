package app

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/sim"
)

// TestTheWatcherSeesAMaskedOutage says who and which, shows it to rules,
// pages and Prometheus, and goes on where it was after a restart.
func TestTheWatcherSeesAMaskedOutage(t *testing.T) {
	start := time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Hour)
	const outage = time.Hour
	var attempts []retrylens.Attempt
	err := sim.Run(t.Context(), sim.Options{Scenario: "masked_outage", Seed: 5, Start: start, Duration: 90 * time.Minute, OperationsPerMinute: 240, At: outage, For: 25 * time.Minute, Size: 4},
		func(a *retrylens.Attempt) error { attempts = append(attempts, *a); return nil })
	if err != nil {
		t.Fatal(err)
	}
	source := &remembered{attempts: attempts}
	w := watch(t, source, start.Add(5*time.Minute), start.Add(outage+4*time.Minute))
	page, ok := paging(w)
	if !ok {
		t.Fatalf("4 minutes into the outage: %+v", w.verdicts.all())
	}
	if page.Provider != "openai" || page.State != detect.MaskedOutage || page.Example == "" || len(page.Contributors) == 0 || len(page.Votes) < 3 {
		t.Errorf("%+v", page)
	}
	series := map[metrics.Dimension]string{metrics.DimTenant: page.Tenant, metrics.DimProvider: page.Provider, metrics.DimModel: page.Model}
	if got := w.verdicts.State(series, "masked_outage"); got != expr.True {
		t.Errorf("rules are told %v", got)
	}
	shown, err := w.verdicts.Verdicts(t.Context())
	if err != nil || len(shown) != len(w.verdicts.all()) {
		t.Errorf("%+v %v", shown, err)
	}
	states := 0
	for _, s := range w.verdicts.States() {
		if s.State == "masked_outage" && s.Provider == "openai" {
			states++
		}
	}
	if states == 0 {
		t.Error("Prometheus sees no masked outage")
	}
	again := watch(t, source, start.Add(outage+4*time.Minute), start.Add(outage+5*time.Minute))
	if same, ok := paging(again); !ok || !same.Since.Equal(page.Since) || same.Key != page.Key {
		t.Errorf("after a restart %+v, was %+v", same, page)
	}
}

// remembered answers from memory, by the reference fold, as what had ended by then was
// known.
type remembered struct {
	attempts []retrylens.Attempt
	states   map[string][]byte
}

func (r *remembered) known(at time.Time) []retrylens.Attempt {
	var out []retrylens.Attempt
	for _, a := range r.attempts {
		if a.EndUnixMS() <= at.UnixMilli() && at.Sub(a.OperationStartedAt) < 20*time.Minute {
			out = append(out, a)
		}
	}
	return out
}

func (r *remembered) Report(_ context.Context, q metrics.Query) (*metrics.Report, error) {
	return metrics.Fold(r.known(q.AsOf), q)
}

func (r *remembered) Operations(_ context.Context, s metrics.Search) ([]metrics.Operation, error) {
	return metrics.Find(r.known(s.AsOf), s)
}

func (r *remembered) EachDetectorState(_ context.Context, each func([]byte) error) error {
	for _, b := range r.states {
		if err := each(b); err != nil {
			return err
		}
	}
	return nil
}

func (r *remembered) SaveDetectorStates(_ context.Context, states []clickhouse.DetectorState) error {
	if r.states == nil {
		r.states = map[string][]byte{}
	}
	for _, s := range states {
		r.states[s.Tenant+"/"+s.Provider+"/"+s.Model] = s.Body
	}
	return nil
}

// watch is a new watcher that takes back what was saved and judges (from, to].
func watch(t *testing.T, source watched, from, to time.Time) *watcher {
	t.Helper()
	w, err := newWatcher(source, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at := from.Truncate(detect.Interval).Add(detect.Interval); !at.After(to); at = at.Add(detect.Interval) {
		if err := w.round(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// paging is the first series, all aside, that pages.
func paging(w *watcher) (detect.Evaluation, bool) {
	for _, e := range w.verdicts.all() {
		if e.Key != detect.All && e.State.Pages() {
			return e, true
		}
	}
	return detect.Evaluation{}, false
}
