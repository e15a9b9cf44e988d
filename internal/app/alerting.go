package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/retrylens/retrylens/internal/alerts"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
)

// AlertOptions say which rules are watched and who is told.
type AlertOptions struct {
	RulesFile     string   // "" = alerts.DefaultRules
	Alertmanagers []string // addresses
	Webhooks      []string
	ToOut         bool // messages as JSON lines to Streams.Out
	ExternalURL   string
	RunbookURL    string
	Every         time.Duration // 0 = alerts.DefaultEvery
}

// DefaultEvaluateEvery is the time between evaluations of the rules.
const DefaultEvaluateEvery = alerts.DefaultEvery

// The lease of who evaluates is lost after three evaluations without a word.
const (
	leaseName   = "alerts"
	leaseFactor = 3
)

func (o AlertOptions) check() error {
	if o.Every < 0 || o.Every > time.Minute {
		return usagef("--evaluate-every must be within 1s..1m, got %v", o.Every)
	}
	for name, address := range map[string]string{"--external-url": o.ExternalURL, "--runbook-url": o.RunbookURL} {
		if address != "" && !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			return usagef("%s must begin with http:// or https://, got %.60q", name, address)
		}
	}
	_, err := loadRules(o.RulesFile)
	return err
}

// loadRules reads a file of rules, or the default ones.
func loadRules(file string) (*alerts.Rules, error) {
	if file == "" {
		return alerts.DefaultRules(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--rules: %w", err)
	}
	defer f.Close()
	rules, err := alerts.Load(file, f)
	if err != nil {
		return nil, &UsageError{Err: err}
	}
	return rules, nil
}

// alerting is the watch of analyze serve.
type alerting struct {
	*alerts.Manager
	managers []*alerts.Alertmanager
	lease    *lateLease
	file     string
	logger   *slog.Logger
}

func newAlerting(o AlertOptions, source *consoleSource, verdicts alerts.Verdicts, out io.Writer, logger *slog.Logger) (*alerting, error) {
	rules, err := loadRules(o.RulesFile)
	if err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = DefaultEvaluateEvery
	}
	w := &alerting{lease: &lateLease{store: source.store, ttl: leaseFactor * o.Every, holder: holder()}, file: o.RulesFile, logger: logger}
	links := alerts.Links{External: strings.TrimSuffix(o.ExternalURL, "/"), Runbooks: o.RunbookURL}
	opt := alerts.Options{
		Source: source, Verdicts: verdicts, Journal: &journal{source.store}, Lease: w.lease, Rules: rules, Every: o.Every, Logger: logger,
	}
	for _, address := range o.Alertmanagers {
		am, err := alerts.NewAlertmanager(address, links, logger)
		if err != nil {
			return nil, usagef("--alertmanager: %w", err)
		}
		w.managers = append(w.managers, am)
		opt.Sinks = append(opt.Sinks, am)
	}
	for _, address := range o.Webhooks {
		hook, err := alerts.NewWebhook(address, links)
		if err != nil {
			return nil, usagef("--webhook: %w", err)
		}
		opt.Tellers = append(opt.Tellers, hook)
	}
	if o.ToOut {
		opt.Tellers = append(opt.Tellers, alerts.NewStream(out, links))
	}
	w.Manager = alerts.New(opt)
	return w, nil
}

// holder names this process among all that take part.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.NewString())
}

// reload reads the rules again; a file with faults changes nothing.
func (w *alerting) reload() {
	rules, err := loadRules(w.file)
	if err != nil {
		w.logger.Error("the rules cannot be read again; the old ones stay", "error", err)
		return
	}
	w.SetRules(rules)
	w.logger.Info("the rules have been read again", "rules", len(rules.Rules))
}

// lateLease is a lease of a store that may not be open yet.
type lateLease struct {
	store  *lateStore
	holder string
	ttl    time.Duration
	lease  *clickhouse.Lease
}

// Hold implements alerts.Lease.
func (l *lateLease) Hold(ctx context.Context) (bool, error) {
	if l.lease == nil {
		s, err := l.store.get(ctx)
		if err != nil {
			return false, err
		}
		l.lease = s.NewLease(leaseName, l.holder, l.ttl)
	}
	return l.lease.Hold(ctx)
}

func (l *lateLease) release(ctx context.Context) error {
	if l.lease == nil {
		return nil
	}
	return l.lease.Release(ctx)
}

// journal keeps alerts in the store.
type journal struct{ store *lateStore }

// Load implements alerts.Journal.
func (j *journal) Load(ctx context.Context) ([]*alerts.Alert, error) {
	s, err := j.store.get(ctx)
	if err != nil {
		return nil, err
	}
	bodies, err := s.LiveAlerts(ctx, alerts.UntoldRetention)
	if err != nil {
		return nil, err
	}
	return parseAlerts(bodies)
}

func parseAlerts(bodies []string) ([]*alerts.Alert, error) {
	out := make([]*alerts.Alert, len(bodies))
	for i, b := range bodies {
		if err := json.Unmarshal([]byte(b), &out[i]); err != nil {
			return nil, fmt.Errorf("an alert in the store cannot be read: %w", err)
		}
	}
	return out, nil
}

// Save implements alerts.Journal.
func (j *journal) Save(ctx context.Context, all []*alerts.Alert) error {
	s, err := j.store.get(ctx)
	if err != nil {
		return err
	}
	rows := make([]clickhouse.AlertRow, len(all))
	for i, a := range all {
		rows[i] = clickhouse.AlertRow{
			Rule: a.Rule, GroupKey: strings.Join(a.Group, "\x00"), ActiveAt: a.ActiveAt, Status: string(a.Status), Severity: a.Severity,
			FiredAt: a.FiredAt, ResolvedAt: a.ResolvedAt, Body: a.JSON(),
		}
	}
	return s.SaveAlerts(ctx, rows)
}

// Service implements alerts.Source.
func (s *consoleSource) Service(ctx context.Context, now time.Time) (map[string]float64, error) {
	return asked(ctx, s, func(st *Store) (map[string]float64, error) {
		c, err := st.Completeness(ctx)
		if err != nil {
			return nil, err
		}
		newest, err := st.NewestAttemptAt(ctx)
		out := serviceFigures(c)
		if !newest.IsZero() {
			out["newest_attempt_age_ms"] = float64(now.Sub(newest).Milliseconds())
		}
		return out, err
	})
}

// serviceFigures are what is known of a service, by the names that rules use.
func serviceFigures(c *metrics.Completeness) map[string]float64 {
	out := map[string]float64{}
	if c.RecordsMissing.Set {
		out["records_missing"] = float64(c.RecordsMissing.Value)
	}
	if c.CoverageRatio.Set {
		out["coverage_ratio"] = c.CoverageRatio.Value
	}
	if c.RejectedLines.Set {
		out["rejected_lines"] = float64(c.RejectedLines.Value)
	}
	if c.DeadLetters.Set {
		out["dead_letters"] = float64(c.DeadLetters.Value)
	}
	if c.SpoolAgeMS.Set {
		out["spool_age_ms"] = float64(c.SpoolAgeMS.Value)
	}
	if c.FinaliserLagMS.Set {
		out["finaliser_lag_ms"] = float64(c.FinaliserLagMS.Value)
	}
	return out
}

// Alerts implements api.Source: those of the latest evaluation of this process.
func (s *consoleSource) Alerts(context.Context) (api.AlertList, error) {
	if s.alerting == nil {
		return api.AlertList{}, errors.New("no rules are watched")
	}
	last := s.alerting.Last()
	list := api.AlertList{Leading: last.Leading, Alerts: []api.Alert{}, Rules: []api.Rule{}, Verdicts: []api.Verdict{}}
	if !last.At.IsZero() {
		list.EvaluatedAt = &last.At
	}
	if last.Err != nil {
		list.Error = "the last evaluation failed; the log of the service says why"
	}
	for _, a := range s.alerting.Alerts() {
		list.Alerts = append(list.Alerts, apiAlert(a))
	}
	for _, r := range s.alerting.Rules() {
		list.Rules = append(list.Rules, api.Rule{
			Alert: r.Name, Expr: r.Expr.String(), By: append([]metrics.Dimension{}, r.By...), MinOperations: r.MinOperations,
			ForSeconds: r.For.Seconds(), KeepFiringForSeconds: r.KeepFiringFor.Seconds(), Severity: r.Severity, Runbook: r.Runbook,
		})
	}
	if s.watcher == nil {
		return list, nil
	}
	for _, e := range s.watcher.verdicts.all() {
		body, err := e.AppendJSON(nil)
		if err != nil {
			return list, err
		}
		list.Verdicts = append(list.Verdicts, api.Verdict{Tenant: e.Tenant, Body: body})
	}
	return list, nil
}

// Incidents implements api.Source.
func (s *consoleSource) Incidents(ctx context.Context, from, to time.Time, limit int) ([]api.Alert, error) {
	return asked(ctx, s, func(st *Store) ([]api.Alert, error) {
		bodies, err := st.Incidents(ctx, from, to, limit)
		if err != nil {
			return nil, err
		}
		all, err := parseAlerts(bodies)
		out := make([]api.Alert, len(all))
		for i, a := range all {
			out[i] = apiAlert(a)
		}
		return out, err
	})
}

func apiAlert(a *alerts.Alert) api.Alert {
	return api.Alert{
		Rule: a.Rule, Status: string(a.Status), Severity: a.Severity, Labels: a.Labels, Annotations: a.Annotations, Runbook: a.Runbook,
		ActiveAt: a.ActiveAt, FiredAt: a.FiredAt, ResolvedAt: a.ResolvedAt,
	}
}
