package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
)

// A real caller: Do sleeps, waits for slots and hedges.
func ExampleEngine_Do() {
	e, err := retry.New(retry.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := classify.New()
	op := retry.Op{Provider: "openai", Keyed: true}
	res, err := e.Do(context.Background(), op, func(_ context.Context, at retry.Attempt) retry.Result {
		if at.Number == 0 { // the first try meets a 502, which is retried at once
			return retry.Result{Verdict: c.Classify(&classify.Failure{Provider: at.Provider, Status: 502})}
		}
		return retry.Result{Delivered: true, Value: "answer"}
	})
	fmt.Println(res.Value, err)

	_, err = e.Do(context.Background(), op, func(_ context.Context, at retry.Attempt) retry.Result {
		return retry.Result{Verdict: c.Classify(&classify.Failure{Provider: at.Provider, Status: 400})}
	})
	fmt.Println(errors.Is(err, retry.ErrPermanent), err)
	// Output:
	// answer <nil>
	// true retry: not_retryable after 1 attempt(s): HTTP status 400; not retryable
}

// A simulator: no goroutine, no sleep, repeatable.
func ExampleEngine_Begin() {
	now := clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	e, _ := retry.New(retry.Options{Clock: now, Rand: rand.NewPCG(1, 2)})
	run := e.Begin(retry.Op{Provider: "openai", Keyed: true})
	for {
		at, d := run.Start(nil)
		if d.Send {
			now.Advance(300 * time.Millisecond)
			d = run.Next(retry.Result{Verdict: classify.Verdict{Class: retrylens.ClassTimeout, Retryable: true, NeedsKey: true, Reason: "timed out"}})
		}
		fmt.Println(at.Number, at.Cause, d.Retry, d.StopReason, d.Reason)
		if !d.Retry {
			return
		}
		now.Advance(d.Delay)
	}
	// Output:
	// 0 first true  timed out; retry after backoff
	// 1 policy true  timed out; retry after backoff
	// 2 policy false max_attempts timed out; no attempt left
}

// A decision is ready to land in the attempt's record.
func ExampleDecision_Apply() {
	d := retry.Decision{Retry: true, Delay: 700 * time.Millisecond, Outcome: retrylens.OutcomeError,
		Class: retrylens.ClassRateLimited, RetryAfter: retrylens.Some(500 * time.Millisecond)}
	var a retrylens.Attempt
	d.Apply(&a)
	fmt.Println(a.Outcome, a.ErrorClass, a.RetryAfterMS.Value, a.DelayMS.Value, a.Final.Value)
	// Output: error rate_limited 500 700 false
}

// A configuration names what differs from a preset.
func ExamplePolicy() {
	p := retry.Interactive()
	err := json.Unmarshal([]byte(`{"attempts": 2, "cap": "5s", "retry_after": "obey"}`), &p)
	fmt.Println(err, p.Attempts, p.Base, p.Cap, p.RetryAfter)
	p.Attempts = 0
	fmt.Println(p.Validate())
	// Output:
	// <nil> 2 500ms 5s obey
	// retry: attempts must be in 1..99, got 0
}

func ExampleBackoff() {
	intn := rand.New(rand.NewPCG(1, 2)).Int64N
	b := retry.Backoff{Base: 500 * time.Millisecond, Cap: 20 * time.Second, Jitter: retry.JitterNone}
	fmt.Println(b.Delay(0, 0, intn), b.Delay(3, 0, intn), b.Delay(10, 0, intn))
	// Output: 500ms 4s 20s
}
