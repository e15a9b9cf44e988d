package app

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
)

const viewersEvery = 5 * time.Second

// viewers lets in who has a token of a file, the format of which is that of ingest serve's
// --tokens: as a bearer token, or as the password of any name. Whom a token restricts to
// some tenants sees nothing of others. nil lets everybody in.
type viewers struct{ file *tokens.File }

func openViewers(path string, logger *slog.Logger) (*viewers, error) {
	if path == "" {
		return nil, nil
	}
	file, err := tokens.Open(path, logger)
	if err != nil {
		return nil, usagef("--auth: %w", err)
	}
	return &viewers{file}, nil
}

// watch follows the file until ctx ends.
func (v *viewers) watch(ctx context.Context) { v.file.Watch(ctx, viewersEvery, make(chan os.Signal)) }

// open are the paths that need no token: they tell nothing but whether the service runs.
var open = []string{"/healthz", "/readyz"}

// admit is middleware.
func (v *viewers) admit(next http.Handler) http.Handler {
	if v == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(open, r.URL.Path) || strings.HasPrefix(r.URL.Path, "/static/") {
			next.ServeHTTP(w, r)
			return
		}
		who, ok := v.file.Find(presented(r))
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="Retrylens", charset="UTF-8"`)
			plain(w, http.StatusUnauthorized, "a token is needed: as Authorization: Bearer, or as the password of any name")
			return
		}
		if !slices.Contains(who.Tenants, tokens.AnyTenant) {
			if r.URL.Path == "/metrics" {
				plain(w, http.StatusForbidden, "/metrics tells of all tenants: a token for all of them is needed")
				return
			}
			r = r.WithContext(api.WithTenants(r.Context(), who.Tenants...))
		}
		next.ServeHTTP(w, r)
	})
}

// presented is the token of a request, "" = none.
func presented(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
