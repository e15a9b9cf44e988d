package retryhttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// memory keeps the newest revision of each record.
type memory struct {
	mu      sync.Mutex
	records []retrylens.Attempt
	seq     int64
}

func (m *memory) Emit(a *retrylens.Attempt, late emit.Late) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !a.Seq.Set {
		a.Seq = retrylens.Some(m.seq)
		m.seq++
	}
	c := *a
	if late != nil {
		late.Complete(&c)
	}
	emit.Fit(&c)
	for i := range m.records {
		if m.records[i].Seq == c.Seq {
			m.records[i] = c
			return
		}
	}
	m.records = append(m.records, c)
}

func (m *memory) all(t *testing.T) []retrylens.Attempt {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.records {
		if err := emit.Check(&m.records[i]); err != nil {
			t.Errorf("record %d breaks a rule: %v\n%s", i, err, m.records[i].AppendJSON(nil))
		}
	}
	return append([]retrylens.Attempt(nil), m.records...)
}

// fast is a policy whose waits a test can afford.
func fast() *retry.Policy {
	p := retry.Interactive()
	p.Base, p.Cap, p.OverloadedBase = time.Millisecond, 50*time.Millisecond, 2*time.Millisecond
	p.AttemptTimeout, p.GapTimeout = 20*time.Second, 20*time.Second
	return &p
}

type rig struct {
	t   *testing.T
	srv *fakeprovider.Server
	m   *memory
	tr  *retryhttp.Transport
}

// start makes a server, a transport over a real http.Transport and a client for a provider that takes keys.
func start(t *testing.T, script func(int, *fakeprovider.Served) fakeprovider.Step, change func(*retryhttp.Options)) *rig {
	t.Helper()
	r := &rig{t: t, srv: fakeprovider.Start(script), m: &memory{}}
	t.Cleanup(r.srv.Close)
	o := retryhttp.Options{
		Base:       &http.Transport{},
		Retry:      retry.Options{Policy: fast()},
		Records:    r.m,
		Provider:   func(*http.Request) string { return "openai" },
		KeyHeaders: map[string]string{"openai": "Idempotency-Key", "anthropic": "Idempotency-Key", "gemini": "Idempotency-Key", "bedrock": "Idempotency-Key"},
	}
	if change != nil {
		change(&o)
	}
	var err error
	if r.tr, err = retryhttp.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.tr.CloseIdleConnections)
	return r
}

func keyed() context.Context {
	return op.With(context.Background(), op.Operation{ID: "op", Key: "key"})
}

const chat = "/v1/chat/completions"

// post sends a chat request and reads the answer to its end.
func (r *rig) post(ctx context.Context, path, body string, header ...string) (int, string, error) {
	r.t.Helper()
	resp, err := r.do(ctx, path, body, header...)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func (r *rig) do(ctx context.Context, path, body string, header ...string) (*http.Response, error) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.srv.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header[header[i]] = []string{header[i+1]}
	}
	return r.tr.Client().Do(req)
}

const (
	whole  = `{"model":"gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	stream = `{"model":"gpt-5-mini","stream":true,"stream_options":{"include_usage":true},"messages":[]}`
)

// line is what a test compares of a record.
type line struct {
	Attempt    int32
	Cause      retrylens.Cause
	Outcome    retrylens.Outcome
	Class      retrylens.ErrorClass
	Status     int
	Calls      uint16
	Delivery   retrylens.Delivery
	Stop       retrylens.StopReason
	Prompt     int64
	Completion int64
	Source     retrylens.UsageSource
}

func lines(records []retrylens.Attempt) (out []line) {
	for _, a := range records {
		out = append(out, line{a.Attempt, a.Cause, a.Outcome, a.ErrorClass, int(a.Status.Or(999)), a.UpstreamCalls.Or(999), a.Delivery, a.StopReason,
			a.PromptTokens.Or(-1), a.CompletionTokens.Or(-1), a.UsageSource})
	}
	return out
}

func (r *rig) want(want ...line) []retrylens.Attempt {
	r.t.Helper()
	records := r.m.all(r.t)
	got := lines(records)
	if len(got) != len(want) {
		r.t.Fatalf("%d records, want %d:\n%+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			r.t.Errorf("record %d (%s)\n got %+v\nwant %+v", i, records[i].Reason, got[i], want[i])
		}
	}
	return records
}

// wire checks that the records count what the server counted.
func (r *rig) wire() {
	r.t.Helper()
	sum := 0
	for _, a := range r.m.all(r.t) {
		sum += int(a.UpstreamCalls.Value)
	}
	if n := len(r.srv.Served()); n != sum {
		r.t.Errorf("the server counted %d requests, the records %d", n, sum)
	}
}

func limits() *retry.Limits {
	l := retry.DefaultLimits()
	return &l
}
