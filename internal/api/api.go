package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Source answers questions. It must be safe for concurrent use.
type Source interface {
	Report(context.Context, metrics.Query) (*metrics.Report, error)
	Operations(context.Context, metrics.Search) ([]metrics.Operation, error)
	Attempts(ctx context.Context, logicalID string, tenants ...string) ([]retrylens.Attempt, error)
	Completeness(ctx context.Context, tenants ...string) (*metrics.Completeness, error)
	Status(context.Context) (Status, error)
	Alerts(context.Context) (AlertList, error)
	// Incidents are the alerts that fired and overlap [from, to), the latest first.
	Incidents(ctx context.Context, from, to time.Time, limit int) ([]Alert, error)
}

// ErrUnavailable is wrapped by errors of a source that cannot be asked now; the
// answer is 503.
var ErrUnavailable = errors.New("the store is not available")

// Options make an API.
type Options struct {
	Source  Source
	Version string           // of this program, for the document
	Now     func() time.Time // nil = time.Now
	Logger  *slog.Logger     // nil = none; gets what clients must not see
	Timeout time.Duration    // of one answer; 0 = DefaultTimeout
}

// DefaultTimeout is how long an answer may take.
const DefaultTimeout = 30 * time.Second

// API answers requests. It is safe for concurrent use.
type API struct {
	o    Options
	huma huma.API
}

// Prefix is the path that every route begins with.
const Prefix = "/api/v1"

// Mount adds the routes to a router and returns the API.
func Mount(r chi.Router, o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	a := &API{o: o, huma: humachi.New(r, config(o.Version))}
	for _, add := range a.routes() {
		add()
	}
	r.NotFound(elsewhere(http.StatusNotFound, "there is nothing at this address; "+Prefix+"/openapi.json lists what there is"))
	r.MethodNotAllowed(elsewhere(http.StatusMethodNotAllowed, "this address is only read: use GET or HEAD"))
	return a
}

func config(version string) huma.Config {
	c := huma.DefaultConfig("Retrylens", version)
	c.Info.Description = "Retries of LLM calls: what they amplified, rescued, hid, wasted and cost."
	c.Info.License = nil
	c.OpenAPIPath = Prefix + "/openapi"
	c.DocsPath, c.SchemasPath = "", "" // pages from elsewhere are not ours to serve
	c.CreateHooks = nil
	c.RejectUnknownQueryParameters = true
	return c
}

// routes are all there are.
func (a *API) routes() []func() {
	return []func(){
		route(a, "report", "/report", "The figures of a window of operations", a.report, a.reportAnswers()),
		route(a, "series", "/series", "Figures over time", a.series, a.seriesAnswers()),
		route(a, "listOperations", "/operations", "Search operations, the latest first", a.listOperations, a.listAnswers()),
		route(a, "getOperation", "/operations/{logical_id}", "One operation, attempt by attempt", a.getOperation, a.operationAnswers()),
		route(a, "completeness", "/completeness", "How much of the truth the store can have seen", a.completeness, a.completenessAnswers()),
		route(a, "alerts", "/alerts", "The rules and the alerts that hold now", a.alerts, answers[AlertList](a, false, false)),
		route(a, "incidents", "/incidents", "The alerts that fired in a window", a.incidents, answers[IncidentList](a, false, false)),
		route(a, "figures", "/figures", "Every figure: its name, unit and formula", a.figures, a.figuresAnswers()),
		route(a, "status", "/status", "The state of the service and of its store", a.status, a.statusAnswers()),
	}
}

// handler answers a request, or returns an error for problem.
type handler[I any] func(context.Context, *I) (*answer, error)

func route[I any](a *API, id, path, summary string, h handler[I], answers map[string]*huma.Response) func() {
	op := huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: Prefix + path, Summary: summary, Responses: answers,
		Errors: []int{http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
	}
	return func() {
		huma.Register(a.huma, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
			ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
			got, err := h(ctx, in)
			if err != nil {
				cancel()
				return nil, a.problem(id, err)
			}
			return &huma.StreamResponse{Body: func(hc huma.Context) {
				defer cancel()
				if err := got.write(hc); err != nil {
					a.o.Logger.Warn("an answer was cut short", "operation", id, "error", err)
				}
			}}, nil
		})
	}
}

// now is what relative times are relative to: whole seconds, so that answers can be
// cached.
func (a *API) now() time.Time { return a.o.Now().UTC().Truncate(time.Second) }

// OpenAPI is the document of the API, in YAML.
func (a *API) OpenAPI() ([]byte, error) { return a.huma.OpenAPI().YAML() }
