package gauges

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Options make gauges.
type Options struct {
	Source Source
	// Lag tells how far the rollups are behind; nil = not shown.
	Lag func(context.Context) (time.Duration, error)
	// States are the detector's latest verdicts; nil = not shown.
	States func() []State
	Top    int              // series of a window besides other; 0 = DefaultTop
	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // nil = none
}

// State is a state, or a sign, that the detector sees of a series.
type State struct{ Tenant, Provider, Model, State string }

// DefaultTop bounds the series of a window: 200 × about 40 gauges.
const DefaultTop = 200

// maxIntervals is after how many of its intervals a view is too old to be shown.
const maxIntervals = 8

// Gauges is a prometheus.Collector. It is safe for concurrent use.
type Gauges struct {
	o     Options
	views []atomic.Pointer[view] // parallel to Windows
	lag   atomic.Pointer[time.Duration]
	fails atomic.Uint64
}

// New returns gauges that show nothing until Refresh has run.
func New(o Options) *Gauges {
	if o.Top == 0 {
		o.Top = DefaultTop
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Gauges{o: o, views: make([]atomic.Pointer[view], len(Windows))}
}

// Run refreshes what is due until ctx ends. pause waits between the rounds; nil = a
// timer.
func (g *Gauges) Run(ctx context.Context, pause func(context.Context, time.Duration) error) error {
	if pause == nil {
		pause = sleep
	}
	for {
		if err := g.Refresh(ctx); err != nil && ctx.Err() == nil {
			g.o.Logger.Warn("gauges: a snapshot failed and will be tried again", "error", err)
		}
		if err := pause(ctx, Windows[0].Every); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Refresh takes the views that are due. One that fails stays as it was.
func (g *Gauges) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return errors.Join(g.refreshViews(ctx), g.refreshLag(ctx))
}

// refreshTimeout is how long the store may take.
const refreshTimeout = 30 * time.Second

func (g *Gauges) refreshViews(ctx context.Context) error {
	now := g.o.Now()
	for i, w := range Windows {
		if old := g.views[i].Load(); old != nil && now.Sub(old.at) < w.Every {
			continue
		}
		v, err := take(ctx, g.o.Source, w, now, g.o.Top)
		if err != nil {
			g.fails.Add(1)
			return fmt.Errorf("gauges: window %s: %w", w.Name, err)
		}
		g.views[i].Store(v)
	}
	return nil
}

func (g *Gauges) refreshLag(ctx context.Context) error {
	if g.o.Lag == nil {
		return nil
	}
	lag, err := g.o.Lag(ctx)
	if err != nil {
		g.fails.Add(1)
		g.lag.Store(nil)
		return fmt.Errorf("gauges: lag of the rollups: %w", err)
	}
	g.lag.Store(&lag)
	return nil
}

// Describe implements prometheus.Collector: none are described, since which series
// there are is known at a scrape only.
func (g *Gauges) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(ch chan<- prometheus.Metric) {
	now := g.o.Now()
	fresh := -1
	for i := range g.views {
		v := g.views[i].Load()
		if v == nil {
			continue
		}
		age := now.Sub(v.at)
		ch <- gauge(descAge, age.Seconds(), v.window.Name)
		if age <= maxIntervals*v.window.Every {
			v.collect(ch)
			fresh = i
		}
	}
	if fresh >= 0 {
		collectCompleteness(ch, g.views[fresh].Load().completeness)
	}
	ch <- prometheus.MustNewConstMetric(descFailures, prometheus.CounterValue, float64(g.fails.Load()))
	if lag := g.lag.Load(); lag != nil {
		ch <- gauge(descLag, lag.Seconds())
	}
	g.collectStates(ch)
}

// collectStates shows the states that hold, at most as many series as a window has; those
// that page come first.
func (g *Gauges) collectStates(ch chan<- prometheus.Metric) {
	if g.o.States == nil {
		return
	}
	all := g.o.States()
	slices.SortStableFunc(all, func(a, b State) int { return compareBool(a.calm(), b.calm()) })
	for _, s := range all[:min(len(all), 2*g.o.Top)] {
		ch <- gauge(descState, 1, s.Tenant, s.Provider, s.Model, s.State)
	}
}

func (s State) calm() bool { return s.State == "healthy" || s.State == "flaky" }

var (
	descAge      = desc("snapshot_age_seconds", "How old the figures of a window are.", "window")
	descFailures = desc("snapshot_failures_total", "Snapshots that failed.")
	descLag      = desc("finaliser_lag_seconds", "Age of the oldest change that the rollups do not hold yet.")

	descState = desc("detector_state", "1 for the state that the detector sees of a series, and for each of its signs.", "tenant", "provider", "model", "state")

	descMissing  = desc("records_missing", "Records that emitters counted and that never arrived.")
	descCoverage = desc("coverage_ratio", "Records received / records that emitters counted.")
	descRejected = desc("rejected_lines", "Lines that the ingest services refused.")
	descDead     = desc("dead_letters", "Records that the store refused and that lie in a dead-letter file.")
	descSpoolAge = desc("spool_age_seconds", "Age of the oldest record that waits in a spool.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("retrylens_"+name, help, labels, nil)
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func collectCompleteness(ch chan<- prometheus.Metric, c *metrics.Completeness) {
	if c == nil {
		return
	}
	collectOpt(ch, descMissing, c.RecordsMissing, 1)
	collectOpt(ch, descCoverage, c.CoverageRatio, 1)
	collectOpt(ch, descRejected, c.RejectedLines, 1)
	collectOpt(ch, descDead, c.DeadLetters, 1)
	collectOpt(ch, descSpoolAge, c.SpoolAgeMS, 1000)
}

// collectOpt leaves out what is not known.
func collectOpt[T uint64 | int64 | float64](ch chan<- prometheus.Metric, d *prometheus.Desc, v retrylens.Opt[T], per float64) {
	if v.Set {
		ch <- gauge(d, float64(v.Value)/per)
	}
}
