package ingestd_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// service is a handler on a real spool, behind a real socket.
type service struct {
	*httptest.Server
	h     *ingestd.Handler
	spool *spool.Spool
}

func start(t *testing.T, change func(*ingestd.Options)) *service {
	t.Helper()
	return startOn(t, spool.Options{Dir: t.TempDir()}, change)
}

func startOn(t *testing.T, so spool.Options, change func(*ingestd.Options)) *service {
	t.Helper()
	s, err := spool.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	principals := map[string]tokens.Principal{
		"acme": tokens.NewPrincipal("acme"), "two": tokens.NewPrincipal("acme", "globex"), "any": tokens.NewPrincipal("*"),
	}
	o := ingestd.Options{
		Spool: s, Metrics: ingestd.NewMetrics(s.Stats),
		Authenticate: func(token string) (tokens.Principal, bool) { p, ok := principals[token]; return p, ok },
		Limits:       func() retrylens.Limits { return retrylens.Limits{Now: now} },
		StoreReady:   func(context.Context) error { return nil },
	}
	if change != nil {
		change(&o)
	}
	h, err := ingestd.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h.Routes())
	t.Cleanup(server.Close)
	return &service{server, h, s}
}

// line is the nth of many good records.
func line(n int) string {
	return fmt.Sprintf(`{"logical_id":"op-%d","attempt":0,"provider":"openai","started_at":"2026-11-28T00:00:00Z","outcome":"success"}`, n)
}

func ndjson(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(line(n) + "\n")
	}
	return b.String()
}

// answer is what a service says; of a problem the members are in it too.
type answer struct {
	Status   int
	Header   http.Header
	Accepted int
	Rejected []struct {
		Line         int
		Field, Error string
	}
	RejectedCount int `json:"rejected_count"`
	Code          string
	Title, Detail string
	Problem       int `json:"status"`
}

func (s *service) request(t *testing.T, body io.Reader, header ...string) answer {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/attempts", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer acme")
	req.Header.Set("Content-Type", "application/x-ndjson")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func read(t *testing.T, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%d %s: %v", resp.StatusCode, text, err)
	}
	media := resp.Header.Get("Content-Type")
	if bad := resp.StatusCode >= 400; bad != (media == "application/problem+json") || bad && (a.Problem != resp.StatusCode || a.Code == "" || a.Title == "") {
		t.Errorf("%d is %s: %s", resp.StatusCode, media, text)
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	return a
}

// stored are the tenants and ids in the spool, which is closed for it.
func (s *service) stored(t *testing.T) []string {
	t.Helper()
	if err := s.spool.Close(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	r := s.spool.NewReader()
	for _, g := range s.spool.Sealed() {
		if err := r.Read(g, func(a retrylens.Attempt) error { ids = append(ids, a.Tenant+"/"+a.LogicalID); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func gz(text string) *bytes.Buffer {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return &b
}

func zst(t *testing.T, text string, o ...zstd.EOption) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, o...)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return &b
}
