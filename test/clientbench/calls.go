package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/retryhttp"
)

const answer = `{"id":"chatcmpl-1","object":"chat.completion","created":1764500000,"model":"gpt-5-mini","choices":[{"index":0,"message":{"role":"assistant","content":"A whole answer.","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`

const request = `{"model":"gpt-5-mini","messages":[{"role":"user","content":"What is the capital of Switzerland? Answer in one word."}],"temperature":0}`

// hungry takes records as fast as they come.
type hungry struct{}

func (hungry) Send(context.Context, []byte, int) (emit.Result, error) { return emit.Result{}, nil }
func (hungry) Close() error                                           { return nil }

func lens(base http.RoundTripper, records emit.Recorder) (http.RoundTripper, error) {
	return retryhttp.New(retryhttp.Options{Base: base, Records: records, Service: "svc",
		Provider: func(*http.Request) string { return "openai" }, KeyHeaders: map[string]string{"openai": "Idempotency-Key"}})
}

// call makes one request over rt and reads its answer.
func call(rt http.RoundTripper, ctx context.Context, buf []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://llm.example/v1/chat/completions", strings.NewReader(request))
	if err != nil {
		return err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for err == nil {
		_, err = resp.Body.Read(buf)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
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

// way is one to make a call.
type way struct {
	name, text string
	over       func(base http.RoundTripper) (rt http.RoundTripper, done func(), err error)
}

func nothing() {}

var ways = []way{
	{"bare", "a bare transport", func(base http.RoundTripper) (http.RoundTripper, func(), error) { return base, nothing, nil }},
	{"retrylens", "Retrylens, the record made and handed to a recorder that copies it", func(base http.RoundTripper) (http.RoundTripper, func(), error) {
		rt, err := lens(base, &copies{})
		return rt, nothing, err
	}},
	{"retrylens_and_emitter", "Retrylens and its emitter: encoding and fingerprint in another goroutine included", overEmitter},
	{"go-retryablehttp", "go-retryablehttp (retries alone)", func(base http.RoundTripper) (http.RoundTripper, func(), error) {
		c := retryablehttp.NewClient()
		c.HTTPClient, c.Logger = &http.Client{Transport: base}, nil
		return &retryablehttp.RoundTripper{Client: c}, nothing, nil
	}},
	{"failsafe-go", "failsafehttp (retries alone)", func(base http.RoundTripper) (http.RoundTripper, func(), error) {
		return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build()), nothing, nil
	}},
}

func overEmitter(base http.RoundTripper) (http.RoundTripper, func(), error) {
	e, err := emit.New(emit.Options{Sink: hungry{}, MaxRecords: 1 << 16})
	if err != nil {
		return nil, nil, err
	}
	rt, err := lens(base, e)
	return rt, func() { _ = e.Close(context.Background()) }, err
}

// chunksOf a stream: server-sent events whose text and padding differ.
func chunksOf(n int) (all stream) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, `data: {"id":"chatcmpl-BnZ3kq8wV0y1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini-2026-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" w%d"},"finish_reason":null}],"usage":null,"obfuscation":"%0*d"}`+"\n\n", i, 1+i%9, i))
	}
	return append(all, []byte("data: [DONE]\n\n"))
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
