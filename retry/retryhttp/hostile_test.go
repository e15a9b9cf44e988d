package retryhttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
)

// raw is a provider that writes what it likes: serve is called for each request that was read.
func raw(t *testing.T, serve func(w io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				serve(conn)
			})
		}
	})
	return "http://" + l.Addr().String()
}

// forever writes text until the other side has gone.
func forever(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// drip does so with a pause.
func drip(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// bomb is so many bytes of zeros, compressed.
func bomb(n int) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	return b.Bytes()
}

const (
	jsonAnswer = `{"model":"m","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
	chunk      = `{"model":"m","choices":[{"delta":{"content":"Hi"}}]}`
	lastChunk  = `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
)

func head(status string, header ...string) string {
	return "HTTP/1.1 " + status + "\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n"
}

// events in the line ends of the reader's choice.
func events(end string, all ...string) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString("data: " + e + end + end)
	}
	return b.String()
}

const sse = "Content-Type: text/event-stream"

// hostile are answers that no provider should give, and what is to be made of them.
var hostile = []struct {
	name    string
	serve   func(w io.Writer)
	outcome retrylens.Outcome
	class   retrylens.ErrorClass
	status  int // 0 = no head; -1 = one that a record does not hold
	tokens  int64
}{
	{"headers that come a byte at a time", func(w io.Writer) { _, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nX: "); drip(w, "x") }, "error", "timeout", 0, -1},
	{"headers without end", func(w io.Writer) {
		_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n")
		forever(w, "X: "+strings.Repeat("x", 1000)+"\r\n")
	}, "error", "transport_unknown", 0, -1},
	{"informational answers without end", func(w io.Writer) { forever(w, head("103 Early Hints", "Link: </x>")) }, "error", "transport_unknown", 0, -1},
	{"nothing at all", func(w io.Writer) { _, _ = io.Copy(io.Discard, w.(io.Reader)) }, "error", "timeout", 0, -1},
	{"no HTTP", func(w io.Writer) { forever(w, "SSH-2.0-x\r\n") }, "error", "transport_unknown", 0, -1},
	{"a status that is none", func(w io.Writer) { _, _ = io.WriteString(w, head("999 Odd", "Content-Length: 2")+"{}") }, "error", "server_error", -1, -1},
	{"trailers", func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s%x\r\n%s\r\n0\r\nX-Request-Id: t\r\nContent-Length: 5\r\n\r\n", head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked"), len(jsonAnswer), jsonAnswer)
	}, "success", "", 200, 7},
	{"less than its length", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", "Content-Type: application/json", "Content-Length: 5000")+jsonAnswer[:60])
	}, "error", "transport_unknown", 200, -1},
	{"more than its length", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", "Content-Type: application/json", fmt.Sprint("Content-Length: ", len(jsonAnswer)))+jsonAnswer+"HTTP/1.1 500 Smuggled\r\n\r\n")
	}, "success", "", 200, 7},
	{"a body that comes a byte at a time", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", "Content-Type: application/json", "Content-Length: 5000")+`{"a":"`)
		drip(w, "x")
	}, "error", "timeout", 200, -1},
	{"an error whose body comes a byte at a time", func(w io.Writer) { _, _ = io.WriteString(w, head("503 No", "Content-Length: 5000")); drip(w, " ") }, "error", "unavailable", 503, -1},
	{"an error whose body is a bomb", func(w io.Writer) {
		b := bomb(32 << 20)
		_, _ = io.WriteString(w, head("503 No", "Content-Encoding: gzip", fmt.Sprint("Content-Length: ", len(b))))
		_, _ = w.Write(b)
	}, "error", "unavailable", 503, -1},
	{"bytes that are no gzip", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", "Content-Type: application/json", "Content-Encoding: gzip", "Content-Length: 5")+"plain")
	}, "error", "transport_unknown", 200, -1},
	{"204 with a body", func(w io.Writer) {
		_, _ = io.WriteString(w, head("204 None", "Content-Type: application/json", "Content-Length: 5")+"hello")
	}, "success", "", 204, -1},
	{"304 with a body", func(w io.Writer) {
		_, _ = io.WriteString(w, head("304 Same", "Content-Type: application/json", "Content-Length: 5")+"hello")
	}, "success", "", 304, -1},
	{"events that end in CR alone", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+events("\r", chunk, lastChunk, "[DONE]"))
	}, "success", "", 200, 7},
	{"events that end in CRLF", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+events("\r\n", chunk, lastChunk, "[DONE]"))
	}, "success", "", 200, 7},
	{"events behind a byte order mark", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+"\ufeff"+events("\n", chunk, lastChunk, "[DONE]"))
	}, "success", "", 200, 7},
	{"events whose first one is all there is, behind a byte order mark", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+"\ufeff"+events("\n", `{"error":{"code":"server_error","message":"x"}}`))
	}, "error", "server_error", 200, -1},
	{"a line of megabytes", func(w io.Writer) {
		long := strings.Replace(chunk, "Hi", strings.Repeat("long ", 1<<20), 1)
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+events("\n", long, lastChunk, "[DONE]"))
	}, "success", "", 200, 7},
	{"comments without end", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close"))
		drip(w, ": ping\n\n")
	}, "error", "timeout", 200, -1},
	{"a failed response with its usage", func(w io.Writer) {
		_, _ = io.WriteString(w, head("200 OK", sse, "Connection: close")+events("\n", `{"type":"response.output_text.delta","delta":"Hi"}`,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"},"usage":{"input_tokens":7,"output_tokens":3}}}`))
	}, "interrupted", "stream_interrupted", 200, 7},
}

// TestHostileProviders: whatever comes, the call ends, its slot is free again, and one valid record says
// what it was.
func TestHostileProviders(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			p := fast()
			p.Attempts = 1
			if c.class == retrylens.ClassTimeout || strings.Contains(c.name, "a byte at a time") {
				p.AttemptTimeout, p.GapTimeout = 300*time.Millisecond, 300*time.Millisecond
			}
			tr, err := retryhttp.New(retryhttp.Options{Base: &http.Transport{MaxResponseHeaderBytes: 64 << 10}, Records: m, Retry: retry.Options{Policy: p}, Provider: func(*http.Request) string { return "openai" }})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.CloseIdleConnections()
			req, err := http.NewRequestWithContext(op.With(context.Background(), op.Operation{ID: "op"}), http.MethodPost, raw(t, c.serve)+chat, strings.NewReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := tr.RoundTrip(req); err == nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 8<<20))
				_ = resp.Body.Close()
			}
			a := m.all(t)
			if len(a) != 1 {
				t.Fatalf("%d records: %+v", len(a), lines(a))
			}
			if got := a[0]; got.Outcome != c.outcome || got.ErrorClass != c.class || int(got.Status.Or(0)) != max(c.status, 0) || got.Status.Set != (c.status >= 0) || got.PromptTokens.Or(-1) != c.tokens {
				t.Errorf("%s", got.AppendJSON(nil))
			}
			if c.tokens > 0 && a[0].UsageSource != retrylens.UsageProvider {
				t.Errorf("usage is %s", a[0].UsageSource)
			}
			if s := tr.Engine().State("openai"); s.Bulkhead.InFlight != 0 {
				t.Errorf("%d slots are taken", s.Bulkhead.InFlight)
			}
		})
	}
}

// TestForgedHeaders: a provider that is no gateway does not say which of a gateway's attempts it was.
func TestForgedHeaders(t *testing.T) {
	r := start(t, script(step{Header: http.Header{"Retrylens-Attempt": {"5"}, "X-Request-Id": {strings.Repeat("long", 1000)}}}), nil)
	if code, _, err := r.post(keyed(), chat, whole); code != 200 || err != nil {
		t.Fatal(code, err)
	}
	if a := r.m.all(t); len(a) != 1 || a[0].ServedBy.Set || len(a[0].ProviderRequestID) != 256 {
		t.Errorf("%s", a[0].AppendJSON(nil))
	}
}

// TestHostileRequests: what http.Transport refuses is refused, with the body closed and nothing sent.
func TestHostileRequests(t *testing.T) {
	r := start(t, script(step{}), nil)
	for name, change := range map[string]func(*http.Request){
		"no address":       func(q *http.Request) { q.URL = nil },
		"no headers":       func(q *http.Request) { q.Header = nil },
		"no host":          func(q *http.Request) { q.URL.Host = "" },
		"another protocol": func(q *http.Request) { q.URL.Scheme = "gopher" },
		"a bad method":     func(q *http.Request) { q.Method = "B AD" },
		"a bad header":     func(q *http.Request) { q.Header["X"] = []string{"a\nb"} },
		"a bad name":       func(q *http.Request) { q.Header["X y"] = []string{"a"} },
	} {
		for _, ctx := range []context.Context{keyed(), op.With(context.Background(), op.Operation{ID: "op"})} {
			body := &closer{Reader: strings.NewReader(whole)}
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.srv.URL+chat, body)
			change(req)
			resp, err := r.tr.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
				if name != "no headers" { // http.Client makes some as well
					t.Errorf("%s was sent", name)
				}
			}
			if !body.closed {
				t.Errorf("%s: the body is open", name)
			}
		}
	}
	for _, a := range r.m.all(t) {
		if a.UpstreamCalls.Value != 0 && a.Status.Value != http.StatusOK {
			t.Errorf("%s", a.AppendJSON(nil))
		}
	}
	r.wire()
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

// TestHostileCallers: bodies closed twice, at once and while they are read, requests used by many at once, and a
// transport that is closed under them: each call has one record, and no slot stays taken.
func TestHostileCallers(t *testing.T) {
	for _, body := range []string{whole, stream} {
		r := start(t, script(step{Chunks: 20}), nil)
		const callers = 24
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				resp, err := r.do(op.With(context.Background(), op.Operation{ID: fmt.Sprint(i), Key: "k"}), chat, body)
				if err != nil {
					t.Error(err)
					return
				}
				var readers sync.WaitGroup
				readers.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
				if i%2 == 0 {
					readers.Go(func() { _ = resp.Body.Close() })
					readers.Go(func() { _ = resp.Body.Close() })
				} else if i%3 == 0 {
					readers.Go(func() { _ = r.tr.Close(context.Background()) })
				}
				readers.Wait()
				_ = resp.Body.Close()
				_, _ = resp.Body.Read(make([]byte, 1))
			})
		}
		wg.Wait()
		if a := r.m.all(t); len(a) != callers {
			t.Errorf("%d records of %d calls", len(a), callers)
		}
		if s := r.tr.Engine().State("openai"); s.Bulkhead.InFlight != 0 {
			t.Errorf("%d slots are taken", s.Bulkhead.InFlight)
		}
	}
}

// TestOneRequestOfMany: a request without a body may be sent by many at once.
func TestOneRequestOfMany(t *testing.T) {
	r := start(t, script(step{}), nil)
	req, err := http.NewRequestWithContext(keyed(), http.MethodGet, r.srv.URL+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			resp, err := r.tr.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	wg.Wait()
	numbers := map[int32]bool{}
	for _, a := range r.m.all(t) {
		numbers[a.Attempt] = true
	}
	if len(numbers) != 16 {
		t.Errorf("%d numbers of 16 attempts", len(numbers))
	}
	r.wire()
}
