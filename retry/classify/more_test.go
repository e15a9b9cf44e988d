package classify

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
)

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// chunks hands its bytes out in small reads.
type chunks struct{ b []byte }

func newChunks(b []byte) *chunks { return &chunks{b} }

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:min(7, len(c.b))])
	c.b = c.b[n:]
	return n, nil
}

func TestRunCasesNamesBadLines(t *testing.T) {
	in := `{"id":"a","status":429,"headers":{"retry-after":["5"]},"body":null}` + "\n" +
		"nonsense\n\n" + `{"status":500}` + "\n" + `{"id":"b","status":null,"transport_error":"EOF","extra":1}`
	var out bytes.Buffer
	err := RunCases(&out, newChunks([]byte(in)))
	want := `{"id":"a","class":"rate_limited","retryable":true,"pre_send":false,"needs_key":false,"retry_after_ms":5000}` + "\n" +
		`{"id":"b","class":"transport_unknown","retryable":true,"pre_send":false,"needs_key":true,"retry_after_ms":null}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	var line *LineError
	if !errors.As(err, &line) || line.Line != 2 || !strings.Contains(err.Error(), "line 4: no id") {
		t.Errorf("error %v", err)
	}
}

func TestRunCasesLongLine(t *testing.T) {
	in := `{"id":"` + strings.Repeat("x", maxLine) + "\"}\n" + `{"id":"b","status":503}` + "\n"
	var out bytes.Buffer
	err := RunCases(&out, strings.NewReader(in))
	if err == nil || !strings.Contains(err.Error(), "line 1: longer than") || !strings.Contains(out.String(), `"id":"b"`) {
		t.Errorf("error %v, out %q", err, out.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestRunCasesWriteError(t *testing.T) {
	if err := RunCases(failingWriter{}, strings.NewReader(`{"id":"b","status":503}`)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

func TestHeaderWaits(t *testing.T) {
	now := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	absent := time.Duration(-1)
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0", 0},
		{"Retry-After", "0.25", 250 * time.Millisecond},
		{"Retry-After", "1e1", 10 * time.Second},
		{"Retry-After", "-0", absent},
		{"Retry-After", "-1", absent},
		{"Retry-After", "nan", absent},
		{"Retry-After", "+Inf", absent},
		{"Retry-After", "0x1p3", absent},
		{"Retry-After", "1_000", absent},
		{"Retry-After", "7 seconds", 7 * time.Second},
		{"Retry-After", "Wed, 21 Oct 2026 07:28:09 GMT", 9 * time.Second},
		{"Retry-After", "Wednesday, 21-Oct-26 07:28:09 GMT", 9 * time.Second},
		{"Retry-After", "Wed, 21 Oct 2020 07:28:09 GMT", absent},
		{"Retry-After", "1e400", maxWait},
		{"Retry-After", "9223372037", maxWait},
		{"Retry-After-Ms", "1500.5", 1500500 * time.Microsecond},
		{"X-Ms-Retry-After-Ms", "20", 20 * time.Millisecond},
		{"X-Ratelimit-Reset", "12", 12 * time.Second},
		{"X-Ratelimit-Reset", "1792567740", time.Minute},
		{"X-Ratelimit-Reset", "1792567740000", time.Minute},
		{"X-Ratelimit-Reset", "1700000000", absent},
		{"X-Ratelimit-Reset-Requests", "1m2.5s", 62500 * time.Millisecond},
		{"X-Ratelimit-Reset-Tokens", "0s", absent},
		{"X-Ratelimit-Reset-After", "3", 3 * time.Second},
		{"Anthropic-Ratelimit-Tokens-Reset", "2026-10-21T07:28:30Z", 30 * time.Second},
		{"Anthropic-Ratelimit-Tokens-Reset", "2026-10-21T09:28:30+02:00", 30 * time.Second},
		{"Ratelimit-Reset", "50", 50 * time.Second},
	}
	for _, tt := range tests {
		v := New().Classify(&Failure{Status: 429, Now: now, Header: http.Header{tt.name: {tt.value}}})
		got := absent
		if v.Asked.Set {
			got = v.Asked.Value
		}
		if got != tt.want {
			t.Errorf("%s: %s is %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestSaturation(t *testing.T) {
	if d, _, ok := parseSpan([]byte("99999999999999999999999h 5 days"), false); !ok || d != maxWait {
		t.Errorf("%v %v", d, ok)
	}
	if got := scale(math.MaxFloat64, time.Hour); got != maxWait {
		t.Error(got)
	}
}

func TestFingerprint(t *testing.T) {
	of := func(status int, body string) string {
		return New().Classify(&Failure{Status: status, Body: []byte(body)}).Fingerprint()
	}
	a := `{"error":{"message":"boom in worker 17 (request ID 8f14e45f) at 2026-11-01T00:00:00Z","type":"server_error"},"request_id":"req_abc"}`
	b := `{"error":{"message":"boom in worker 3 (request ID c9f0f895) at 2026-11-02T10:11:12Z","type":"server_error"},"request_id":"req_xyz"}`
	other := `{"error":{"message":"bang in worker 3 (request ID c9f0f895)","type":"server_error"},"request_id":"req_xyz"}`
	if of(500, a) == "" || of(500, a) != of(500, b) {
		t.Errorf("ids and times make a difference: %q %q", of(500, a), of(500, b))
	}
	if of(500, a) == of(500, other) {
		t.Error("another message is the same")
	}
	for _, s := range []int{502, 503, 504, 429, 400} {
		if of(s, a) != "" {
			t.Errorf("status %d has a fingerprint", s)
		}
	}
	if of(500, "") != "" || of(500, "<html>oops</html>") != "" {
		t.Error("what says nothing has a fingerprint")
	}
}

// wrappings keep the meaning of an error whatever is put around it.
var wrappings = []struct {
	name string
	wrap func(body []byte) []byte
}{
	{"indent", func(b []byte) []byte { var o bytes.Buffer; json.Indent(&o, b, "\t", "   "); return o.Bytes() }},
	{"space", func(b []byte) []byte { return append([]byte("\r\n\n  "), append(b, "\n\n"...)...) }},
	{"array", func(b []byte) []byte { return append(append([]byte("["), b...), ']') }},
	{"detail", func(b []byte) []byte {
		return append(append([]byte(`{"success":false,"trace":{"k":[1,2,{}]},"detail":`), b...), '}')
	}},
	{"errors", func(b []byte) []byte { return append(append([]byte(`{"errors":[`), b...), "]}"...) }},
	{"string", func(b []byte) []byte { o, _ := json.Marshal(string(b)); return o }},
	{"message", func(b []byte) []byte { o, _ := json.Marshal(map[string]string{"message": string(b)}); return o }},
	{"prefixed", func(b []byte) []byte {
		o, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "Upstream said: " + string(b)}})
		return o
	}},
	{"upper keys", func(b []byte) []byte {
		return []byte(strings.NewReplacer(`"message":`, `"Message":`, `"code":`, `"Code":`, `"error":`, `"Error":`).Replace(string(b)))
	}},
	{"deflate", func(b []byte) []byte {
		var o bytes.Buffer
		w := zlib.NewWriter(&o)
		w.Write(b)
		w.Close()
		return o.Bytes()
	}},
}

// TestWrapped holds every case with a JSON error to its class after wrapping.
func TestWrapped(t *testing.T) {
	c := New()
	n := 0
	for _, file := range []string{"failures.jsonl", "own.jsonl"} {
		for _, k := range readCases(t, file) {
			f := k.Failure()
			if f.Status < 400 || !json.Valid(f.Body) || len(f.Body) < 3 {
				continue
			}
			want := c.Classify(f)
			for _, w := range wrappings {
				g := *f
				g.Body = w.wrap(f.Body)
				if w.name == "deflate" {
					g.Header = f.Header.Clone()
					g.Header.Set("Content-Encoding", "deflate")
				}
				n++
				if got := c.Classify(&g); got.Answer().Class != want.Class || got.Asked != want.Asked {
					t.Errorf("%s, %s: %s %v (%s), want %s %v (%s)\n%s", k.ID, w.name, got.Class, got.Asked, got.Reason, want.Class, want.Asked, want.Reason, g.Body)
				}
			}
		}
	}
	t.Logf("%d wrapped cases", n)
}

// TestTruncated: no cut makes a body say something worse than nothing: an error of
// status 400 and above stays retryable or not as its own class or status says.
func TestTruncated(t *testing.T) {
	c := New()
	for _, k := range readCases(t, "own.jsonl") {
		f := k.Failure()
		for i := range f.Body {
			g := *f
			g.Body = f.Body[:i]
			invariants(t, &g, c.Classify(&g))
		}
	}
}

// TestStatusTable is rule 4 over every status.
func TestStatusTable(t *testing.T) {
	c := New()
	want := map[int]retrylens.ErrorClass{401: "auth", 402: "quota_exhausted", 403: "permission", 404: "not_found", 408: "timeout", 409: "conflict",
		413: "payload_too_large", 429: "rate_limited", 500: "server_error", 502: "bad_gateway", 503: "unavailable", 504: "gateway_timeout",
		524: "gateway_timeout", 529: "overloaded"}
	for s := 400; s < 600; s++ {
		w, ok := want[s]
		if !ok {
			w = "invalid_request"
			if s >= 500 {
				w = "server_error"
			}
		}
		if v := c.Classify(&Failure{Status: s}); v.Class != w {
			t.Errorf("%d is %s, want %s", s, v.Class, w)
		}
	}
}

// TestConcurrent shares one classifier among goroutines.
func TestConcurrent(t *testing.T) {
	c := New()
	var fs []*Failure
	var want []Verdict
	for _, k := range readCases(t, "failures.jsonl") {
		f := k.Failure()
		fs, want = append(fs, f), append(want, c.Classify(f))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 2000 {
				i := rng.IntN(len(fs))
				if got := c.Classify(fs[i]); got != want[i] {
					t.Errorf("%d: %+v, want %+v", i, got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestNoAllocations(t *testing.T) {
	c := New()
	f := &Failure{Provider: "openai", Status: 503, Header: http.Header{"Retry-After": {"3"}}}
	if n := testing.AllocsPerRun(100, func() { c.Classify(f) }); n > 0 {
		t.Errorf("%v allocations for a plain status", n)
	}
}

// TestOwnTable: a new provider is data.
func TestOwnTable(t *testing.T) {
	c := New(Provider{Name: "acme", Codes: map[string]Rule{"e42": {Class: retrylens.ClassQuotaExhausted, Strength: Exact}},
		Status: map[int]Rule{420: {Class: retrylens.ClassRateLimited, Strength: Firm}}, TypeHeaders: []string{"X-Acme-Error"}})
	for _, tt := range []struct {
		f    Failure
		want retrylens.ErrorClass
	}{
		{Failure{Provider: "Acme", Status: 400, Body: []byte(`{"code":"E-42"}`)}, retrylens.ClassQuotaExhausted},
		{Failure{Provider: "acme", Status: 420}, retrylens.ClassRateLimited},
		{Failure{Provider: "acme", Status: 400, Header: http.Header{"X-Acme-Error": {"overloaded_error"}}}, retrylens.ClassOverloaded},
		{Failure{Provider: "other", Status: 420}, retrylens.ClassInvalidRequest},
	} {
		if v := c.Classify(&tt.f); v.Class != tt.want {
			t.Errorf("%+v: %s, want %s", tt.f, v.Class, tt.want)
		}
	}
}

// TestIdentityIsTheFingerprint in another form: equal where it is, 0 where it is empty.
func TestIdentityIsTheFingerprint(t *testing.T) {
	c := New()
	var all []Verdict
	for _, body := range []string{"", `{"error":{"message":"a","request_id":"1"}}`, `{"error":{"message":"a","request_id":"2"}}`, `{"error":{"message":"b"}}`, "<html>x</html>"} {
		all = append(all, c.Classify(&Failure{Provider: "openai", Status: 500, HeadersReceived: true, Body: []byte(body)}))
	}
	for _, a := range all {
		if (a.Identity() == 0) != (a.Fingerprint() == "") {
			t.Errorf("identity %d, fingerprint %q", a.Identity(), a.Fingerprint())
		}
		for _, b := range all {
			if (a.Identity() == b.Identity()) != (a.Fingerprint() == b.Fingerprint()) {
				t.Errorf("%d %d, %q %q", a.Identity(), b.Identity(), a.Fingerprint(), b.Fingerprint())
			}
		}
	}
}
