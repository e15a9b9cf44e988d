package api

import (
	"context"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Status is the state of the service and of its store. What is null is not known.
type Status struct {
	Version           string                `json:"version"`
	StartedAt         time.Time             `json:"started_at"`
	Store             string                `json:"store" doc:"The store's address, without secrets; empty for viewers of some tenants."`
	ClickHouseVersion string                `json:"clickhouse_version"`
	SchemaVersion     int                   `json:"schema_version"`
	RetentionDays     int                   `json:"retention_days"`
	FreeBytes         uint64                `json:"free_bytes" doc:"Of the store's disk that has least; 0 for viewers of some tenants."`
	NewestAttemptAt   *time.Time            `json:"newest_attempt_at"`
	Finaliser         FinaliserStatus       `json:"finaliser"`
	Ingest            []IngestStatus        `json:"ingest" doc:"The ingest services that have reported lately; none for viewers of some tenants."`
	Completeness      *metrics.Completeness `json:"completeness"`
}

// FinaliserStatus is how far the rollups are behind the attempts.
type FinaliserStatus struct {
	Usable       bool       `json:"usable" doc:"Long reports read the rollups; not so before the first pass, and while settlements or prices wait. Figures are exact all the same."`
	LagMS        *int64     `json:"lag_ms" doc:"Age of the oldest change that no rollup holds yet."`
	DirtyMinutes *uint64    `json:"dirty_minutes"`
	LastRunAt    *time.Time `json:"last_run_at"`
}

// IngestStatus is what one ingest service last said of itself.
type IngestStatus struct {
	Node          string    `json:"node"`
	StartedAt     time.Time `json:"started_at"`
	ReportedAt    time.Time `json:"reported_at"`
	RejectedLines uint64    `json:"rejected_lines"`
	DeadLetters   uint64    `json:"dead_letters"`
	SpoolAgeMS    int64     `json:"spool_age_ms" doc:"Of the oldest record in its spool; 0 = the spool is empty."`
	SpoolBytes    int64     `json:"spool_bytes"`
}

// StatusParams has none but the conditional ones.
type StatusParams struct{ ConditionalParams }

func (a *API) status(ctx context.Context, p *StatusParams) (*answer, error) {
	s, err := a.o.Source.Status(ctx)
	if err != nil {
		return nil, err
	}
	if s.Completeness, err = a.visibleCompleteness(ctx, nil); err != nil {
		return nil, err
	}
	return jsonAnswer(VisibleStatus(ctx, s), p.IfNoneMatch)
}

// VisibleStatus is what of a status the viewer may see: what all tenants share is nothing for
// who is restricted to some.
func VisibleStatus(ctx context.Context, s Status) Status {
	if _, restricted := Tenants(ctx); restricted {
		s.Store, s.FreeBytes, s.NewestAttemptAt, s.Ingest = "", 0, nil, []IngestStatus{}
		s.Finaliser.DirtyMinutes = nil
	}
	return s
}

// CompletenessParams may name tenants.
type CompletenessParams struct {
	ConditionalParams
	Tenant []string `query:"tenant,explode" doc:"Only of these tenants."`
}

func (a *API) completeness(ctx context.Context, p *CompletenessParams) (*answer, error) {
	c, err := a.visibleCompleteness(ctx, slices.DeleteFunc(p.Tenant, func(t string) bool { return t == "" }))
	if err != nil {
		return nil, err
	}
	return jsonAnswer(c, p.IfNoneMatch)
}

func (a *API) visibleCompleteness(ctx context.Context, asked []string) (*metrics.Completeness, error) {
	tenants, err := Restrict(ctx, asked)
	if err != nil {
		return nil, err
	}
	return a.o.Source.Completeness(ctx, tenants...)
}

// FigureJSON describes a figure.
type FigureJSON struct {
	Name    string       `json:"name"`
	Unit    metrics.Unit `json:"unit" enum:"count,tokens,usd,ratio,ms"`
	Formula string       `json:"formula"`
	Label   string       `json:"label" doc:"Of a figure with several values: what they are keyed by."`
	Keys    []string     `json:"keys" doc:"Every key there can be."`
	Spend   bool         `json:"spend" doc:"Can be grouped by executed_provider and executed_model."`
}

// FigureList is every figure, in the order of a report.
type FigureList struct {
	Figures []FigureJSON `json:"figures"`
}

func (a *API) figures(_ context.Context, p *StatusParams) (*answer, error) {
	list := FigureList{Figures: []FigureJSON{}}
	for _, f := range metrics.Formulas {
		keys := f.Keys
		if keys == nil {
			keys = []string{}
		}
		list.Figures = append(list.Figures, FigureJSON{f.Name, f.Unit, f.Text, f.Label, keys, f.Spend})
	}
	return jsonAnswer(list, p.IfNoneMatch)
}
