package classify

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/retrylens/retrylens"
)

// invariants hold for every verdict, whatever was sent.
func invariants(t *testing.T, f *Failure, v Verdict) {
	t.Helper()
	switch {
	case !v.Class.Valid():
		t.Errorf("class %q", v.Class)
	case v.NeedsKey && !v.Retryable:
		t.Error("needs a key without being retryable")
	case v.RetryAfter.Set && !v.Retryable:
		t.Error("a wait without a retry")
	case v.RetryAfter.Value < 0 || v.Asked.Value < 0:
		t.Error("negative wait")
	case v.Reason == "" || len(v.Reason) > 256:
		t.Errorf("reason %q", v.Reason)
	case len(v.ProviderErrorType) > 128 || !utf8.ValidString(v.ProviderErrorType):
		t.Errorf("type %q", v.ProviderErrorType)
	case v.PreSend && (f.Status > 0 || f.HeadersReceived || f.ContentReceived):
		t.Error("pre-send after an answer")
	case v.Class == retrylens.ClassRateLimited && v.RetryAfter.Value > QuotaWait:
		t.Error("a rate limit with a wait above 5 minutes")
	case f.Stream && f.ContentReceived && f.Status < 400 && f.Err != nil && v.Retryable:
		t.Error("a consumed stream is retryable")
	}
}

func FuzzBody(f *testing.F) {
	for _, name := range []string{"failures.jsonl", "own.jsonl"} {
		for _, k := range readCases(f, name) {
			x := k.Failure()
			f.Add(x.Body, uint16(x.Status), k.Provider, x.Header.Get("Content-Type"), x.Stream, x.ContentReceived)
		}
	}
	c := New()
	f.Fuzz(func(t *testing.T, body []byte, status uint16, provider, contentType string, stream, content bool) {
		x := &Failure{Provider: provider, Status: int(status % 1000), Body: body, Stream: stream, ContentReceived: content,
			Header: http.Header{"Content-Type": {contentType}}}
		v := c.Classify(x)
		invariants(t, x, v)
		if again := c.Classify(x); again != v {
			t.Errorf("not the same twice: %+v, %+v", v, again)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"1", "1.5", "-1", "NaN", "inf", "1e400", "0x10", "6m0s", "1h2m3.5s", "1792567740", "2026-10-21T07:28:30Z",
		"Wed, 21 Oct 2026 07:28:30 GMT", "Wednesday, 21-Oct-26 07:28:30 GMT", "", " 7 ", "99999999999999999999", "34.07s", "1_0", "٣"} {
		f.Add(s, s, s, s, uint16(429))
	}
	c := New()
	now := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, after, ms, reset, date string, status uint16) {
		x := &Failure{Status: int(status % 1000), Now: now, Header: http.Header{"Retry-After": {after}, "Retry-After-Ms": {ms}, "Date": {date},
			"X-Ratelimit-Reset-Tokens": {reset}, "Anthropic-Ratelimit-Tokens-Reset": {reset}, "X-Ratelimit-Reset": {reset}, "X-Should-Retry": {after}}}
		invariants(t, x, c.Classify(x))
	})
}

func FuzzText(f *testing.F) {
	for _, k := range readCases(f, "own.jsonl") {
		if k.TransportError != nil {
			f.Add(*k.TransportError)
		}
	}
	f.Add("Please retry after 20 seconds. limit: 0, {'error': {'code': 429")
	c := New()
	f.Fuzz(func(t *testing.T, s string) {
		x := &Failure{Err: textError(s)}
		invariants(t, x, c.Classify(x))
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": s}})
		y := &Failure{Status: 429, Body: body}
		invariants(t, y, c.Classify(y))
	})
}

func FuzzEventStream(f *testing.F) {
	for _, k := range readCases(f, "own.jsonl") {
		if len(k.BodyBase64) > 0 {
			f.Add(k.BodyBase64)
		}
	}
	c := New()
	f.Fuzz(func(t *testing.T, b []byte) {
		readHeaders(b)
		x := &Failure{Status: 200, Stream: true, Provider: "bedrock", Body: b}
		invariants(t, x, c.Classify(x))
		a := &analysis{f: x, p: &noProvider}
		a.events(b)
	})
}

func FuzzSpan(f *testing.F) {
	for _, s := range []string{"1m30s", "20 seconds", "1 minute and 5 seconds", "9m38.016s", "00:12", "1e9s", "5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, n, ok := parseSpan([]byte(s), true)
		if d < 0 || n < 0 || n > len(s) || ok && n == 0 {
			t.Errorf("%q: %v %d %v", s, d, n, ok)
		}
		if g, err := time.ParseDuration(s); err == nil && g >= 0 && ok && n == len(s) {
			if diff := g - d; diff > time.Microsecond || diff < -time.Microsecond {
				t.Errorf("%q: %v, Go says %v", s, d, g)
			}
		}
	})
}

func FuzzCases(f *testing.F) {
	f.Add([]byte(`{"id":"a","status":429,"headers":{"retry-after":5},"body":"{}"}` + "\n\nnope\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w counter
		RunCases(&w, newChunks(b))
	})
}
