package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Source answers what rules ask. It must be safe for concurrent use.
type Source interface {
	Report(context.Context, metrics.Query) (*metrics.Report, error)
	// Service is how the service is doing, by the names that conditions use without a
	// window; what is not known is left out.
	Service(ctx context.Context, now time.Time) (map[string]float64, error)
}

// Verdicts are the detector's latest: whether a series (tenant, provider, model; empty =
// all) is in a state. Nil = there is no detector, and no state is known.
type Verdicts interface {
	State(series map[metrics.Dimension]string, name string) expr.Truth
}

// finding is the condition of one group at one evaluation.
type finding struct {
	rule   *Rule
	group  []string // parallel to rule.By
	truth  expr.Truth
	values *groupValues
}

// evaluator evaluates rules. It keeps reports of long windows for a while.
type evaluator struct {
	source   Source
	verdicts Verdicts
	reports  map[view]*seen
}

// view is a window and what it is grouped by.
type view struct {
	window time.Duration
	by     string // dimensions, joined
}

// seen is a report, by group.
type seen struct {
	at      time.Time
	rows    map[string]*metrics.Row
	unknown []string // figures without value in every row
}

const keySeparator = "\x00" // no value of a record holds a control character

func groupKey(group []string) string { return strings.Join(group, keySeparator) }

// refresh is how old a report may be: a sixtieth of its window, within 1 s..1 min.
func refresh(window time.Duration) time.Duration {
	return min(max(window/60, time.Second), time.Minute)
}

// evaluate finds out where each rule's condition holds, for every group that has
// operations in one of its windows and for those in alive, which have alerts.
func (e *evaluator) evaluate(ctx context.Context, rules []*Rule, now time.Time, alive func(*Rule) [][]string) ([]finding, error) {
	service, err := e.source.Service(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	var out []finding
	for _, r := range rules {
		windows, err := e.windows(ctx, r, now)
		if err != nil {
			return nil, err
		}
		for _, group := range groups(r, windows, alive(r)) {
			v := &groupValues{rule: r, group: group, windows: windows, service: service, verdicts: e.verdicts}
			out = append(out, finding{r, group, v.truth(), v})
		}
	}
	e.forget(now)
	return out, nil
}

// windows are the reports that a rule needs.
func (e *evaluator) windows(ctx context.Context, r *Rule, now time.Time) (map[time.Duration]*seen, error) {
	out := map[time.Duration]*seen{}
	for _, ref := range r.refs() {
		if ref.Window == 0 || out[ref.Window] != nil {
			continue
		}
		s, err := e.look(ctx, ref.Window, r.By, now)
		if err != nil {
			return nil, fmt.Errorf("alerts: rule %s: window %s: %w", r.Name, ref.Window, err)
		}
		out[ref.Window] = s
	}
	return out, nil
}

func (e *evaluator) look(ctx context.Context, window time.Duration, by []metrics.Dimension, now time.Time) (*seen, error) {
	names := make([]string, len(by))
	for i, d := range by {
		names[i] = string(d)
	}
	key := view{window, groupKey(names)}
	if s := e.reports[key]; s != nil && now.Sub(s.at) < refresh(window) && !now.Before(s.at) {
		return s, nil
	}
	r, err := e.source.Report(ctx, metrics.Query{From: now.Add(-window), To: now, AsOf: now, GroupBy: by})
	if err != nil {
		return nil, err
	}
	s := &seen{at: now, rows: make(map[string]*metrics.Row, len(r.Rows)), unknown: r.Unknown}
	for i := range r.Rows {
		s.rows[groupKey(r.Rows[i].Dims)] = &r.Rows[i]
	}
	if e.reports == nil {
		e.reports = map[view]*seen{}
	}
	e.reports[key] = s
	return s, nil
}

// forget drops reports that no rule asks for any more.
func (e *evaluator) forget(now time.Time) {
	for key, s := range e.reports {
		if now.Sub(s.at) > 2*time.Minute {
			delete(e.reports, key)
		}
	}
}

// groups are all that a rule is evaluated for, each once, in order.
func groups(r *Rule, windows map[time.Duration]*seen, alive [][]string) [][]string {
	if len(r.By) == 0 {
		return [][]string{nil}
	}
	all := map[string][]string{}
	for _, g := range alive {
		all[groupKey(g)] = g
	}
	for _, s := range windows {
		for key, row := range s.rows {
			all[key] = row.Dims
		}
	}
	out := make([][]string, 0, len(all))
	for _, g := range all {
		out = append(out, g)
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// groupValues are the figures of one group. It is an expr.Values.
type groupValues struct {
	rule     *Rule
	group    []string
	windows  map[time.Duration]*seen
	service  map[string]float64
	verdicts Verdicts
}

// truth is the rule's condition, false below the minimum volume.
func (v *groupValues) truth() expr.Truth {
	if v.rule.MinOperations > 0 {
		n, _ := v.Figure(expr.Ref{Name: "operations", Window: v.rule.longest()})
		if uint64(n) < v.rule.MinOperations {
			return expr.False
		}
	}
	return v.rule.Expr.Eval(v)
}

// value is a figure of the group; a group without operations has counters of zero and
// ratios without value.
func (v *groupValues) value(ref expr.Ref) metrics.Value {
	if ref.Window == 0 {
		n, ok := v.service[ref.Name]
		return metrics.Value{Unit: metrics.UnitRatio, Set: ok, Ratio: n}
	}
	s := v.windows[ref.Window]
	if s == nil || slices.Contains(s.unknown, ref.Name) {
		return metrics.Value{Unit: metrics.UnitRatio}
	}
	row := s.rows[groupKey(v.group)]
	if row == nil {
		row = &metrics.Row{}
	}
	got, _ := metrics.Figure(ref.Figure(), *row)
	return got
}

// Figure implements expr.Values.
func (v *groupValues) Figure(ref expr.Ref) (float64, bool) { return v.value(ref).Float64() }

// State implements expr.Values.
func (v *groupValues) State(name string) expr.Truth {
	if v.verdicts == nil {
		return expr.Unknown
	}
	series := map[metrics.Dimension]string{}
	for i, d := range v.rule.By {
		series[d] = v.group[i]
	}
	return v.verdicts.State(series, name)
}

// state is the verdict that the condition asks for and that holds, "" without any.
func (v *groupValues) state() string {
	for _, s := range v.rule.Expr.States() {
		if v.State(s) == expr.True {
			return s
		}
	}
	return ""
}

// labels are those of the group's alert: they tell it from every other.
func (v *groupValues) labels() map[string]string {
	out := map[string]string{"alertname": v.rule.Name, "severity": v.rule.Severity}
	for k, s := range v.rule.Labels {
		out[k] = s
	}
	for i, d := range v.rule.By {
		if v.group[i] != "" { // as Prometheus has it: an empty label is none
			out[string(d)] = v.group[i]
		}
	}
	return out
}

// annotations are the rule's texts with the group's figures in them.
func (v *groupValues) annotations() map[string]string {
	labels := v.labels()
	funcs := map[string]any{
		"label": func(name string) (string, error) { return labels[name], nil },
		"state": v.state,
		"figure": func(name string) (string, error) {
			ref, err := parseRef(name)
			if err != nil {
				return "", err
			}
			return text(v.value(ref)), nil
		},
	}
	out := map[string]string{}
	for name, a := range v.rule.templates {
		s, err := a.render(funcs)
		if err != nil {
			s = "(" + err.Error() + ")"
		}
		out[name] = s
	}
	return out
}
