package retry_test

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrylens/retrylens/retry"
)

// wide never refuses, so that every iteration takes the whole way.
func wide() *retry.Limits {
	return limits(func(l *retry.Limits) {
		l.RetryBudget.Tokens, l.RetryBudget.PerSuccess = 1e6, 1
		l.Breaker.MinSamples = 1 << 30
		l.Bulkhead.Limit = 1e6
	})
}

// BenchmarkDecision is Next: one decision on one result, all parts asked, and what
// puts the run back (rearm tells what that costs). The clock stands still, with a
// monotonic reading as real times have; reading the real one costs what time.Now costs. Target: 300 ns.
func BenchmarkDecision(b *testing.B) {
	limited := asking(2 * time.Second)
	for _, c := range []struct {
		name string
		res  retry.Result
	}{
		{"delivered", ok}, {"backoff", class("unavailable")}, {"retry_after", limited},
		{"same_500", boom}, {"not_retryable", class("invalid_request")}, {"first_502", class("bad_gateway")},
	} {
		b.Run(c.name, func(b *testing.B) { benchDecision(b, c.res) })
	}
	b.Run("rearm", func(b *testing.B) {
		e := engine(b, retry.Options{Limits: wide(), Clock: &manual{time.Now()}})
		r := e.Begin(keyed())
		r.Start(nil)
		for b.Loop() {
			r.Rearm()
		}
	})
}

func benchDecision(b *testing.B, res retry.Result) {
	p := retry.Batch()
	e := engine(b, retry.Options{Limits: wide(), Policy: &p, Clock: &manual{time.Now()}})
	r := e.Begin(keyed())
	r.Start(nil)
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		if r.Next(res).Outcome == "" {
			b.Fatal("no decision")
		}
		r.Rearm()
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

// cpu is the processor time of this process: on a busy machine, what wall time hides.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecisionParallel: one engine, all cores.
func BenchmarkDecisionParallel(b *testing.B) {
	e := engine(b, retry.Options{Limits: wide()})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := e.Begin(keyed())
			r.Start(nil)
			r.Next(ok)
		}
	})
}

var errUnavailable = errors.New("unavailable")

// BenchmarkOperation is a whole operation that fails once and then succeeds, without
// a sleep, beside the libraries as far as they do the same: retry, breaker and
// bulkhead (failsafe-go); retry alone, over HTTP without a network (go-retryablehttp).
func BenchmarkOperation(b *testing.B) {
	b.Run("retrylens", func(b *testing.B) {
		e := engine(b, retry.Options{Limits: wide()})
		first := class("bad_gateway") // retried at once
		b.ReportAllocs()
		for b.Loop() {
			_, _ = e.Do(context.Background(), keyed(), func(_ context.Context, at retry.Attempt) retry.Result {
				if at.Number == 0 {
					return first
				}
				return ok
			})
		}
	})
	b.Run("failsafe-go", func(b *testing.B) {
		x := failsafe.With(
			retrypolicy.NewBuilder[any]().WithMaxAttempts(3).Build(),
			failsafe.Policy[any](circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.9, 1<<20, time.Minute).Build()),
			bulkhead.NewBuilder[any](1e6).Build())
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			_, _ = x.Get(func() (any, error) {
				if n++; n == 1 {
					return nil, errUnavailable
				}
				return nil, nil
			})
		}
	})
	b.Run("go-retryablehttp", func(b *testing.B) {
		rt := &flaky{}
		c := retryablehttp.NewClient()
		c.Logger, c.HTTPClient = nil, &http.Client{Transport: rt}
		c.RetryWaitMin, c.RetryWaitMax = 0, 0
		b.ReportAllocs()
		for b.Loop() {
			req, _ := retryablehttp.NewRequest(http.MethodPost, "http://provider.invalid", nil)
			if res, err := c.Do(req); err != nil || res.StatusCode != http.StatusOK {
				b.Fatal(err)
			}
		}
	})
}

// flaky answers 503 and 200 in turn, without a network.
type flaky struct{ n int }

func (f *flaky) RoundTrip(req *http.Request) (*http.Response, error) {
	f.n++
	code := http.StatusServiceUnavailable
	if f.n%2 == 0 {
		code = http.StatusOK
	}
	return &http.Response{StatusCode: code, Body: http.NoBody, Request: req, Header: http.Header{}}, nil
}

// BenchmarkJudge is a single decision on a 429 with Retry-After: retry or not, and
// after how long. go-retryablehttp reads a header where ours was read by classify.
func BenchmarkJudge(b *testing.B) {
	b.Run("retrylens", func(b *testing.B) { benchDecision(b, asking(2*time.Second)) })
	b.Run("go-retryablehttp", func(b *testing.B) {
		res := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}}
		b.ReportAllocs()
		for b.Loop() {
			if again, _ := retryablehttp.DefaultRetryPolicy(context.Background(), res, nil); again {
				retryablehttp.DefaultBackoff(time.Second, 30*time.Second, 0, res)
			}
		}
	})
}
