package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// scenario is one cell of the matrix for every SDK.
type scenario struct {
	name       string
	steps      func(s sdk) []fakeprovider.Step
	stream     bool
	attempts   int  // of our policy
	retries    int  // of the SDK
	anonymous  bool // the context names no operation
	fails      bool // the SDK reports an error
	want       []want
	onlyIfTold bool // only for SDKs that tell their retries in headers
}

// want is what a record must say.
type want struct {
	cause   retrylens.Cause
	outcome retrylens.Outcome
	classes []retrylens.ErrorClass // one of them; none for a success
}

func always(steps ...fakeprovider.Step) func(sdk) []fakeprovider.Step {
	return func(sdk) []fakeprovider.Step { return steps }
}

func failing(s fault) fakeprovider.Step {
	return fakeprovider.Step{Status: s.status, Body: s.body, Header: s.header}
}

var (
	ok          = want{retrylens.CauseFirst, retrylens.OutcomeSuccess, nil}
	retried     = want{retrylens.CausePolicy, retrylens.OutcomeSuccess, nil}
	busy        = []retrylens.ErrorClass{retrylens.ClassOverloaded, retrylens.ClassUnavailable}
	unavailable = fakeprovider.Step{Status: 503, Body: `{"message":"try later"}`, Header: http.Header{"Retry-After-Ms": {"1"}}}
	answer      = fakeprovider.Step{Cached: 40, Reasoning: 6}
)

func failed(cause retrylens.Cause, classes ...retrylens.ErrorClass) want {
	return want{cause, retrylens.OutcomeError, classes}
}

var scenarios = []scenario{
	{name: "success", steps: always(answer), attempts: 3, want: []want{ok}},
	{name: "stream", steps: always(answer), stream: true, attempts: 3, want: []want{ok}},
	{name: "rate_limited", steps: always(fakeprovider.Step{Status: 429, Body: `{"error":{"message":"slow down","code":429,"status":"RESOURCE_EXHAUSTED"}}`, Header: http.Header{"Retry-After": {"1"}}}, answer), attempts: 3,
		want: []want{failed(retrylens.CauseFirst, retrylens.ClassRateLimited), retried}},
	{name: "overload", steps: func(s sdk) []fakeprovider.Step { return []fakeprovider.Step{failing(s.overload), answer} }, attempts: 3,
		want: []want{failed(retrylens.CauseFirst, busy...), retried}},
	{name: "quota", steps: func(s sdk) []fakeprovider.Step { return []fakeprovider.Step{failing(s.quota)} }, attempts: 3, fails: true,
		want: []want{failed(retrylens.CauseFirst, retrylens.ClassQuotaExhausted)}},
	{name: "reset_before_headers", steps: always(fakeprovider.Step{Break: fakeprovider.BreakRequest}, answer), attempts: 3,
		want: []want{failed(retrylens.CauseFirst, retrylens.ClassTransportUnknown), retried}},
	{name: "reset_mid_stream", steps: always(fakeprovider.Step{Break: fakeprovider.BreakStream, AfterChunk: 2}), stream: true, attempts: 3, fails: true,
		want: []want{{retrylens.CauseFirst, retrylens.OutcomeInterrupted, []retrylens.ErrorClass{retrylens.ClassStreamInterrupted}}}},
	{name: "timeout", steps: always(fakeprovider.Step{Break: fakeprovider.Hang}, answer), attempts: 3,
		want: []want{failed(retrylens.CauseFirst, retrylens.ClassTimeout), retried}},
	{name: "tool_call", steps: always(fakeprovider.Step{Tool: true}), attempts: 3, want: []want{ok}},
	{name: "tool_call_stream", steps: always(fakeprovider.Step{Tool: true}), stream: true, attempts: 3, want: []want{ok}},
	{name: "sdk_retries_on", steps: always(unavailable, unavailable, answer), attempts: 1, retries: 2,
		want: []want{failed(retrylens.CauseFirst, busy...), failed(retrylens.CauseSDK, busy...), {retrylens.CauseSDK, retrylens.OutcomeSuccess, nil}}},
	{name: "sdk_retries_on_no_operation", steps: always(unavailable, unavailable, answer), attempts: 1, retries: 2, anonymous: true, onlyIfTold: true,
		want: []want{failed(retrylens.CauseFirst, busy...), failed(retrylens.CauseSDK, busy...), {retrylens.CauseSDK, retrylens.OutcomeSuccess, nil}}},
	{name: "sdk_retries_off", steps: always(unavailable, answer), attempts: 1, fails: true, want: []want{failed(retrylens.CauseFirst, busy...)}},
	{name: "both_layers", steps: always(unavailable, unavailable, unavailable, answer), attempts: 2, retries: 1,
		want: []want{failed(retrylens.CauseFirst, busy...), failed(retrylens.CausePolicy, busy...), failed(retrylens.CauseSDK, busy...), retried}},
}

// cell is the result of one scenario with one SDK.
type cell struct {
	SDK      string   `json:"sdk"`
	Scenario string   `json:"scenario"`
	Requests int      `json:"requests"` // that the server counted
	Calls    int      `json:"calls"`    // that the records count
	Tokens   [2]int64 `json:"tokens"`   // that the server reported: prompt, completion
	Recorded [2]int64 `json:"recorded"` // of the records
	Problems []string `json:"problems,omitempty"`
}

func (c *cell) problem(format string, args ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, args...))
}

// memory keeps records.
type memory struct {
	mu      sync.Mutex
	records []retrylens.Attempt
}

func (m *memory) Emit(a *retrylens.Attempt, late emit.Late) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.Seq = retrylens.Some(int64(len(m.records)))
	c := *a
	late.Complete(&c)
	emit.Fit(&c)
	m.records = append(m.records, c)
}

// run plays one scenario with one SDK.
func run(ctx context.Context, s sdk, sc scenario) cell {
	c := cell{SDK: s.name, Scenario: sc.name}
	srv := fakeprovider.Start(fakeprovider.Script(sc.steps(s)...))
	defer srv.Close()
	m := &memory{}
	p := retry.Interactive()
	p.Attempts, p.Base, p.OverloadedBase = sc.attempts, 5*time.Millisecond, 10*time.Millisecond
	if sc.name == "timeout" {
		p.AttemptTimeout = 300 * time.Millisecond
	}
	tr, err := retryhttp.New(retryhttp.Options{Records: m, Retry: retry.Options{Policy: &p},
		Provider: func(*http.Request) string { return s.provider }, KeyHeaders: map[string]string{s.provider: "Idempotency-Key"}})
	if err != nil {
		c.problem("%v", err)
		return c
	}
	if !sc.anonymous {
		ctx = op.With(ctx, op.Operation{ID: "operation", Key: "key"})
	}
	if err := s.call(ctx, tr.Client(), srv.URL, sc.stream, sc.retries); (err != nil) != sc.fails {
		c.problem("the SDK says: %v", err)
	}
	if err := tr.Close(ctx); err != nil {
		c.problem("%v", err)
	}
	c.compare(sc, srv.Served(), m.records)
	return c
}

// compare what was recorded with what the server counted.
func (c *cell) compare(sc scenario, served []fakeprovider.Served, records []retrylens.Attempt) {
	c.Requests = len(served)
	for i, a := range records {
		c.Calls += int(a.UpstreamCalls.Value)
		if err := emit.Check(&a); err != nil {
			c.problem("record %d: %v", i, err)
		}
		if a.LogicalID != records[0].LogicalID || a.Attempt != int32(i) {
			c.problem("record %d is attempt %d of %s", i, a.Attempt, a.LogicalID)
		}
		if a.Model == "" || a.Fingerprint == "" || a.Endpoint == "" || a.Stream != sc.stream {
			c.problem("record %d lacks a field: %s", i, a.AppendJSON(nil))
		}
		if i < len(served) {
			c.tokens(i, a, served[i])
		}
		if i < len(sc.want) {
			c.like(i, a, sc.want[i])
		}
	}
	if len(records) != len(sc.want) {
		c.problem("%d records, want %d", len(records), len(sc.want))
	}
	if c.Calls != c.Requests {
		c.problem("the server counted %d requests, the records %d", c.Requests, c.Calls)
	}
	if c.Tokens != c.Recorded {
		c.problem("the server reported %v tokens, the records %v", c.Tokens, c.Recorded)
	}
}

// tokens of one attempt; an estimate is no report.
func (c *cell) tokens(i int, a retrylens.Attempt, v fakeprovider.Served) {
	prompt, completion := a.PromptTokens.Or(-1), a.CompletionTokens.Or(-1)
	if a.UsageSource == retrylens.UsageEstimated {
		completion = -1
	}
	if prompt != v.Prompt || completion != v.Completion {
		c.problem("record %d: the server reported %d+%d tokens, the record says %d+%d", i, v.Prompt, v.Completion, prompt, completion)
	}
	if v.Prompt >= 0 && a.CachedPromptTokens.Value != v.Step.Cached {
		c.problem("record %d: %d cached tokens, want %d", i, a.CachedPromptTokens.Value, v.Step.Cached)
	}
	c.Tokens[0] += max(0, v.Prompt)
	c.Tokens[1] += max(0, v.Completion)
	c.Recorded[0] += max(0, prompt)
	c.Recorded[1] += max(0, completion)
}

func (c *cell) like(i int, a retrylens.Attempt, w want) {
	class := len(w.classes) == 0 && a.ErrorClass == ""
	for _, k := range w.classes {
		class = class || a.ErrorClass == k
	}
	if a.Cause != w.cause || a.Outcome != w.outcome || !class {
		c.problem("record %d: %s %s %s (%s), want %v", i, a.Cause, a.Outcome, a.ErrorClass, a.Reason, w)
	}
}
