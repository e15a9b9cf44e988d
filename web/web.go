package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// Verdict is what a detector says of a series now.
type Verdict struct {
	State    string // healthy, flaky, masked_outage, outage, recovering
	Since    time.Time
	Tenant   string // "" = of all; so are the next two
	Provider string
	Model    string
	Class    string // the error class that stands out, "" = none
	Example  string // logical_id of an operation that shows it, "" = none
}

// Detector says how things are now. It must be safe for concurrent use.
type Detector interface {
	// Verdicts are of every series that is watched.
	Verdicts(context.Context) ([]Verdict, error)
}

// Options make the pages.
type Options struct {
	Source     api.Source
	Together   func(context.Context) context.Context // marks the questions of one page for Source; nil = they are not
	Detector   Detector                              // nil = verdicts are made from the figures of the window
	Version    string
	RunbookURL string           // of the folder of runbooks; "" = no links to them
	Now        func() time.Time // nil = time.Now
	Logger     *slog.Logger     // nil = none; gets what viewers must not see
	Timeout    time.Duration    // of a page; 0 = api.DefaultTimeout
}

// UI is the pages. It is safe for concurrent use.
type UI struct {
	o       Options
	reports *memo[*metrics.Report]
	shown   *memo[string] // examples, by what they show
	last    *lastPages
}

// Mount adds the pages to a router.
func Mount(r chi.Router, o Options) *UI {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout == 0 {
		o.Timeout = api.DefaultTimeout
	}
	if o.Together == nil {
		o.Together = func(ctx context.Context) context.Context { return ctx }
	}
	u := &UI{o: o, reports: newMemo[*metrics.Report](o.Timeout, o.Now), shown: newMemo[string](o.Timeout, o.Now), last: newLastPages()}
	for _, p := range u.pages() {
		r.Get(p.path, u.serve(p))
	}
	r.Get("/export/{of}", u.manifest)
	r.Get("/static/*", static)
	r.NotFound(u.serve(page{title: "Not found", name: "missing", make: func(context.Context, *state) (any, error) { return nil, errNotFound }}))
	return u
}

// page is one of the pages.
type page struct {
	path   string
	title  string
	name   string // of its template
	key    string // g and this key go there
	window string // from, where the URL has none
	export string // the path of the API that answers the same question
	make   func(context.Context, *state) (any, error)
}

// pages are all there are, in the order of the navigation.
func (u *UI) pages() []page {
	return []page{
		{"/", "Triage", "triage", "t", "now-1h", "report", u.triage},
		{"/errors", "Errors", "errors", "e", "now-1h", "report", u.errors},
		{"/layers", "Layers", "layers", "l", "now-1h", "report", u.layers},
		{"/spend", "Spend", "spend", "s", "now-7d", "report", u.spend},
		{operationsPath, "Operations", "operations", "o", "now-1h", "operations", u.operations},
		{"/op/{id}", "Operation", "op", "", "now-1h", "", u.operation},
		{opPath, "Operation", "op", "", "now-1h", "", u.operation},
		{"/alerts", "Alerts", "alerts", "a", "now-24h", "", u.alerts},
		{"/status", "Status", "status", "u", "now-1h", "", u.status},
	}
}

// errNotFound: there is no such page, or nothing that it could show.
var errNotFound = errors.New("not found")

// policy is strict: nothing from elsewhere, nothing inline, no strings run as script.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types retrylens"

// serve answers with a page; what goes wrong is told on the page.
func (u *UI) serve(p page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(u.o.Together(r.Context()), u.o.Timeout)
		defer cancel()
		s, err := readState(r, u.o.Now(), p.window)
		if p.name == "op" {
			ctx = context.WithValue(ctx, idKey{}, pathID(r))
		}
		var body any
		if err == nil {
			body, err = p.make(ctx, s)
		}
		if r.Context().Err() != nil { // nobody waits for it, and it is no failure
			return
		}
		status, v := u.view(ctx, p, s, body, err)
		v.Began = began
		u.write(w, status, p.name, v)
	}
}

func (u *UI) write(w http.ResponseWriter, status int, name string, v *view) {
	var b bytes.Buffer
	if err := render(&b, name, v); err != nil {
		u.o.Logger.Error("a page could not be made", "page", name, "error", err)
		http.Error(w, "the page could not be made; the log of the service says why", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Server-Timing", fmt.Sprintf("page;dur=%.1f", float64(time.Since(v.Began).Microseconds())/1000))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// problem is what a viewer is told of an error, and its status.
func (u *UI) problem(p page, err error) (int, problem) {
	switch {
	case len(paramErrors(err)) > 0:
		return http.StatusUnprocessableEntity, problem{Title: "A parameter is wrong", Params: paramErrors(err)}
	case errors.Is(err, errNotFound) && p.name == "op":
		return http.StatusNotFound, problem{Title: "No such operation", Text: "There is no operation with this logical id that you may see; it is matched exactly, upper and lower case differ."}
	case errors.Is(err, errNotFound):
		return http.StatusNotFound, problem{Title: "No such page", Text: "Nothing is here. The navigation above lists what there is."}
	case errors.Is(err, api.ErrUnavailable):
		u.o.Logger.Warn("not available", "page", p.path, "error", err)
		return http.StatusServiceUnavailable, problem{Title: "The store cannot be reached", Text: "It is tried again with every request; the log of the service says why."}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, problem{Title: "This took too long", Text: "Ask for a shorter window or fewer groups."}
	}
	u.o.Logger.Error("a page failed", "page", p.path, "error", err)
	return http.StatusInternalServerError, problem{Title: "The page could not be made", Text: "The log of the service says why."}
}

// paramErrors are the wrong parameters that err names.
func paramErrors(err error) []*query.ParamError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*query.ParamError
		for _, e := range joined.Unwrap() {
			all = append(all, paramErrors(e)...)
		}
		return all
	}
	var p *query.ParamError
	if !errors.As(err, &p) {
		return nil
	}
	return []*query.ParamError{p}
}
