package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/gauges"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web"
)

const (
	// saveRounds is how many rounds go by between saving everything that the detector
	// knows; what changed is saved at once.
	saveRounds = 20
	// forgetAfter is for how long a series without operations is remembered.
	forgetAfter = 14 * 24 * time.Hour
	// maxExplained is how many series that page are explained in a round.
	maxExplained = 10
)

// watched is what a watcher asks, and where it keeps what it has learned.
type watched interface {
	Report(context.Context, metrics.Query) (*metrics.Report, error)
	Operations(context.Context, metrics.Search) ([]metrics.Operation, error)
	EachDetectorState(ctx context.Context, each func(body []byte) error) error
	SaveDetectorStates(context.Context, []clickhouse.DetectorState) error
}

// watcher has the detector judge every series each quarter of a minute. Every analyzer has
// one of its own; the one that leads saves what it has learned.
type watcher struct {
	source   watched
	detector *detect.Detector
	verdicts verdicts
	leads    func() bool
	logger   *slog.Logger
	rounds   int
}

func newWatcher(source watched, logger *slog.Logger) (*watcher, error) {
	d, err := detect.New(detect.Options{})
	if err != nil {
		return nil, err
	}
	return &watcher{source: source, detector: d, logger: logger, leads: func() bool { return true }}, nil
}

// run judges until ctx ends.
func (w *watcher) run(ctx context.Context) {
	restored := false
	for {
		at := time.Now().UTC().Truncate(detect.Interval).Add(detect.Interval)
		if err := pause(ctx, time.Until(at)); err != nil {
			return
		}
		err := error(nil)
		if !restored {
			err = w.restore(ctx)
			restored = err == nil
		}
		if err == nil {
			err = w.round(ctx, at)
		}
		if err != nil && ctx.Err() == nil {
			w.logger.Warn("the detector could not judge; verdicts stay as they are", "error", err)
		}
	}
}

// restore takes back what was learned before a restart. A state of another version is
// learned anew.
func (w *watcher) restore(ctx context.Context) error {
	return w.source.EachDetectorState(ctx, func(body []byte) error {
		if err := w.detector.Restore(body); err != nil {
			w.logger.Warn("what the detector knew of a series cannot be read and is learned anew", "error", err)
		}
		return nil
	})
}

// round judges the moment at.
func (w *watcher) round(ctx context.Context, at time.Time) error {
	r, err := w.source.Report(ctx, detectQuery(at))
	if err != nil {
		return err
	}
	evaluations, err := w.detector.Round(at, samplesOf(r))
	if err != nil {
		return err
	}
	w.explain(ctx, r, evaluations)
	w.verdicts.set(evaluations)
	w.detector.Forget(at.Add(-forgetAfter))
	for i := range evaluations {
		if e := &evaluations[i]; e.Changed() {
			w.logger.Info("the detector's verdict has changed", "tenant", e.Tenant, "provider", e.Provider, "model", e.Model, "state", e.State, "was", e.Previous)
		}
	}
	return w.save(ctx, evaluations)
}

// explain adds the largest contributors and an example to verdicts that page.
func (w *watcher) explain(ctx context.Context, r *metrics.Report, evaluations []detect.Evaluation) {
	explained := 0
	for i := range evaluations {
		e := &evaluations[i]
		if !e.State.Pages() || explained == maxExplained {
			continue
		}
		explained++
		if err := w.explainOne(ctx, r, e); err != nil {
			w.logger.Debug("a verdict is not explained", "error", err)
		}
	}
}

func (w *watcher) explainOne(ctx context.Context, r *metrics.Report, e *detect.Evaluation) error {
	var rows []metrics.Row
	for i := range r.Rows {
		if e.Key == detect.All || keyOf(&r.Rows[i]) == e.Key {
			rows = append(rows, r.Rows[i])
		}
	}
	q := metrics.Query{From: r.From, To: r.To, AsOf: r.AsOf, GroupBy: []metrics.Dimension{metrics.DimService}, Filters: filtersOf(e.Key)}
	services, err := w.source.Report(ctx, q)
	if err != nil {
		return err
	}
	parts := detect.PartsOf(metrics.DimProvider, 1, rows)
	parts = append(parts, detect.PartsOf(metrics.DimModel, 2, rows)...)
	parts = append(parts, detect.PartsOf(metrics.DimService, 0, services.Rows)...)
	e.Contributors = detect.Contributors(parts, e.Classes)
	e.Example, err = w.example(ctx, q, e)
	return err
}

// example is the latest operation that failed in the way that stands out.
func (w *watcher) example(ctx context.Context, q metrics.Query, e *detect.Evaluation) (string, error) {
	q.GroupBy = nil
	search := metrics.Search{Query: q, Limit: 1}
	if len(e.Classes) > 0 {
		search.ErrorClasses = []retrylens.ErrorClass{retrylens.ErrorClass(e.Classes[0].Class)}
	}
	ops, err := w.source.Operations(ctx, search)
	if err != nil || len(ops) == 0 {
		return "", err
	}
	return ops[0].LogicalID, nil
}

func keyOf(row *metrics.Row) detect.Key {
	return detect.Key{Tenant: row.Dims[0], Provider: row.Dims[1], Model: row.Dims[2]}
}

func filtersOf(k detect.Key) map[metrics.Dimension][]string {
	if k == detect.All {
		return map[metrics.Dimension][]string{}
	}
	return map[metrics.Dimension][]string{metrics.DimTenant: {k.Tenant}, metrics.DimProvider: {k.Provider}, metrics.DimModel: {k.Model}}
}

// save keeps what has changed, and now and then everything.
func (w *watcher) save(ctx context.Context, evaluations []detect.Evaluation) error {
	w.rounds++
	if !w.leads() {
		return nil
	}
	var states []clickhouse.DetectorState
	for i := range evaluations {
		e := &evaluations[i]
		if !e.Changed() && w.rounds%saveRounds != 0 {
			continue
		}
		body, err := w.detector.Snapshot(e.Key)
		if err != nil {
			return err
		}
		states = append(states, clickhouse.DetectorState{Tenant: e.Tenant, Provider: e.Provider, Model: e.Model, Body: body})
	}
	if len(states) == 0 {
		return nil
	}
	return w.source.SaveDetectorStates(ctx, states)
}

// all are the latest evaluations, in order.
func (v *verdicts) all() []detect.Evaluation {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]detect.Evaluation(nil), v.sorted...)
}

// Verdicts implements web.Detector.
func (v *verdicts) Verdicts(context.Context) ([]web.Verdict, error) {
	var out []web.Verdict
	for _, e := range v.all() {
		w := web.Verdict{State: string(e.State), Since: e.Since, Example: e.Example}
		if e.Key != detect.All {
			w.Tenant, w.Provider, w.Model = e.Tenant, e.Provider, e.Model
		}
		if len(e.Classes) > 0 && e.State.Pages() {
			w.Class = e.Classes[0].Class
		}
		out = append(out, w)
	}
	return out, nil
}

// States are what /metrics shows: the state of every series, and its signs.
func (v *verdicts) States() []gauges.State {
	var out []gauges.State
	for _, e := range v.all() {
		if e.Key == detect.All || !e.Judged && !e.State.Pages() {
			continue
		}
		out = append(out, gauges.State{Tenant: e.Tenant, Provider: e.Provider, Model: e.Model, State: string(e.State)})
		for _, s := range e.Signs {
			out = append(out, gauges.State{Tenant: e.Tenant, Provider: e.Provider, Model: e.Model, State: string(s)})
		}
	}
	return out
}
