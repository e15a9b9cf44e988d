package api

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Alert is an episode of an alert.
type Alert struct {
	Rule        string            `json:"rule"`
	Status      string            `json:"status" enum:"pending,firing,resolved,dropped"`
	Severity    string            `json:"severity"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Runbook     string            `json:"runbook" doc:"Page of docs/runbooks."`
	ActiveAt    time.Time         `json:"active_at" doc:"Since when the condition held."`
	FiredAt     *time.Time        `json:"fired_at"`
	ResolvedAt  *time.Time        `json:"resolved_at"`
}

// Rule is a condition that is watched.
type Rule struct {
	Alert                string              `json:"alert"`
	Expr                 string              `json:"expr"`
	By                   []metrics.Dimension `json:"by"`
	MinOperations        uint64              `json:"min_operations"`
	ForSeconds           float64             `json:"for_seconds"`
	KeepFiringForSeconds float64             `json:"keep_firing_for_seconds"`
	Severity             string              `json:"severity"`
	Runbook              string              `json:"runbook"`
}

// AlertList is what is watched, and what of it holds now.
type AlertList struct {
	EvaluatedAt *time.Time `json:"evaluated_at" doc:"null: not yet."`
	Leading     bool       `json:"leading" doc:"This process evaluates the rules; else another one does."`
	Error       string     `json:"error" doc:"Of the last evaluation; alerts stay as they were."`
	Alerts      []Alert    `json:"alerts" doc:"Pending, firing, and resolved in the last 15 minutes."`
	Rules       []Rule     `json:"rules"`
	Verdicts    []Verdict  `json:"verdicts" doc:"The detector's latest, of every series and of all (tenant *): at, tenant, provider, model, state, since, votes, signs, figures, contributors, example, …, as analyze detect writes them."`
}

// Verdict is one of the detector's.
type Verdict struct {
	Tenant string
	Body   json.RawMessage
}

// MarshalJSON is the body as it is.
func (v Verdict) MarshalJSON() ([]byte, error) { return v.Body, nil }

// Schema says that it is an object.
func (Verdict) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// IncidentList is what fired in a window, the latest first.
type IncidentList struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Incidents []Alert   `json:"incidents"`
}

// IncidentParams are a window.
type IncidentParams struct {
	WindowParams
	ConditionalParams
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many, at most."`
}

func (a *API) alerts(ctx context.Context, p *StatusParams) (*answer, error) {
	list, err := a.o.Source.Alerts(ctx)
	if err != nil {
		return nil, err
	}
	list.Alerts = Visible(ctx, list.Alerts, nil)
	if tenants, restricted := Tenants(ctx); restricted {
		list.Verdicts = slices.DeleteFunc(slices.Clone(list.Verdicts), func(v Verdict) bool { return !slices.Contains(tenants, v.Tenant) })
	}
	return jsonAnswer(list, p.IfNoneMatch)
}

func (a *API) incidents(ctx context.Context, p *IncidentParams) (*answer, error) {
	q, err := a.parse(ctx, &p.WindowParams)
	if err != nil {
		return nil, err
	}
	all, err := a.o.Source.Incidents(ctx, q.From, q.To, MaxIncidents) // those of others do not use up the limit
	if err != nil {
		return nil, err
	}
	seen := Visible(ctx, all, q.Filters)
	return jsonAnswer(IncidentList{q.From, q.To, seen[:min(len(seen), p.Limit)]}, p.IfNoneMatch)
}

// MaxIncidents is how many a source is asked for.
const MaxIncidents = 1000

// Visible are the alerts that match the filters and that the viewer may see: alerts of
// no tenant are of all, and not for who is restricted.
func Visible(ctx context.Context, all []Alert, filters map[metrics.Dimension][]string) []Alert {
	tenants, restricted := Tenants(ctx)
	out := []Alert{}
	for _, al := range all {
		if restricted && !slices.Contains(tenants, al.Labels[string(metrics.DimTenant)]) {
			continue
		}
		matches := true
		for d, values := range filters {
			matches = matches && slices.Contains(values, al.Labels[string(d)])
		}
		if matches {
			out = append(out, al)
		}
	}
	return out
}
