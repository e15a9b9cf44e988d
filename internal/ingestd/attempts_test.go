package ingestd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/spool"
)

func TestBodiesInEveryForm(t *testing.T) {
	array := "[" + strings.ReplaceAll(strings.TrimSpace(ndjson(0, 3)), "\n", ",\n ") + "]"
	for name, c := range map[string]struct {
		body   io.Reader
		header []string
		want   int
	}{
		"ndjson":                {strings.NewReader(ndjson(0, 3)), nil, 3},
		"ndjson without an end": {strings.NewReader(strings.TrimSpace(ndjson(0, 3))), nil, 3},
		"ndjson with crlf":      {strings.NewReader(strings.ReplaceAll(ndjson(0, 3), "\n", "\r\n\r\n")), nil, 3},
		"charset":               {strings.NewReader(ndjson(0, 3)), []string{"Content-Type", "application/x-ndjson; charset=UTF-8"}, 3},
		"one object":            {strings.NewReader(" " + line(0) + "\n"), []string{"Content-Type", "application/json"}, 1},
		"pretty object":         {strings.NewReader(strings.ReplaceAll(line(0), ",", ",\n  ")), []string{"Content-Type", "application/json"}, 1},
		"array":                 {strings.NewReader(array), []string{"Content-Type", "application/json"}, 3},
		"gzip":                  {gz(ndjson(0, 3)), []string{"Content-Encoding", "gzip"}, 3},
		"gzip members":          {io.MultiReader(gz(ndjson(0, 2)), gz(ndjson(2, 3))), []string{"Content-Encoding", "GZIP"}, 3},
		"zstd":                  {zst(t, ndjson(0, 3)), []string{"Content-Encoding", "zstd"}, 3},
		"zstd frames":           {io.MultiReader(zst(t, ndjson(0, 2)), zst(t, ndjson(2, 3))), []string{"Content-Encoding", "zstd"}, 3},
		"zstd array":            {zst(t, array), []string{"Content-Encoding", "zstd", "Content-Type", "application/json"}, 3},
		"chunked":               {io.MultiReader(strings.NewReader(ndjson(0, 3))), nil, 3},
		"bom":                   {strings.NewReader("\ufeff" + ndjson(0, 3)), nil, 3},
		"bom, object":           {strings.NewReader("\ufeff" + line(0)), []string{"Content-Type", "application/json"}, 1},
		"bom, array":            {strings.NewReader("\ufeff" + array), []string{"Content-Type", "application/json"}, 3},
		"bom, gzip array":       {gz("\ufeff" + array), []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, 3},
		"quoted charset":        {strings.NewReader(ndjson(0, 3)), []string{"Content-Type", `application/x-ndjson; charset="utf-8"`}, 3},
		"as many as may be":     {strings.NewReader("\n" + strings.ReplaceAll(ndjson(0, 50_000), "\n", "\n\n")), nil, 50_000},
		"expect continue":       {strings.NewReader(ndjson(0, 3)), []string{"Expect", "100-continue"}, 3},
		"a resend":              {strings.NewReader(ndjson(0, 2) + ndjson(0, 2)), nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			a := s.request(t, c.body, c.header...)
			if a.Status != http.StatusAccepted || a.Accepted != c.want || a.Rejected == nil || a.RejectedCount != 0 {
				t.Fatalf("%+v", a)
			}
			if got := s.stored(t); len(got) != c.want || got[0] != "acme/op-0" {
				t.Errorf("stored %v", got)
			}
		})
	}
}

func TestGoodLinesAreKeptAndBadOnesReported(t *testing.T) {
	s := start(t, nil)
	long := `{"logical_id":"` + strings.Repeat("x", 70_000) + `"}`
	a := s.request(t, strings.NewReader(line(0)+"\n\n"+`{"attempt":0}`+"\n"+line(1)+"\nnonsense\n"+long+"\n"+
		strings.Replace(line(2), "{", `{"tenant":"globex",`, 1)+"\n"+strings.Replace(line(3), "{", `{"tenant":"acme",`, 1)))
	if a.Status != http.StatusAccepted || a.Accepted != 3 || a.RejectedCount != 4 {
		t.Fatalf("%+v", a)
	}
	want := []string{"3 logical_id missing", "5  not a JSON object", "6  longer than 65536 bytes", "7 tenant the token is not for this tenant"}
	for i, r := range a.Rejected {
		if got := fmt.Sprintf("%d %s %s", r.Line, r.Field, r.Error); !strings.HasPrefix(got, want[i]) {
			t.Errorf("got %q, want %q", got, want[i])
		}
	}
	if got := fmt.Sprint(s.stored(t)); got != "[acme/op-0 acme/op-1 acme/op-3]" {
		t.Errorf("stored %s", got)
	}
	text := s.metrics(t)
	for _, want := range []string{
		`retrylens_ingest_rejected_total{reason="logical_id: missing"} 1`, `retrylens_ingest_accepted_total 3`,
		`retrylens_ingest_requests_total{answer="accepted"} 1`, "retrylens_ingest_inflight_bytes 0",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%.2000s", want, text)
		}
	}
}

func (s *service) metrics(t *testing.T) string {
	t.Helper()
	resp, err := s.Client().Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheFirstHundredRejectsAreShown(t *testing.T) {
	a := start(t, nil).request(t, strings.NewReader(strings.Repeat("{}\n", 500)+line(0)))
	if a.Status != 202 || len(a.Rejected) != 100 || a.RejectedCount != 500 {
		t.Errorf("%d %d %d", a.Status, len(a.Rejected), a.RejectedCount)
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	manyLines := strings.Repeat("{}\n", 50_001)
	zeros := strings.Repeat("x", 33<<20)
	foreign := strings.Replace(line(0), "{", `{"tenant":"globex",`, 1)
	json := []string{"Content-Type", "application/json"}
	for name, c := range map[string]struct {
		body   io.Reader
		header []string
		status int
		code   string
	}{
		"no token":             {strings.NewReader(line(0)), []string{"Authorization", ""}, 401, "unauthorized"},
		"bad token":            {strings.NewReader(line(0)), []string{"Authorization", "Bearer nobody"}, 401, "unauthorized"},
		"basic":                {strings.NewReader(line(0)), []string{"Authorization", "Basic acme"}, 401, "unauthorized"},
		"foreign tenant":       {strings.NewReader(foreign + "\n" + foreign), nil, 403, "foreign_tenant"},
		"foreign and bad":      {strings.NewReader(foreign + "\n{}"), nil, 400, "no_good_line"},
		"several, none named":  {strings.NewReader(line(0)), []string{"Authorization", "Bearer two"}, 400, "no_good_line"},
		"empty":                {strings.NewReader(""), nil, 400, "no_good_line"},
		"empty array":          {strings.NewReader(" [ ] "), json, 400, "no_good_line"},
		"blank lines":          {strings.NewReader("\n\n"), nil, 400, "no_good_line"},
		"no type":              {strings.NewReader(line(0)), []string{"Content-Type", ""}, 415, "unsupported_media_type"},
		"other type":           {strings.NewReader(line(0)), []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		"other charset":        {strings.NewReader(line(0)), []string{"Content-Type", "application/json; charset=latin1"}, 415, "unsupported_media_type"},
		"other encoding":       {strings.NewReader(line(0)), []string{"Content-Encoding", "br"}, 415, "unsupported_media_type"},
		"too many lines":       {strings.NewReader(manyLines), nil, 413, "too_large"},
		"many blank lines":     {strings.NewReader(strings.Repeat("\n", 50_001)), nil, 400, "no_good_line"},
		"charset and nonsense": {strings.NewReader(line(0)), []string{"Content-Type", "application/json;charset=utf-16;x"}, 415, "unsupported_media_type"},
		"nonsense parameter":   {strings.NewReader(line(0)), []string{"Content-Type", "application/json;x"}, 415, "unsupported_media_type"},
		"two charsets":         {strings.NewReader(line(0)), []string{"Content-Type", "application/json;charset=utf-8;charset=utf-16"}, 415, "unsupported_media_type"},
		"no charset":           {strings.NewReader(line(0)), []string{"Content-Type", `application/json;charset=""`}, 415, "unsupported_media_type"},
		"two encodings":        {gz(line(0)), []string{"Content-Encoding", "gzip, gzip"}, 415, "unsupported_media_type"},
		"declared too large":   {strings.NewReader(zeros), nil, 413, "too_large"},
		"chunked too large":    {io.MultiReader(strings.NewReader(zeros)), nil, 413, "too_large"},
		"gzip bomb":            {gz(strings.Repeat("x", 100<<20)), []string{"Content-Encoding", "gzip"}, 413, "too_large"},
		"zstd bomb":            {zst(t, strings.Repeat("x", 100<<20)), []string{"Content-Encoding", "zstd"}, 413, "too_large"},
		"array bomb":           {gz("[" + strings.Repeat(" ", 100<<20)), append(json, "Content-Encoding", "gzip"), 413, "too_large"},
		"huge window":          {zst(t, strings.Repeat(line(0), 300_000), zstd.WithWindowSize(64<<20)), []string{"Content-Encoding", "zstd"}, 400, "unreadable"},
		"no gzip":              {strings.NewReader(line(0)), []string{"Content-Encoding", "gzip"}, 400, "unreadable"},
		"no zstd":              {strings.NewReader(line(0)), []string{"Content-Encoding", "zstd"}, 400, "unreadable"},
		"truncated gzip":       {io.LimitReader(gz(ndjson(0, 500)), 500), []string{"Content-Encoding", "gzip"}, 400, "unreadable"},
		"truncated zstd":       {io.LimitReader(zst(t, ndjson(0, 500)), 300), []string{"Content-Encoding", "zstd"}, 400, "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			a := s.request(t, c.body, c.header...)
			if a.Status != c.status || a.Code != c.code {
				t.Errorf("got %d %s %s %v", a.Status, a.Code, a.Detail, a.Rejected)
			}
			if (a.Status == 503 || a.Status == 429) != (a.Header.Get("Retry-After") != "") {
				t.Error("Retry-After")
			}
			if got := s.stored(t); len(got) > 0 {
				t.Errorf("stored %d records", len(got))
			}
			if text := s.metrics(t); !strings.Contains(text, "retrylens_ingest_inflight_bytes 0") {
				t.Error("memory is not given back")
			}
		})
	}
}

// Elements are cut by braces; what they are is for the decoder.
func TestArraysThatAreBroken(t *testing.T) {
	for body, want := range map[string]string{
		"[" + line(0):                     "1 good, 2  invalid JSON: the array is not closed",
		"[" + line(0) + ",":               "1 good, 2  invalid JSON: the array is not closed",
		"[" + line(0) + ",]":              "1 good, 2  invalid JSON: a comma before the closing bracket",
		"[" + line(0) + " , ] x":          "1 good, 2  invalid JSON: a comma before the closing bracket, 3  invalid JSON: more data after the value",
		"[" + line(0) + line(1) + "]":     "1 good, 2  invalid JSON: comma or closing bracket expected",
		"[" + line(0) + "] x":             "1 good, 2  invalid JSON: more data after the value",
		line(0) + line(1):                 "1 good, 2  invalid JSON: more data after the value",
		"[" + line(0) + `,17,"a,]",[{}]]`: "1 good, 2  not a JSON object: got a number, 3  not a JSON object: got a string, 4  not a JSON object: got an array",
		"[" + line(0) + `,{"a":"\"}]"}]`:  "1 good, 2 a unknown key",
		"[" + line(0) + `,{"attributes":{}` + strings.Repeat(" ", 70_000) + `}]`: "1 good, 2  longer than 65536 bytes",
	} {
		a := start(t, nil).request(t, strings.NewReader(body), "Content-Type", "application/json")
		got := fmt.Sprintf("%d good", a.Accepted)
		for _, r := range a.Rejected {
			got += fmt.Sprintf(", %d %s %s", r.Line, r.Field, r.Error)
		}
		if got != want {
			t.Errorf("%.300s\ngot  %s\nwant %s", body, got, want)
		}
	}
}

func TestSeveralTenants(t *testing.T) {
	s := start(t, nil)
	of := func(tenant string) string { return strings.Replace(line(0), "{", `{"tenant":"`+tenant+`",`, 1) + "\n" }
	if a := s.request(t, strings.NewReader(of("acme")+of("globex")+of("x")), "Authorization", "bearer two"); a.Accepted != 2 || a.RejectedCount != 1 {
		t.Errorf("%+v", a)
	}
	if a := s.request(t, strings.NewReader(of("acme")+of("x")), "Authorization", "Bearer any"); a.Accepted != 2 {
		t.Errorf("%+v", a)
	}
}

func TestAFullSpool(t *testing.T) {
	s := startOn(t, spool.Options{Dir: t.TempDir(), LimitBytes: 30_000}, nil)
	for range 100 {
		a := s.request(t, strings.NewReader(ndjson(0, 50)))
		if a.Status == http.StatusAccepted {
			continue
		}
		if a.Status != 503 || a.Code != "spool_full" || a.Header.Get("Retry-After") == "" {
			t.Errorf("%+v", a)
		}
		return
	}
	t.Error("never full")
}

func TestRateLimits(t *testing.T) {
	s := start(t, func(o *ingestd.Options) {
		o.Tenant.RecordsPerSecond = 0.01
		o.MaxLines = 100 // the burst
	})
	if a := s.request(t, strings.NewReader(ndjson(0, 90))); a.Status != 202 {
		t.Fatalf("%+v", a)
	}
	a := s.request(t, strings.NewReader(ndjson(90, 150)))
	if a.Status != 429 || a.Code != "rate_limited" || a.Header.Get("Retry-After") < "1" {
		t.Errorf("%+v", a)
	}
	other := strings.Replace(line(0), "{", `{"tenant":"globex",`, 1)
	if a := s.request(t, strings.NewReader(other), "Authorization", "Bearer two"); a.Status != 202 {
		t.Errorf("another tenant: %+v", a)
	}
	if got := s.stored(t); len(got) != 91 {
		t.Errorf("%d stored", len(got))
	}
}

// refusal sends the head of a request that waits for 100 Continue, and returns
// the first line that comes back.
func refusal(t *testing.T, s *service, head string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/attempts HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 120\r\nExpect: 100-continue\r\n%s\r\n", head)
	first, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(first)
}

func TestABodyIsNotAskedForInVain(t *testing.T) {
	s := start(t, nil)
	if got := refusal(t, s, "Authorization: Bearer nobody\r\n"); got != "HTTP/1.1 401 Unauthorized" {
		t.Error(got)
	}
	if got := refusal(t, s, "Authorization: Bearer acme\r\n"); got != "HTTP/1.1 100 Continue" {
		t.Error(got)
	}
}

// A sender that trickles, or stalls, is sent away.
func TestSlowBodies(t *testing.T) {
	s := start(t, func(o *ingestd.Options) {
		o.Pace = ingestd.Pace{Stall: 50 * time.Millisecond, Grace: 300 * time.Millisecond, MinPerSec: 1 << 30}
	})
	for name, every := range map[string]time.Duration{"stalls": time.Hour, "trickles": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body, w := io.Pipe()
			go func() {
				_, _ = w.Write([]byte(line(0) + "\n"))
				tick := time.NewTicker(every)
				defer tick.Stop()
				for {
					select {
					case <-ctx.Done():
						_ = w.CloseWithError(errors.New("over"))
						return
					case <-tick.C:
						_, _ = w.Write([]byte(" "))
					}
				}
			}()
			if a := s.request(t, body); a.Status != http.StatusRequestTimeout || a.Code != "too_slow" {
				t.Errorf("%+v", a)
			}
		})
	}
	if got := s.stored(t); len(got) > 0 {
		t.Errorf("stored %v", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := start(t, func(o *ingestd.Options) { o.InFlightBytes = 1 << 20 })
	if a := s.request(t, strings.NewReader(ndjson(0, 40_000))); a.Status != 503 || a.Code != "busy" || a.Header.Get("Retry-After") == "" {
		t.Errorf("%+v", a)
	}
	if a := s.request(t, strings.NewReader(ndjson(0, 1000))); a.Status != 202 {
		t.Errorf("%+v", a)
	}
}

func TestOtherPaths(t *testing.T) {
	down := errors.New("down")
	s := start(t, func(o *ingestd.Options) { o.StoreReady = func(context.Context) error { return down } })
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 503, "/readyz?require=spool": 200, "/readyz?require=x": 400, "/v1/attempts": 405, "/x": 404,
	} {
		resp, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	s.h.Stopping()
	if a := s.request(t, strings.NewReader(line(0))); a.Status != 503 || a.Code != "stopping" {
		t.Errorf("%+v", a)
	}
}
