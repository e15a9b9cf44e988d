package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestWhatIsNoRouteIsAProblem: an unknown address and a method that no route has are told as
// every other error of the API is.
func TestWhatIsNoRouteIsAProblem(t *testing.T) {
	_, srv := service(t)
	for _, c := range []struct {
		method, path string
		status       int
		json         bool
	}{
		{http.MethodGet, "/api/v1/alert", http.StatusNotFound, true},
		{http.MethodGet, "/api/v1", http.StatusNotFound, true},
		{http.MethodGet, "/api/v1/alerts/1", http.StatusNotFound, true},
		{http.MethodPost, "/api/v1/alerts", http.StatusMethodNotAllowed, true},
		{http.MethodDelete, "/api/v1/incidents", http.StatusMethodNotAllowed, true},
		{http.MethodPut, "/api/v1/report", http.StatusMethodNotAllowed, true},
		{http.MethodGet, "/elsewhere", http.StatusNotFound, false},
		{http.MethodGet, "/api/v10", http.StatusNotFound, false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Status int    `json:"status"`
			Detail string `json:"detail"`
		}
		decoded := json.NewDecoder(resp.Body).Decode(&said) == nil
		resp.Body.Close()
		media := resp.Header.Get("Content-Type")
		if resp.StatusCode != c.status || strings.HasPrefix(media, "application/problem+json") != c.json || c.json && (!decoded || said.Status != c.status || said.Detail == "") {
			t.Errorf("%s %s: %s, %s, %+v", c.method, c.path, resp.Status, media, said)
		}
		if allow := resp.Header.Get("Allow"); c.status == http.StatusMethodNotAllowed && allow != "GET, HEAD" {
			t.Errorf("%s %s allows %q", c.method, c.path, allow)
		}
	}
}
