package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/fingerprint"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

type step = fakeprovider.Step

var script = fakeprovider.Script

const (
	first  = retrylens.CauseFirst
	policy = retrylens.CausePolicy
	sdk    = retrylens.CauseSDK
	failed = retrylens.OutcomeError
	none   = retrylens.DeliveryNone
	full   = retrylens.DeliveryFull
	part   = retrylens.DeliveryPartial
)

func delivered(attempt int32, cause retrylens.Cause) line {
	return line{attempt, cause, retrylens.OutcomeSuccess, "", 200, 1, full, retrylens.StopDelivered, 100, 20, retrylens.UsageProvider}
}

func failure(attempt int32, cause retrylens.Cause, class retrylens.ErrorClass, status int) line {
	return line{attempt, cause, failed, class, status, 1, none, "", -1, -1, retrylens.UsageUnknown}
}

// TestRecord: every field that can be known is.
func TestRecord(t *testing.T) {
	r := start(t, script(step{Cached: 64, Reasoning: 7, Header: http.Header{"X-Request-Id": {"req-1"}}}), func(o *retryhttp.Options) {
		o.Service, o.Environment, o.Tenant = "svc", "prod", "acme"
	})
	ctx := op.With(context.Background(), op.Operation{ID: "op-1", Key: "key-1", Name: "summarise", Attributes: map[string]string{"a": "b"}})
	if code, text, err := r.post(ctx, chat+"?x=1", whole); code != 200 || err != nil || !strings.Contains(text, "whole answer") {
		t.Fatalf("%d %q %v", code, text, err)
	}
	a := r.want(delivered(0, first))[0]
	if a.LogicalID != "op-1" || a.IdempotencyKey != "key-1" || a.Operation != "summarise" || a.Service != "svc" || a.Environment != "prod" || a.Tenant != "acme" ||
		a.Provider != "openai" || a.Model != "gpt-5-mini" || a.ResponseModel != "gpt-5-mini-2026-08-07" || a.Endpoint != chat || a.Stream ||
		a.ProviderRequestID != "req-1" || a.Attributes["a"] != "b" || !a.Final.Value || a.Hop != retrylens.HopClient {
		t.Errorf("%s", a.AppendJSON(nil))
	}
	if a.CachedPromptTokens.Value != 64 || a.ReasoningTokens.Value != 7 || !a.TTFBMS.Set || !a.DurationMS.Set || a.DurationMS.Value < a.TTFBMS.Value {
		t.Errorf("%s", a.AppendJSON(nil))
	}
	if a.Fingerprint != fingerprint.Body([]byte(whole)) || len(a.Fingerprint) != 71 {
		t.Errorf("fingerprint %q", a.Fingerprint)
	}
	if got := r.srv.Served()[0]; got.Header.Get("Idempotency-Key") != "key-1" || string(got.Body) != whole || got.Header.Get("Retrylens-Operation") != "" {
		t.Errorf("the server saw %+v", got)
	}
	r.wire()
}

func TestRetries(t *testing.T) {
	limited := step{Status: 429, Header: http.Header{"Retry-After-Ms": {"30"}}, Body: `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`}
	for _, c := range []struct {
		name  string
		steps []step
		want  []line
	}{
		{"429 with a wait", []step{limited, {}}, []line{failure(0, first, "rate_limited", 429), delivered(1, policy)}},
		{"overload", []step{{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error"}}`}, {}}, []line{failure(0, first, "overloaded", 529), delivered(1, policy)}},
		{"quota", []step{{Status: 429, Body: `{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}`}},
			[]line{{0, first, failed, "quota_exhausted", 429, 1, none, "not_retryable", -1, -1, "unknown"}}},
		{"reset before headers", []step{{Break: fakeprovider.BreakRequest}, {}}, []line{failure(0, first, "transport_unknown", 0), delivered(1, policy)}},
		{"given up", []step{{Status: 503, Body: `static page`}}, []line{failure(0, first, "unavailable", 503), failure(1, policy, "unavailable", 503),
			{2, policy, failed, "unavailable", 503, 1, none, "max_attempts", -1, -1, "unknown"}}},
		{"the same 500 twice", []step{{Status: 500, Body: `{"error":{"message":"boom"}}`}}, []line{failure(0, first, "server_error", 500),
			{1, policy, failed, "server_error", 500, 1, none, "repeated_identically", -1, -1, "unknown"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, script(c.steps...), nil)
			code, text, err := r.post(keyed(), chat, whole)
			last := c.want[len(c.want)-1]
			if err != nil || code != last.Status || last.Status >= 400 && text != c.steps[len(c.steps)-1].Body {
				t.Errorf("the caller got %d %q %v", code, text, err)
			}
			records := r.want(c.want...)
			for i, a := range records[:len(records)-1] {
				if !a.DelayMS.Set || a.Final.Value || a.LogicalID != "op" || !a.OperationStartedAt.Equal(records[0].OperationStartedAt) {
					t.Errorf("record %d: %s", i, a.AppendJSON(nil))
				}
			}
			if c.name == "429 with a wait" && (records[0].RetryAfterMS.Value != 30 || records[0].DelayMS.Value < 30 || records[0].ProviderErrorType != "rate_limit_exceeded") {
				t.Errorf("%s", records[0].AppendJSON(nil))
			}
			r.wire()
		})
	}
}

// TestUnkeyed: where the key does not go, an unknown outcome is not tried again.
func TestUnkeyed(t *testing.T) {
	r := start(t, script(step{Status: 503}, step{}), func(o *retryhttp.Options) { o.KeyHeaders = nil })
	if code, _, err := r.post(keyed(), chat, whole); code != 503 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	a := r.want(line{0, first, failed, "unavailable", 503, 1, none, "unkeyed", -1, -1, "unknown"})[0]
	if a.IdempotencyKey != "" || r.srv.Served()[0].Header.Get("Idempotency-Key") != "" {
		t.Errorf("a key went to a provider that is not configured for it: %s", a.AppendJSON(nil))
	}
}

// TestPresend: nothing listens, so nothing was sent, which the trace proves.
func TestPresend(t *testing.T) {
	r := start(t, nil, nil)
	r.srv.Close()
	_, _, err := r.post(context.Background(), chat, whole)
	var gone *retry.Error
	if !errors.As(err, &gone) || gone.StopReason != retrylens.StopUnkeyed {
		t.Fatalf("%v", err)
	}
	r.want(line{0, first, failed, "transport_presend", 0, 0, none, "", -1, -1, "unknown"}, line{1, policy, failed, "transport_presend", 0, 0, none, "unkeyed", -1, -1, "unknown"})
}

// TestUntraced: a base that does not report to httptrace proves nothing.
func TestUntraced(t *testing.T) {
	m := &memory{}
	tr, err := retryhttp.New(retryhttp.Options{Records: m, Retry: retry.Options{Policy: fast()}, Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Client().Post("http://llm.example/v1/x", "application/json", strings.NewReader("{}")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	a := m.all(t)
	if len(a) != 1 || a[0].ErrorClass != "transport_unknown" || a[0].UpstreamCalls.Value != 1 || a[0].Provider != "llm.example" {
		t.Errorf("%+v", lines(a))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestStreams(t *testing.T) {
	interrupted := func(prompt, completion int64, source retrylens.UsageSource) line {
		return line{0, first, retrylens.OutcomeInterrupted, "stream_interrupted", 200, 1, part, "partial_stream", prompt, completion, source}
	}
	for _, c := range []struct {
		name, path, provider, body string
		step                       step
		want                       line
	}{
		{"openai", chat, "openai", stream, step{}, delivered(0, first)},
		{"openai reset", chat, "openai", stream, step{Break: fakeprovider.BreakStream, AfterChunk: 2}, interrupted(-1, 4, "estimated")},
		{"openai cut in order", chat, "openai", stream, step{Break: fakeprovider.BreakClean, AfterChunk: 2}, interrupted(-1, 4, "estimated")},
		{"openai no usage", chat, "openai", stream, step{NoUsage: true}, line{0, first, "success", "", 200, 1, full, "delivered", -1, 6, "estimated"}},
		{"openai filter at the end", chat, "openai", stream, step{Finish: "content_filter"}, line{0, first, failed, "content_filter", 200, 1, part, "partial_stream", 100, 20, "provider"}},
		{"responses", "/v1/responses", "openai", stream, step{}, delivered(0, first)},
		{"anthropic", "/v1/messages", "anthropic", stream, step{Cached: 60}, delivered(0, first)},
		{"anthropic reset", "/v1/messages", "anthropic", stream, step{Break: fakeprovider.BreakStream, AfterChunk: 1}, interrupted(100, 2, "partial")},
		{"gemini", "/v1beta/models/gemini-3-flash:streamGenerateContent", "gemini", "{}", step{Reasoning: 5}, delivered(0, first)},
		{"gemini reset", "/v1beta/models/gemini-3-flash:streamGenerateContent", "gemini", "{}", step{Break: fakeprovider.BreakStream, AfterChunk: 2}, interrupted(100, 2, "partial")},
		{"bedrock", "/model/claude/converse-stream", "bedrock", "{}", step{Cached: 10}, delivered(0, first)},
		{"bedrock reset", "/model/claude/converse-stream", "bedrock", "{}", step{Break: fakeprovider.BreakStream, AfterChunk: 2}, interrupted(-1, 4, "estimated")},
		{"bedrock invoke", "/model/claude/invoke-with-response-stream", "bedrock", "{}", step{Tool: true}, delivered(0, first)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, script(c.step), func(o *retryhttp.Options) { o.Provider = func(*http.Request) string { return c.provider } })
			_, text, err := r.post(keyed(), c.path, c.body)
			if broken := c.step.Break == fakeprovider.BreakStream; broken != (err != nil) {
				t.Errorf("the caller got %q, %v", text, err)
			}
			a := r.want(c.want)[0]
			if !a.Stream || a.Model == "" {
				t.Errorf("%s", a.AppendJSON(nil))
			}
			r.wire()
		})
	}
}

// TestErrorFirst: a stream whose first event is an error is tried again, as the error
// that it names; after content it is not.
func TestErrorFirst(t *testing.T) {
	overloaded := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	r := start(t, script(step{Body: ": hello\n\n" + overloaded}, step{}), func(o *retryhttp.Options) { o.Provider = func(*http.Request) string { return "anthropic" } })
	if code, text, err := r.post(keyed(), "/v1/messages", stream); code != 200 || err != nil || !strings.Contains(text, "message_stop") {
		t.Errorf("%d %q %v", code, text, err)
	}
	r.want(failure(0, first, "overloaded", 200), delivered(1, policy))
	r.wire()

	content := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"four\"}}\n\n"
	r = start(t, script(step{Body: content + overloaded}), func(o *retryhttp.Options) { o.Provider = func(*http.Request) string { return "anthropic" } })
	if _, text, err := r.post(keyed(), "/v1/messages", stream); err != nil || text != content+overloaded {
		t.Errorf("%q %v", text, err)
	}
	r.want(line{0, first, retrylens.OutcomeInterrupted, "stream_interrupted", 200, 1, part, "partial_stream", -1, 1, "estimated"})
}

// TestNotASuccess: an answer of status 200 that is none.
func TestNotASuccess(t *testing.T) {
	for _, c := range []struct {
		name, body string
		class      retrylens.ErrorClass
	}{
		{"content filter", `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":1,"completion_tokens":0}}`, "content_filter"},
		{"refusal", `{"choices":[{"message":{"content":null,"refusal":"I cannot"},"finish_reason":"stop"}]}`, "refusal"},
		{"anthropic refusal", `{"type":"message","content":[],"stop_reason":"refusal"}`, "refusal"},
		{"no choices", `{"object":"chat.completion","choices":[]}`, "empty_response"},
		{"gemini block", `{"promptFeedback":{"blockReason":"SAFETY"}}`, "content_filter"},
		{"error on 200", `{"error":{"code":"rate_limit_exceeded","message":"slow"}}`, "rate_limited"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, script(step{Status: 200, Body: c.body}), nil)
			if code, text, err := r.post(keyed(), chat, whole); code != 200 || text != c.body || err != nil {
				t.Errorf("the caller got %d %q %v", code, text, err)
			}
			a := r.m.all(t)
			if len(a) != 1 || a[0].ErrorClass != c.class || a[0].Outcome != failed || !a[0].Final.Value {
				t.Errorf("%+v", lines(a))
			}
		})
	}
}

// TestOtherAnswers: what is no generated content is a success once it is complete.
func TestOtherAnswers(t *testing.T) {
	for _, c := range []struct{ contentType, body string }{
		{"application/json", `{"object":"list","data":[{"object":"embedding","embedding":[0.1]}],"model":"e","usage":{"prompt_tokens":3,"total_tokens":3}}`},
		{"application/json", `{"object":"list","data":[]}`}, {"application/json", `{"input_tokens":5}`}, {"audio/mpeg", "\x00\x01"}, {"text/plain", "ok"},
		{"application/json", `{"results":[{"flagged":false}]}`},
	} {
		r := start(t, script(step{Status: 200, Body: c.body, Header: http.Header{"Content-Type": {c.contentType}}}), nil)
		if _, text, err := r.post(keyed(), "/v1/other", whole); text != c.body || err != nil {
			t.Errorf("%q %v", text, err)
		}
		if a := r.m.all(t); len(a) != 1 || a[0].Outcome != retrylens.OutcomeSuccess {
			t.Errorf("%s: %+v", c.body, lines(a))
		}
	}
}

// TestUnbuffered: each chunk reaches the reader before the next one is sent.
func TestUnbuffered(t *testing.T) {
	r := start(t, script(step{Chunks: 2, ChunkDelay: time.Hour}), nil)
	ctx, cancel := context.WithCancel(keyed())
	defer cancel()
	resp, err := r.do(ctx, chat, stream)
	if err != nil {
		t.Fatal(err)
	}
	got, buf := "", make([]byte, 4096)
	for !strings.Contains(got, "word 0") {
		n, err := resp.Body.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatal(err)
		}
	}
	resp.Body.Close()
	r.want(line{0, first, retrylens.OutcomeAbandoned, "cancelled", 200, 1, part, "caller_gone", -1, 2, "estimated"})
	if n := r.tr.Engine().State("openai").Bulkhead.InFlight; n != 0 {
		t.Errorf("%d slots still taken", n)
	}
}

// TestClosedAfterTheTerminalEvent: SDKs do not read on to the end of the body.
func TestClosedAfterTheTerminalEvent(t *testing.T) {
	r := start(t, script(step{}), nil)
	resp, err := r.do(keyed(), chat, stream)
	if err != nil {
		t.Fatal(err)
	}
	got, buf := "", make([]byte, 1)
	for !strings.HasSuffix(got, "[DONE]\n") {
		n, err := resp.Body.Read(buf)
		if got += string(buf[:n]); err != nil {
			t.Fatal(err)
		}
	}
	resp.Body.Close()
	resp.Body.Close()
	r.want(delivered(0, first))
}

// TestReadsAfterTheEnd give io.EOF again, as every reader does.
func TestReadsAfterTheEnd(t *testing.T) {
	for _, body := range []string{whole, stream} {
		r := start(t, script(step{}), nil)
		resp, err := r.do(keyed(), chat, body)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		for range 2 {
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%d, %v", n, err)
			}
		}
		resp.Body.Close()
	}
}

// TestGap: content feeds the gap timeout, keep-alives do not.
func TestGap(t *testing.T) {
	p := fast()
	p.GapTimeout = 250 * time.Millisecond
	r := start(t, script(step{Chunks: 12, ChunkDelay: 60 * time.Millisecond}), func(o *retryhttp.Options) { o.Retry.Policy = p })
	if _, _, err := r.post(keyed(), chat, stream); err != nil {
		t.Errorf("a stream of twelve gaps: %v", err)
	}
	r.want(delivered(0, first))

	r = start(t, func(int, *fakeprovider.Served) step {
		return step{Chunks: 2, ChunkDelay: time.Minute, KeepAlive: true}
	}, func(o *retryhttp.Options) { o.Retry.Policy = p })
	_, text, err := r.post(keyed(), chat, stream)
	if !errors.Is(err, retry.ErrGapTimeout) || !strings.Contains(text, "keep-alive") {
		t.Errorf("%q %v", text, err)
	}
	r.want(line{0, first, retrylens.OutcomeInterrupted, "stream_interrupted", 200, 1, part, "partial_stream", -1, 2, "estimated"})
}

func TestAttemptTimeout(t *testing.T) {
	p := fast()
	p.AttemptTimeout = 150 * time.Millisecond
	r := start(t, script(step{Break: fakeprovider.Hang}, step{}), func(o *retryhttp.Options) { o.Retry.Policy = p })
	if code, _, err := r.post(keyed(), chat, whole); code != 200 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	r.want(failure(0, first, "timeout", 0), delivered(1, policy))
	r.wire()
}

// TestHold: an answer that breaks before it was handed over is tried again.
func TestHold(t *testing.T) {
	for _, hold := range []int{0, 1 << 20} {
		r := start(t, script(step{Break: fakeprovider.BreakStream}, step{}), func(o *retryhttp.Options) { o.Hold = hold })
		_, _, err := r.post(keyed(), chat, whole)
		if hold == 0 {
			if err == nil {
				t.Error("no error")
			}
			r.want(line{0, first, failed, "transport_unknown", 200, 1, none, "partial_stream", -1, -1, "unknown"})
			continue
		}
		if err != nil {
			t.Error(err)
		}
		r.want(failure(0, first, "transport_unknown", 200), delivered(1, policy))
		r.wire()
	}
}

// TestPersist: the key is kept before the first byte is sent, or nothing is sent.
func TestPersist(t *testing.T) {
	r := start(t, script(step{Status: 503}, step{}), nil)
	calls := 0
	o := op.Operation{ID: "op", Key: "key", Persist: func(context.Context, string) error {
		calls++
		if n := len(r.srv.Served()); n != 0 {
			t.Errorf("persisted after %d requests", n)
		}
		return nil
	}}
	if code, _, err := r.post(op.With(context.Background(), o), chat, whole); code != 200 || err != nil || calls != 1 {
		t.Errorf("%d %v, persisted %d times", code, err, calls)
	}
	o.Persist = func(context.Context, string) error { return errors.New("disk full") }
	sent := len(r.srv.Served())
	if _, _, err := r.post(op.With(context.Background(), o), chat, whole); err == nil || len(r.srv.Served()) != sent {
		t.Errorf("%v: sent without a kept key", err)
	}
}

func TestRefresh(t *testing.T) {
	r := start(t, func(_ int, v *fakeprovider.Served) step {
		if v.Header.Get("Authorization") != "Bearer new" {
			return step{Status: 401}
		}
		return step{}
	}, func(o *retryhttp.Options) {
		o.Refresh = func(_ context.Context, _ string, h http.Header) error {
			h.Set("Authorization", "Bearer new")
			return nil
		}
	})
	if code, _, err := r.post(keyed(), chat, whole, "Authorization", "Bearer old"); code != 200 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	r.want(failure(0, first, "auth", 401), delivered(1, policy))
}

// TestLargeBody: a body beyond MaxBody is sent as it comes, again only by GetBody.
func TestLargeBody(t *testing.T) {
	big := `{"model":"m","x":"` + strings.Repeat("x", 5000) + `"}`
	for _, replayable := range []bool{true, false} {
		r := start(t, script(step{Status: 503}, step{}), func(o *retryhttp.Options) { o.MaxBody = 1000 })
		var body io.Reader = strings.NewReader(big)
		if !replayable {
			body = io.MultiReader(body)
		}
		req, _ := http.NewRequestWithContext(keyed(), http.MethodPost, r.srv.URL+chat, body)
		resp, err := r.tr.RoundTrip(req)
		if err != nil || (resp.StatusCode == http.StatusOK) != replayable {
			t.Fatalf("%v %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		for _, v := range r.srv.Served() {
			if string(v.Body) != big {
				t.Errorf("replayable %t: the body was changed", replayable)
			}
		}
		if a := r.m.all(t); (len(a) == 2) != replayable || a[0].Fingerprint != "" {
			t.Errorf("replayable %t: %+v", replayable, lines(a))
		}
		r.wire()
	}
}

func TestBodyOfWrongLength(t *testing.T) {
	r := start(t, nil, nil)
	for body, n := range map[string]int64{"abc": 5, "abcdef": 5} {
		req, _ := http.NewRequest(http.MethodPost, r.srv.URL+chat, io.MultiReader(strings.NewReader(body)))
		req.ContentLength = n
		if _, err := r.tr.RoundTrip(req); err == nil {
			t.Errorf("a body of %d bytes with ContentLength %d was sent", len(body), n)
		}
	}
	if n := len(r.srv.Served()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
