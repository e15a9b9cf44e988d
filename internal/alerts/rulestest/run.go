package rulestest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/alerts"
	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

// base is when every test begins.
var base = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// Failure is an expectation that was not met.
type Failure struct {
	Test string
	At   time.Duration
	Got  []string
	Want []string
}

// String says what was expected and what there was.
func (f Failure) String() string {
	return fmt.Sprintf("%s, at %s:\n    got  %s\n    want %s", f.Test, f.At, or(f.Got), or(f.Want))
}

func or(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "; ")
}

// Run plays a test against rules and returns what was not as expected.
func Run(ctx context.Context, rules *alerts.Rules, t *Test) ([]Failure, error) {
	attempts, err := t.attempts(base)
	if err != nil {
		return nil, err
	}
	w := &world{test: t, attempts: attempts, now: base}
	m := alerts.New(alerts.Options{Source: w, Verdicts: w, Rules: rules, Now: func() time.Time { return w.now }})
	var failures []Failure
	expected := t.Expect
	for at := time.Duration(0); at <= t.end(); at += time.Duration(t.Every) {
		w.now = base.Add(at)
		if err := m.Evaluate(ctx); err != nil {
			return nil, err
		}
		for len(expected) > 0 && time.Duration(expected[0].At) < at+time.Duration(t.Every) {
			failures = append(failures, compare(t.Name, expected[0], m.Alerts())...)
			expected = expected[1:]
		}
	}
	return failures, nil
}

func compare(test string, e Expect, all []*alerts.Alert) []Failure {
	var failures []Failure
	for _, s := range []struct {
		status alerts.Status
		want   []map[string]string
	}{{alerts.Firing, e.Firing}, {alerts.Pending, e.Pending}} {
		var got []*alerts.Alert
		for _, a := range all {
			if a.Status == s.status {
				got = append(got, a)
			}
		}
		if s.status == alerts.Pending && e.Pending == nil {
			continue
		}
		if !same(got, s.want) {
			failures = append(failures, Failure{test, time.Duration(e.At), names(got), wanted(s.status, s.want)})
		}
	}
	return failures
}

// same tells whether each wanted set of labels is met by one alert, and none is left.
func same(got []*alerts.Alert, want []map[string]string) bool {
	left := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(left, func(a *alerts.Alert) bool {
			for k, v := range w {
				if a.Labels[k] != v {
					return false
				}
			}
			return true
		})
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return len(left) == 0
}

func names(all []*alerts.Alert) []string {
	var out []string
	for _, a := range all {
		out = append(out, string(a.Status)+" "+labelText(a.Labels))
	}
	return out
}

func wanted(s alerts.Status, want []map[string]string) []string {
	var out []string
	for _, w := range want {
		out = append(out, string(s)+" "+labelText(w))
	}
	return out
}

func labelText(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k != "alertname" {
			parts = append(parts, k+"="+labels[k])
		}
	}
	return labels["alertname"] + "{" + strings.Join(parts, ",") + "}"
}

// world is a test as a source and a detector.
type world struct {
	test     *Test
	attempts []retrylens.Attempt
	now      time.Time
}

// Report folds what has ended by now.
func (w *world) Report(_ context.Context, q metrics.Query) (*metrics.Report, error) {
	var known []retrylens.Attempt
	for _, a := range w.attempts {
		if a.EndUnixMS() <= w.now.UnixMilli() {
			known = append(known, a)
		}
	}
	return metrics.Fold(known, q)
}

// Service is the latest of the test's words.
func (w *world) Service(_ context.Context, now time.Time) (map[string]float64, error) {
	out := map[string]float64{}
	for _, s := range w.test.Service {
		if now.Sub(base) >= time.Duration(s.From) {
			maps.Copy(out, s.Values)
		}
	}
	return out, nil
}

// State is the test's word for a series; healthy without any.
func (w *world) State(series map[metrics.Dimension]string, name string) expr.Truth {
	at := duration(w.now.Sub(base))
	for _, s := range w.test.States {
		if at >= s.From && at < s.To && series[metrics.DimProvider] == s.Provider && series[metrics.DimModel] == s.Model && series[metrics.DimTenant] == s.Tenant {
			return truth(s.State == name)
		}
	}
	return truth(name == "healthy")
}

func truth(b bool) expr.Truth {
	if b {
		return expr.True
	}
	return expr.False
}
