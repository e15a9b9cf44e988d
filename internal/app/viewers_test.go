package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/retrylens/retrylens/internal/api"
)

// TestViewersAreLetInByTheirToken as bearer or password, see their tenants only, and
// /metrics with all only.
func TestViewersAreLetInByTheirToken(t *testing.T) {
	hash := func(token string) string { sum := sha256.Sum256([]byte(token)); return hex.EncodeToString(sum[:]) }
	path := filepath.Join(t.TempDir(), "viewers.jsonl")
	lines := fmt.Sprintf("{\"sha256\":%q,\"tenants\":[\"*\"]}\n{\"sha256\":%q,\"tenants\":[\"acme\",\"globex\"]}\n", hash("all"), hash("two"))
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := openViewers(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	h := v.admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen, _ = api.Tenants(r.Context()) }))
	for _, c := range []struct {
		path   string
		by     func(*http.Request)
		status int
		sees   []string
	}{
		{"/", func(*http.Request) {}, http.StatusUnauthorized, nil},
		{"/api/v1/report", func(r *http.Request) { r.Header.Set("Authorization", "Bearer nobody") }, http.StatusUnauthorized, nil},
		{"/", func(r *http.Request) { r.SetBasicAuth("anyone", "") }, http.StatusUnauthorized, nil},
		{"/", func(r *http.Request) { r.SetBasicAuth("anyone", "all") }, http.StatusOK, nil},
		{"/", func(r *http.Request) { r.Header.Set("Authorization", "bearer two") }, http.StatusOK, []string{"acme", "globex"}},
		{"/metrics", func(r *http.Request) { r.SetBasicAuth("", "two") }, http.StatusForbidden, nil},
		{"/metrics", func(r *http.Request) { r.SetBasicAuth("", "all") }, http.StatusOK, nil},
		{"/healthz", func(*http.Request) {}, http.StatusOK, nil},
	} {
		seen = nil
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
		c.by(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || !slices.Equal(seen, c.sees) {
			t.Errorf("%s %q: %d, sees %v; want %d, %v", c.path, r.Header.Get("Authorization"), w.Code, seen, c.status, c.sees)
		}
		if (w.Code == http.StatusUnauthorized) != (w.Header().Get("WWW-Authenticate") != "") {
			t.Errorf("%s: %d with WWW-Authenticate %q", c.path, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
	if _, err := openViewers(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a missing file lets in")
	}
}
