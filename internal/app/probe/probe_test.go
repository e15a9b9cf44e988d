package probe_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/app/probe"
)

// fake answers every query with status and text, and keeps the last request.
func fake(t *testing.T, status int, text string) (probe.Server, *http.Request, *string) {
	t.Helper()
	var last http.Request
	var query string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = *r
		body, _ := io.ReadAll(r.Body)
		query = string(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(srv.Close)
	return probe.Server{URL: srv.URL + "/", User: "u", Password: "geheim", Database: "d`b'", Client: srv.Client()}, &last, &query
}

func TestCredentialsGoInHeaders(t *testing.T) {
	s, last, query := fake(t, 200, "26.7.2.1\n")
	v, err := s.Version(t.Context())
	if err != nil || v != "26.7.2.1" {
		t.Fatal(v, err)
	}
	if last.Header.Get("X-ClickHouse-Key") != "geheim" || last.URL.String() != "/" || *query != "SELECT version()" {
		t.Errorf("%s %v %s", last.URL, last.Header, *query)
	}
}

// TestNamesAreQuoted: a database's name cannot become a statement.
func TestNamesAreQuoted(t *testing.T) {
	s, _, query := fake(t, 200, "3")
	s.Cluster = "c"
	for _, ask := range []func(context.Context) (uint64, error){s.SchemaVersion, s.RetentionDays} {
		if n, err := ask(t.Context()); err != nil || n != 3 {
			t.Error(n, err)
		}
		if strings.Contains(*query, "d`b'.") || strings.Contains(*query, "= 'd`b' ") {
			t.Errorf("unquoted: %s", *query)
		}
	}
	if !strings.Contains(*query, "'attempts_local'") {
		t.Errorf("not the local table: %s", *query)
	}
}

func TestSkew(t *testing.T) {
	s, _, _ := fake(t, 200, "1000500")
	now := func() time.Time { return time.UnixMilli(1_000_000) }
	if d, err := s.Skew(t.Context(), now); err != nil || d != 500*time.Millisecond {
		t.Error(d, err)
	}
}

func TestErrors(t *testing.T) {
	ctx := t.Context()
	down := httptest.NewServer(nil)
	url := down.URL
	down.Close()
	for name, s := range map[string]probe.Server{
		"exception": first(fake(t, 500, "Code: 516. DB::Exception: u: Authentication failed\nmore")),
		"no number": first(fake(t, 200, "<html>")),
		"down":      {URL: strings.Replace(url, "http://", "http://u:geheim@", 1), Client: http.DefaultClient},
		"no url":    {URL: "http://u:geheim@%zz/", Client: http.DefaultClient},
	} {
		_, err := s.FreeBytes(ctx)
		if err == nil || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Skew(ctx, time.Now); err == nil {
			t.Errorf("%s: no error of the clock", name)
		}
		if ok, err := s.MayInsert(ctx); err == nil || ok {
			t.Errorf("%s: may insert", name)
		}
	}
}

func first(s probe.Server, _ *http.Request, _ *string) probe.Server { return s }
