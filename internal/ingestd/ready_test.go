package ingestd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/spool"
)

// Ready is what the last insert and the last reading of the tokens say, however
// well the store can be reached. A load balancer is told of the spool only.
func TestReadinessFollowsTheLastOutcome(t *testing.T) {
	var m *ingestd.Metrics
	var stale error
	s := start(t, func(o *ingestd.Options) { m, o.TokensReady = o.Metrics, func() error { return stale } })
	failed := errors.New("failed")
	for _, step := range []struct {
		name          string
		happens       func()
		store, tokens bool
	}{
		{"at the start", func() {}, true, true},
		{"an error that passes", func() { m.Inserted(1, time.Second, failed); m.Retried(string(drain.Retry)) }, true, true},
		{"a fatal error", func() { m.Inserted(1, time.Second, failed); m.Retried(string(drain.Fatal)) }, false, true},
		{"it lasts", func() { m.Inserted(1, time.Second, failed) }, false, true},
		{"stored", func() { m.Inserted(1, time.Second, nil) }, true, true},
		{"stale tokens", func() { stale = failed }, true, false},
		{"both", func() { m.Retried(string(drain.Fatal)) }, false, false},
		{"dead letters, good tokens", func() { m.Died(1); stale = nil }, true, true},
	} {
		step.happens()
		for query, want := range map[string]bool{"": step.store && step.tokens, "?require=spool": true} {
			var got struct {
				Store  struct{ OK, Refuses bool }
				Tokens struct{ OK bool }
			}
			resp, err := s.Client().Get(s.URL + "/readyz" + query)
			if err != nil {
				t.Fatal(err)
			}
			err = json.NewDecoder(resp.Body).Decode(&got)
			resp.Body.Close()
			if err != nil || (resp.StatusCode == http.StatusOK) != want || got.Store.OK != step.store || got.Store.Refuses == step.store || got.Tokens.OK != step.tokens {
				t.Errorf("%s%s: %d %+v %v", step.name, query, resp.StatusCode, got, err)
			}
		}
		text := s.metrics(t)
		for name, bad := range map[string]bool{"store_refuses": !step.store, "tokens_stale": !step.tokens} {
			value := 0
			if bad {
				value = 1
			}
			if want := fmt.Sprintf("retrylens_ingest_%s %d\n", name, value); !strings.Contains(text, want) {
				t.Errorf("%s: no %s", step.name, want)
			}
		}
	}
}

// Every path answers HEAD as GET and tells what it allows.
func TestMethods(t *testing.T) {
	s := start(t, nil)
	for path, allowed := range map[string]string{"/v1/attempts": "POST", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET, HEAD"} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			req, err := http.NewRequest(method, s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			want, allow := http.StatusMethodNotAllowed, allowed
			if strings.Contains(allowed, method) {
				want, allow = http.StatusOK, ""
			}
			if resp.StatusCode != want || resp.Header.Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow %q", method, path, resp.StatusCode, resp.Header.Get("Allow"))
			}
		}
	}
}

// A field that may be given once and comes twice is never one of the two.
func TestFieldsThatComeTwice(t *testing.T) {
	for field, c := range map[string]struct {
		values [2]string
		status int
	}{
		"Authorization":    {[2]string{"Bearer acme", "Bearer two"}, http.StatusUnauthorized},
		"authorization":    {[2]string{"Bearer acme", "Bearer acme"}, http.StatusUnauthorized},
		"Content-Type":     {[2]string{"application/x-ndjson", "application/json"}, http.StatusUnsupportedMediaType},
		"Content-Encoding": {[2]string{"identity", "gzip"}, http.StatusUnsupportedMediaType},
	} {
		s := start(t, nil)
		req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/attempts", strings.NewReader(line(0)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer acme")
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Del(field)
		req.Header.Add(field, c.values[0])
		req.Header.Add(field, c.values[1])
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if a := read(t, resp); a.Status != c.status {
			t.Errorf("%s: %+v", field, a)
		}
	}
}

// TestASpoolThatCannotBeWrittenIsNotReady: a load balancer is told, too.
func TestASpoolThatCannotBeWrittenIsNotReady(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := startOn(t, spool.Options{Dir: dir}, nil)
	ready := func() int {
		t.Helper()
		resp, err := s.Client().Get(s.URL + "/readyz?require=spool")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := ready(); got != http.StatusOK {
		t.Fatalf("at the start %d", got)
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/attempts", strings.NewReader(line(0)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Authorization", "Bearer acme")
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || ready() != http.StatusServiceUnavailable {
		t.Errorf("a body got %d, then /readyz said %d", resp.StatusCode, ready())
	}
}
