package retryhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/keys"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// printed writes the records as they come.
type printed struct{}

func (printed) Emit(a *retrylens.Attempt, late emit.Late) {
	late.Complete(a)
	emit.Fit(a)
	fmt.Println(a.Attempt, a.Cause, a.Outcome, a.ErrorClass, a.Status.Value, a.PromptTokens.Value, a.CompletionTokens.Value)
}

// A call that is limited once and then answered.
func Example() {
	provider := fakeprovider.Start(fakeprovider.Script(fakeprovider.Step{Status: 429}, fakeprovider.Step{}))
	defer provider.Close()

	policy := retry.Interactive()
	policy.Base = time.Millisecond
	transport, err := retryhttp.New(retryhttp.Options{
		Records:    printed{},
		Retry:      retry.Options{Policy: &policy},
		Provider:   func(*http.Request) string { return "openai" },
		KeyHeaders: map[string]string{"openai": "Idempotency-Key"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer transport.CloseIdleConnections()
	ctx := op.With(context.Background(), op.Operation{Name: "summarise", Key: keys.Derive("summary", "document 7")})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, provider.URL+"/v1/chat/completions", strings.NewReader(`{"model":"gpt-5-mini"}`))
	resp, err := transport.Client().Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	// Output:
	// 0 first error rate_limited 429 0 0
	// 1 policy success  200 100 20
}

// To watch without changing anything: one attempt, the SDK above goes on retrying.
func ExampleNew() {
	watch := retry.Interactive()
	watch.Attempts = 1
	transport, err := retryhttp.New(retryhttp.Options{Retry: retry.Options{Policy: &watch}})
	fmt.Println(transport != nil, err)
	// Output: true <nil>
}

func ExampleProviderOf() {
	req, _ := http.NewRequest(http.MethodPost, "https://bedrock-runtime.eu-central-1.amazonaws.com/model/claude/converse", nil)
	fmt.Println(retryhttp.ProviderOf(req))
	// Output: bedrock
}
