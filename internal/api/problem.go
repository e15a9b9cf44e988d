package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/retrylens/retrylens/internal/query"
)

// errNotFound: there is no such operation.
var errNotFound = errors.New("no operation with this logical_id; it is matched exactly, upper and lower case differ")

// problems is the one table from errors to statuses; what is not in it is 500 and
// tells nothing. The first match wins.
var problems = []struct {
	err    error
	status int
	detail string
}{
	{errNotFound, http.StatusNotFound, errNotFound.Error()},
	{ErrUnavailable, http.StatusServiceUnavailable, "the store cannot be reached or does not answer; try again"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "the answer took too long: ask for a shorter window or fewer groups"},
	{context.Canceled, http.StatusServiceUnavailable, "the request was given up"},
}

const retryAfterSeconds = "5"

// problem is what a client is told of an error.
func (a *API) problem(operation string, err error) error {
	if wrong := paramErrors(err); len(wrong) > 0 {
		return huma.Error422UnprocessableEntity("a parameter is wrong", wrong...)
	}
	for _, p := range problems {
		if errors.Is(err, p.err) {
			model := huma.NewError(p.status, p.detail)
			if p.status == http.StatusServiceUnavailable {
				a.o.Logger.Warn("not available", "operation", operation, "error", err)
				return huma.ErrorWithHeaders(model, http.Header{"Retry-After": {retryAfterSeconds}})
			}
			return model
		}
	}
	a.o.Logger.Error("a request failed", "operation", operation, "error", err)
	return huma.Error500InternalServerError("the answer could not be made; the log of the service says why")
}

// paramErrors are the wrong parameters that err names.
func paramErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, paramErrors(e)...)
		}
		return all
	}
	var p *query.ParamError
	if !errors.As(err, &p) {
		return nil
	}
	return []error{&huma.ErrorDetail{Message: p.Err.Error(), Location: "query." + p.Param, Value: shortened(p.Value)}}
}

const maxEchoed = 60

// shortened is a value as it is said back.
func shortened(s string) string {
	if r := []rune(s); len(r) > maxEchoed {
		return string(r[:maxEchoed]) + "…"
	}
	return s
}

// elsewhere answers for what is no route: below Prefix as the API answers, plainly beside it.
func elsewhere(status int, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		if r.URL.Path != Prefix && !strings.HasPrefix(r.URL.Path, Prefix+"/") {
			http.Error(w, http.StatusText(status), status)
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(huma.NewError(status, detail)) // who asked has gone
	}
}
