package golden

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// From the client's transport through its emitter, the ingest service and its spool into
// the engine and out of a report: what the provider counted is what is told.
func TestWhatTheProviderServedIsWhatIsReported(t *testing.T) {
	const operations, callers = 120, 6
	steps := []fakeprovider.Step{
		{}, {Status: http.StatusTooManyRequests}, {Prompt: 300, Completion: 70, Cached: 100}, {Status: http.StatusServiceUnavailable}, {Tool: true}, {Status: 529}, {}, {},
	}
	provider := fakeprovider.Start(func(n int, _ *fakeprovider.Served) fakeprovider.Step { return steps[n%len(steps)] })
	defer provider.Close()
	e := enginetest.Start(t)
	store := migrated(t, clickhouse.Config{URL: address(t, e, "retrylens_client"), Dial: e.DialTCP})
	started := time.Now()
	s := serve(t, store, started.Add(5*time.Minute))

	sink, err := emit.HTTP(emit.HTTPOptions{URL: s.server.URL, Token: "any"})
	if err != nil {
		t.Fatal(err)
	}
	records, err := emit.New(emit.Options{Sink: sink, Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	policy := retry.Interactive()
	policy.Attempts, policy.Base, policy.OverloadedBase = 6, time.Millisecond, time.Millisecond
	transport, err := retryhttp.New(retryhttp.Options{
		Records: records, Service: "test", Retry: retry.Options{Policy: &policy},
		Provider: func(*http.Request) string { return "openai" }, KeyHeaders: map[string]string{"openai": "Idempotency-Key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range operations / callers {
				ask(t, transport.Client(), provider.URL, fmt.Sprint(c, "-", i), i%3 == 0)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := records.Close(ctx); err != nil {
		t.Fatal(err)
	}
	s.drain(t)

	report, err := store.Report(t.Context(), metrics.Query{From: started.Add(-time.Minute), To: started.Add(5 * time.Minute), AsOf: started.Add(10 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	got := &report.Rows[0]
	served := uint64(len(provider.Served()))
	if got.Operations != operations || got.UpstreamCalls != served || got.Attempts != served || served <= operations {
		t.Errorf("%d operations, %d upstream calls, %d attempts; the provider served %d requests of %d operations", got.Operations, got.UpstreamCalls, got.Attempts, served, operations)
	}
	if prompt, completion := provider.Tokens(); got.BilledTokens != uint64(prompt+completion) {
		t.Errorf("%d billed tokens, the provider told of %d + %d", got.BilledTokens, prompt, completion)
	}
	if missing := report.Completeness.RecordsMissing; !missing.Set || missing.Value != 0 {
		t.Errorf("%+v records are missing", missing)
	}
}

// ask is one operation; who fails for good fails the test only in its record.
func ask(t *testing.T, client *http.Client, url, id string, stream bool) {
	ctx := op.With(t.Context(), op.Operation{ID: id, Key: "key-" + id, Name: "ask"})
	body := `{"model":"gpt-5-mini","messages":[]}`
	if stream {
		body = `{"model":"gpt-5-mini","messages":[],"stream":true,"stream_options":{"include_usage":true}}`
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return // the records say why
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}
