package web

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// alertLine is an alert in one line.
type alertLine struct {
	Rule, Status, Severity, Since, Until, Summary string
	Href, Runbook                                 string
}

// alertsBody is what is watched, what holds now, and what fired in the window.
type alertsBody struct {
	Evaluated, Error string
	Leading          bool
	Now              []alertLine
	Incidents        []alertLine
	Truncated        bool
	Rules            *table
}

// mostIncidents are shown, of those asked for: others than the viewer's are among them.
const mostIncidents = 100

func (u *UI) alerts(ctx context.Context, s *state) (any, error) {
	list, err := u.o.Source.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	incidents, err := u.o.Source.Incidents(ctx, s.query.From, s.query.To, api.MaxIncidents)
	if err != nil {
		return nil, err
	}
	theirs := api.Visible(ctx, incidents, s.asked)
	b := &alertsBody{Error: list.Error, Leading: list.Leading, Truncated: len(incidents) == api.MaxIncidents || len(theirs) > mostIncidents, Rules: ruleTable(list.Rules)}
	if list.EvaluatedAt != nil {
		b.Evaluated = s.clock(list.EvaluatedAt.Truncate(time.Second))
	}
	b.Now = alertLines(s, api.Visible(ctx, list.Alerts, s.asked), u.o.RunbookURL)
	b.Incidents = alertLines(s, theirs[:min(len(theirs), mostIncidents)], u.o.RunbookURL)
	return b, nil
}

// firing are the alerts that somebody should look at, pages first.
func firing(s *state, all []api.Alert, runbooks string) []alertLine {
	all = slices.DeleteFunc(slices.Clone(all), func(a api.Alert) bool { return a.Status != "firing" && a.Status != "pending" })
	return alertLines(s, all, runbooks)
}

var severities = []string{"page", "ticket", "info"}

func alertLines(s *state, all []api.Alert, runbooks string) []alertLine {
	slices.SortStableFunc(all, func(a, b api.Alert) int {
		if a.Status != b.Status && (a.Status == "firing" || b.Status == "firing") {
			return btoi(b.Status == "firing") - btoi(a.Status == "firing")
		}
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	var out []alertLine
	for i := range all {
		out = append(out, lineOf(s, &all[i], runbooks))
	}
	return out
}

func lineOf(s *state, a *api.Alert, runbooks string) alertLine {
	l := alertLine{Rule: format.Safe(a.Rule), Status: a.Status, Severity: a.Severity, Since: s.clock(a.ActiveAt.Truncate(time.Second)), Href: s.alertLink(a)}
	if a.ResolvedAt != nil {
		l.Until = s.clock(a.ResolvedAt.Truncate(time.Second))
	}
	l.Summary = format.Safe(a.Annotations["summary"])
	if l.Summary == "" {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
			labels = append(labels, name+"="+format.Safe(a.Labels[name]))
		}
		l.Summary = strings.Join(labels, ", ")
	}
	if runbooks != "" && a.Runbook != "" {
		l.Runbook = strings.TrimSuffix(runbooks, "/") + "/" + url.PathEscape(a.Runbook) + ".md"
	}
	return l
}

// alertLink is the triage page of what the alert saw, from half an hour before it began.
func (s *state) alertLink(a *api.Alert) string {
	v := url.Values{query.From: {a.ActiveAt.Add(-30 * time.Minute).UTC().Format(time.RFC3339)}, query.To: {"now"}}
	if a.ResolvedAt != nil {
		v.Set(query.To, a.ResolvedAt.UTC().Format(time.RFC3339))
	}
	if tz := s.values.Get(paramTZ); tz != "" {
		v.Set(paramTZ, tz)
	}
	for _, d := range metrics.HomeDimensions {
		if value := a.Labels[string(d)]; value != "" {
			v.Set(string(d), value)
		}
	}
	return "/?" + v.Encode()
}

func ruleTable(rules []api.Rule) *table {
	t := &table{Caption: "Rules", Empty: "no rules are watched", Columns: []column{
		{Label: "rule"}, {Label: "severity"}, {Label: "condition"}, {Label: "by"}, {Label: "for", Num: true}, {Label: "keeps firing", Num: true}, {Label: "operations at least", Num: true},
	}}
	for _, r := range rules {
		by := make([]string, len(r.By))
		for i, d := range r.By {
			by[i] = string(d)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			{Text: format.Safe(r.Alert)}, {Text: r.Severity}, {Text: format.Safe(r.Expr), Class: "wrap"}, {Text: strings.Join(by, ", ")},
			{Text: format.MS(int64(r.ForSeconds * 1000))}, {Text: format.MS(int64(r.KeepFiringForSeconds * 1000))}, {Text: format.Grouped(r.MinOperations)},
		}})
	}
	return t
}
