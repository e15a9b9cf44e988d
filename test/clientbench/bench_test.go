package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
)

const answer = `{"id":"chatcmpl-1","object":"chat.completion","created":1764500000,"model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":"A whole answer.","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`

const request = `{"model":"gpt-5-mini","messages":[{"role":"user","content":"What is the capital of Switzerland? Answer in one word."}],"temperature":0}`

// hungry takes records as fast as they come.
type hungry struct{}

func (hungry) Send(context.Context, []byte, int) (emit.Result, error) { return emit.Result{}, nil }
func (hungry) Close() error                                           { return nil }

func lens(b testing.TB, base http.RoundTripper, records emit.Recorder) http.RoundTripper {
	t, err := retryhttp.New(retryhttp.Options{Base: base, Records: records, Service: "svc",
		Provider: func(*http.Request) string { return "openai" }, KeyHeaders: map[string]string{"openai": "Idempotency-Key"}})
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// call makes one request over rt and reads its answer.
func call(b *testing.B, rt http.RoundTripper, ctx context.Context, buf []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://llm.example/v1/chat/completions", strings.NewReader(request))
	if err != nil {
		b.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	for {
		if _, err := resp.Body.Read(buf); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
	}
	resp.Body.Close()
}

// instant is a base that answers without a network at all, and reports to httptrace as
// an http.Transport does.
type instant struct{ body string }

func (i instant) RoundTrip(r *http.Request) (*http.Response, error) {
	t := httptrace.ContextClientTrace(r.Context())
	if t != nil {
		t.GetConn("llm.example:80")
		t.GotConn(httptrace.GotConnInfo{Reused: true})
		t.WroteHeaders()
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	if t != nil {
		t.WroteRequest(httptrace.WroteRequestInfo{})
		t.GotFirstResponseByte()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"req-1"}}, Body: io.NopCloser(strings.NewReader(i.body)),
		ContentLength: int64(len(i.body)), Request: r}, nil
}

// ballast gives the process the heap of a small service: with none at all, the garbage
// collector runs a thousand times a second and its fixed costs are what is measured.
var ballast = make([]byte, 64<<20)

func TestMain(m *testing.M) {
	code := m.Run()
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// copies is a recorder that takes what the call path must give and no more.
type copies struct {
	mu sync.Mutex
	a  retrylens.Attempt
	n  int64
}

func (c *copies) Emit(a *retrylens.Attempt, _ emit.Late) {
	c.mu.Lock()
	a.Seq = retrylens.Some(c.n)
	c.a = *a
	c.n++
	c.mu.Unlock()
}

// wraps are the ways to make a call.
var wraps = []struct {
	name string
	rt   func(testing.TB, http.RoundTripper) (http.RoundTripper, func())
}{
	{"bare", func(_ testing.TB, base http.RoundTripper) (http.RoundTripper, func()) { return base, func() {} }},
	{"retrylens", func(b testing.TB, base http.RoundTripper) (http.RoundTripper, func()) {
		return lens(b, base, &copies{}), func() {}
	}},
	{"retrylens_and_emitter", func(b testing.TB, base http.RoundTripper) (http.RoundTripper, func()) {
		e, err := emit.New(emit.Options{Sink: hungry{}, MaxRecords: 1 << 16})
		if err != nil {
			b.Fatal(err)
		}
		return lens(b, base, e), func() { _ = e.Close(context.Background()) }
	}},
	{"go-retryablehttp", func(_ testing.TB, base http.RoundTripper) (http.RoundTripper, func()) {
		c := retryablehttp.NewClient()
		c.HTTPClient, c.Logger = &http.Client{Transport: base}, nil
		return &retryablehttp.RoundTripper{Client: c}, func() {}
	}},
	{"failsafe-go", func(_ testing.TB, base http.RoundTripper) (http.RoundTripper, func()) {
		return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build()), func() {}
	}},
}

// BenchmarkCall is a successful call with its answer read to the end, over a network
// that is none; cpu-ns/op is the processor time of all goroutines.
func BenchmarkCall(b *testing.B) {
	for _, c := range wraps {
		b.Run(c.name, func(b *testing.B) {
			rt, done := c.rt(b, instant{answer})
			buf := make([]byte, 4096)
			contexts := [64]context.Context{}
			for i := range contexts {
				contexts[i] = op.With(context.Background(), op.Operation{ID: "op", Key: "key", Name: "ask"})
			}
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			for i := range b.N {
				call(b, rt, contexts[i%len(contexts)], buf)
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
			b.StopTimer()
			done()
		})
	}
}

// BenchmarkStream is a stream of a thousand chunks, each read by itself; the figures are
// per chunk.
func BenchmarkStream(b *testing.B) {
	const n = 1000
	var chunks [][]byte
	for i := range n {
		chunks = append(chunks, fmt.Appendf(nil, `data: {"id":"chatcmpl-BnZ3kq8wV0y1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini-2026-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" w%d"},"finish_reason":null}],"usage":null,"obfuscation":"%0*d"}`+"\n\n", i, 1+i%9, i))
	}
	chunks = append(chunks, []byte("data: [DONE]\n\n"))
	for _, c := range wraps {
		b.Run(c.name, func(b *testing.B) {
			rt, done := c.rt(b, stream(chunks))
			buf := make([]byte, 4096)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			for range b.N {
				call(b, rt, op.With(context.Background(), op.Operation{Key: "key"}), buf)
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/n, "cpu-ns/op")
			b.StopTimer()
			done()
		})
	}
}

// stream is a base whose answer comes chunk by chunk.
type stream [][]byte

func (s stream) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := instant{}.RoundTrip(r)
	resp.Header.Set("Content-Type", "text/event-stream")
	resp.Body = &chunked{left: s}
	return resp, err
}

type chunked struct{ left [][]byte }

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[0])
	c.left = c.left[1:]
	return n, nil
}

func (*chunked) Close() error { return nil }

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
