package api

import (
	"context"
	"errors"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// WindowParams are the window of a question. The fields are what the document says;
// package query reads the URL.
type WindowParams struct {
	From string `query:"from" example:"now-6h" doc:"Start of the window, inclusive: RFC 3339, a date (UTC), Unix seconds or milliseconds, now, now-1h, now-7d. Default: an hour before to."`
	To   string `query:"to" example:"now" doc:"End of the window, exclusive. Default: as_of."`
	AsOf string `query:"as_of" doc:"Ages unfinished operations and marks what is provisional; hides no record. Default: now."`

	Tenant      []string `query:"tenant,explode" doc:"Only operations of this tenant; repeated: any of them."`
	Service     []string `query:"service,explode" doc:"Only operations of this service."`
	Environment []string `query:"environment,explode" doc:"Only operations of this environment."`
	Operation   []string `query:"operation,explode" doc:"Only operations of this name."`
	Provider    []string `query:"provider,explode" doc:"Only operations whose home provider is this."`
	Model       []string `query:"model,explode" doc:"Only operations whose home model is this."`

	url urlValues
}

// urlValues holds the URL's parameters as they came.
type urlValues struct{ values url.Values }

// Resolve keeps the parameters as they came, for package query.
func (p *WindowParams) Resolve(hc huma.Context) []error {
	u := hc.URL()
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return []error{&huma.ErrorDetail{Message: "cannot be read: " + err.Error(), Location: "query"}}
	}
	p.url.values = values
	return nil
}

// parse reads the question, restricted to what the viewer may see.
func (a *API) parse(ctx context.Context, p *WindowParams) (metrics.Query, error) {
	q, err := query.Parse(p.url.values, a.now())
	if err != nil {
		return q, err
	}
	tenants, err := Restrict(ctx, q.Filters[metrics.DimTenant])
	if len(tenants) > 0 {
		q.Filters[metrics.DimTenant] = tenants
	}
	return q, err
}

// GroupParams say how operations are grouped.
type GroupParams struct {
	Group  []string `query:"group,explode" example:"provider" doc:"tenant, service, environment, operation, provider, model; or executed_provider, executed_model for spend as a bill has it. Repeated, or with commas."`
	Bucket string   `query:"bucket" example:"5m" doc:"A row for each such time, aligned to 1970: 90s, 5m, 1h30m, 7d."`
}

func paramError(name, value, why string) error {
	return &query.ParamError{Param: name, Value: value, Err: errors.New(why)}
}
