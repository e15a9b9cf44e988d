package retryhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// apis that the property draws from.
var apis = []struct{ provider, path, body string }{
	{"openai", chat, whole}, {"openai", chat, stream}, {"openai", "/v1/responses", stream},
	{"anthropic", "/v1/messages", whole}, {"anthropic", "/v1/messages", stream},
	{"gemini", "/v1beta/models/g:generateContent", whole}, {"gemini", "/v1beta/models/g:streamGenerateContent", whole},
	{"bedrock", "/model/c/converse", whole}, {"bedrock", "/model/c/converse-stream", whole}, {"bedrock", "/model/c/invoke-with-response-stream", whole},
}

// randomStep is well in half of the cases.
func randomStep(r *rand.Rand) step {
	s := step{Prompt: 1 + r.Int64N(5000), Completion: 20 + r.Int64N(2000), Cached: 0, Reasoning: r.Int64N(10), Chunks: 1 + r.IntN(6), Tool: r.IntN(4) == 0}
	s.Cached = r.Int64N(s.Prompt)
	s.AfterChunk = r.IntN(s.Chunks)
	switch r.IntN(14) {
	case 0:
		s.Status, s.Body = 429, `{"error":{"code":"rate_limit_exceeded"}}`
	case 1:
		s.Status, s.Body = 529, `{"error":{"type":"overloaded_error"}}`
	case 2:
		s.Status, s.Body = 500, `{"error":{"message":"boom"}}`
	case 3:
		s.Break = fakeprovider.BreakRequest
	case 4:
		s.Break = fakeprovider.BreakStream
	case 5:
		s.Break = fakeprovider.BreakClean
	case 6:
		s.Status, s.Body = 400, `{"error":{"message":"bad"}}`
	case 7:
		s.NoUsage = true
	}
	return s
}

// ingest is an ingest service that fails now and then, and answers late.
type ingest struct {
	t    *testing.T
	mu   sync.Mutex
	rnd  *rand.Rand
	last map[string]retrylens.Attempt // by identity, the newest revision
}

func (g *ingest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rnd.IntN(3) == 0 {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	in, err := zstd.NewReader(r.Body)
	if err != nil {
		g.t.Error(err)
		return
	}
	text, err := io.ReadAll(in)
	if err != nil {
		g.t.Error(err)
		return
	}
	var d wire.Decoder
	n := 0
	for l := range strings.Lines(string(text)) {
		var a retrylens.Attempt
		if err := d.Decode([]byte(strings.TrimSuffix(l, "\n")), &a); err != nil {
			g.t.Errorf("%v: %s", err, l)
			continue
		}
		if err := emit.Check(&a); err != nil {
			g.t.Errorf("%v: %s", err, l)
		}
		id := fmt.Sprint(a.LogicalID, "/", a.Attempt)
		if old, ok := g.last[id]; !ok || a.Revision > old.Revision {
			g.last[id] = a
		} else if old.Seq != a.Seq {
			g.t.Errorf("two records of %s", id)
		}
		n++
	}
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]any{"accepted": n, "rejected": []int{}})
	if g.rnd.IntN(4) == 0 { // the answer is lost: the batch comes again
		panic(http.ErrAbortHandler)
	}
}

// TestRecordsAreTheWire: over random faults of providers, callers that leave and an
// ingest service that fails, the records that have arrived once everything is closed are
// what the servers served: as many calls, the same tokens, no gap in their numbers.
func TestRecordsAreTheWire(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 7))
	var mu sync.Mutex
	srv := fakeprovider.Start(func(int, *fakeprovider.Served) step {
		mu.Lock()
		defer mu.Unlock()
		return randomStep(rnd)
	})
	defer srv.Close()
	g := &ingest{t: t, rnd: rand.New(rand.NewPCG(seed, 8)), last: map[string]retrylens.Attempt{}}
	in := httptest.NewServer(g)
	defer in.Close()
	sink, err := emit.HTTP(emit.HTTPOptions{URL: in.URL})
	if err != nil {
		t.Fatal(err)
	}
	records, err := emit.New(emit.Options{Sink: sink, Tenant: "t", BatchSize: 50, FlushEvery: 10 * time.Millisecond, Backoff: func(int) time.Duration { return time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, func(o *retryhttp.Options) {
		o.Records = records
		l := limits()
		l.Breaker.MinSamples, l.RetryBudget.Tokens = 1<<30, 1e6
		o.Retry.Limits = l
		o.Provider = func(r *http.Request) string { return r.Header.Get("X-Provider") }
	})
	r.srv = srv
	const operations, workers = 400, 8
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			mine := rand.New(rand.NewPCG(seed, uint64(w)+100))
			for i := range operations / workers {
				r.operation(mine, fmt.Sprintf("op-%d-%d", w, i))
			}
		})
	}
	wg.Wait()
	if err := r.tr.Close(context.Background()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := records.Close(ctx); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	g.compare(seed, srv.Served())
}

// operation makes one call and reads some or all of its answer.
func (r *rig) operation(rnd *rand.Rand, id string) {
	api := apis[rnd.IntN(len(apis))]
	ctx, cancel := context.WithCancel(op.With(context.Background(), op.Operation{ID: id, Key: id}))
	defer cancel()
	resp, err := r.do(ctx, api.path, api.body, "X-Provider", api.provider)
	if err != nil {
		return
	}
	if rnd.IntN(8) == 0 { // the caller leaves
		_, _ = io.ReadFull(resp.Body, make([]byte, 1+rnd.IntN(400)))
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	resp.Body.Close()
}

// compare by operation, the calls in their order.
func (g *ingest) compare(seed uint64, served []fakeprovider.Served) {
	g.t.Helper()
	byKey := map[string][]fakeprovider.Served{}
	for _, v := range served {
		k := v.Header.Get("Idempotency-Key")
		byKey[k] = append(byKey[k], v)
	}
	seqs, calls := map[int64]bool{}, 0
	for id, a := range g.last {
		if seqs[a.Seq.Value] {
			g.t.Errorf("seed %d: seq %d twice", seed, a.Seq.Value)
		}
		seqs[a.Seq.Value] = true
		calls += int(a.UpstreamCalls.Value)
		own := byKey[a.LogicalID]
		if a.UpstreamCalls.Value != 1 || int(a.Attempt) >= len(own) {
			g.t.Errorf("seed %d: %s: %d calls, the server knows %d", seed, id, a.UpstreamCalls.Value, len(own))
			continue
		}
		if err := sameTokens(a, own[a.Attempt]); err != nil {
			g.t.Errorf("seed %d: %s (%s): %v\n%s", seed, id, own[a.Attempt].Path, err, a.AppendJSON(nil))
		}
	}
	if calls != len(served) || len(seqs) != len(g.last) || !seqs[0] || !seqs[int64(len(seqs)-1)] {
		g.t.Errorf("seed %d: the servers served %d requests, the records count %d; %d numbers for %d records", seed, len(served), calls, len(seqs), len(g.last))
	}
}

// sameTokens compares a record with what went onto the wire. A caller that leaves may
// not have seen all of it.
func sameTokens(a retrylens.Attempt, v fakeprovider.Served) error {
	if a.Outcome == retrylens.OutcomeAbandoned {
		return nil
	}
	if a.Outcome == retrylens.OutcomeSuccess && a.UsageSource == retrylens.UsageEstimated && v.Prompt >= 0 && a.Provider == "bedrock" {
		return nil // Bedrock tells its tokens behind the end of the message, where some callers have left
	}
	prompt, completion := a.PromptTokens.Or(-1), a.CompletionTokens.Or(-1)
	if a.UsageSource == retrylens.UsageEstimated {
		completion = -1
	}
	if prompt != v.Prompt || completion != v.Completion {
		return fmt.Errorf("the server told %d+%d, the record says %d+%d", v.Prompt, v.Completion, prompt, completion)
	}
	if v.Prompt >= 0 && (a.CachedPromptTokens.Value != v.Step.Cached) {
		return errors.New("cached tokens differ")
	}
	return nil
}
