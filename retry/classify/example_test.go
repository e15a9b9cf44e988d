package classify_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
)

func Example() {
	c := classify.New()
	v := c.Classify(&classify.Failure{
		Provider: "openai",
		Status:   http.StatusTooManyRequests,
		Body:     []byte(`{"error":{"message":"Rate limit reached. Please try again in 1m30s.","code":"rate_limit_exceeded"}}`),
	})
	fmt.Println(v.Class, v.Retryable, v.NeedsKey, v.RetryAfter.Value)
	// Output: rate_limited true false 1m30s
}

// A new provider is a table.
func ExampleNew() {
	c := classify.New(classify.Provider{
		Name:  "acme",
		Codes: map[string]classify.Rule{"e42": {Class: retrylens.ClassQuotaExhausted, Strength: classify.Exact}},
	})
	v := c.Classify(&classify.Failure{Provider: "acme", Status: 400, Body: []byte(`{"code":"E-42"}`)})
	fmt.Println(v.Class, v.ProviderErrorType)
	// Output: quota_exhausted E-42
}

func ExampleRunCases() {
	in := strings.NewReader(`{"id":"a","provider":"anthropic","status":529,"headers":{},"body":""}`)
	if err := classify.RunCases(os.Stdout, in); err != nil {
		fmt.Println(err)
	}
	// Output: {"id":"a","class":"overloaded","retryable":true,"pre_send":false,"needs_key":false,"retry_after_ms":null}
}
