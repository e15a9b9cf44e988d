package retry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
)

// Every "no" of the order, each where those before it are "yes".
func TestStopReasons(t *testing.T) {
	partial := class(retrylens.ClassTimeout)
	partial.Partial = true
	gone := class(retrylens.ClassTimeout)
	gone.CallerGone = true
	same := status(500, `{"error":{"message":"boom","type":"server_error"}}`)
	for _, c := range []struct {
		name    string
		op      retry.Op
		results []retry.Result
		want    retrylens.StopReason
		outcome retrylens.Outcome
	}{
		{"delivered", keyed(), []retry.Result{ok}, retrylens.StopDelivered, retrylens.OutcomeSuccess},
		{"after a retry", keyed(), []retry.Result{class(retrylens.ClassUnavailable), ok}, retrylens.StopDelivered, retrylens.OutcomeSuccess},
		{"quota", keyed(), []retry.Result{status(429, `{"error":{"code":"insufficient_quota"}}`)}, retrylens.StopNotRetryable, retrylens.OutcomeError},
		{"nothing known", keyed(), []retry.Result{{}}, retrylens.StopNotRetryable, retrylens.OutcomeError},
		{"attempts", keyed(), []retry.Result{class("timeout"), class("unavailable"), class("timeout")}, retrylens.StopMaxAttempts, retrylens.OutcomeError},
		{"unkeyed timeout", unkeyed(), []retry.Result{class("timeout")}, retrylens.StopUnkeyed, retrylens.OutcomeError},
		{"unkeyed 429", unkeyed(), []retry.Result{class("rate_limited")}, retrylens.StopUnkeyed, retrylens.OutcomeError},
		{"unkeyed twice unsent", unkeyed(), []retry.Result{class("transport_presend"), class("transport_presend")}, retrylens.StopUnkeyed, retrylens.OutcomeError},
		{"unkeyed once unsent", unkeyed(), []retry.Result{class("transport_presend"), ok}, retrylens.StopDelivered, retrylens.OutcomeSuccess},
		{"the same 500", keyed(), []retry.Result{same, same}, retrylens.StopRepeatedIdentically, retrylens.OutcomeError},
		{"the same 503", keyed(), []retry.Result{status(503, "down"), status(503, "down"), ok}, retrylens.StopDelivered, retrylens.OutcomeSuccess},
		{"partial", keyed(), []retry.Result{partial}, retrylens.StopPartialStream, retrylens.OutcomeInterrupted},
		{"interrupted", keyed(), []retry.Result{class("stream_interrupted")}, retrylens.StopPartialStream, retrylens.OutcomeInterrupted},
		{"gone", keyed(), []retry.Result{gone}, retrylens.StopCallerGone, retrylens.OutcomeAbandoned},
		{"cancelled", keyed(), []retry.Result{class("cancelled")}, retrylens.StopCallerGone, retrylens.OutcomeAbandoned},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, n := newWorld(t, nil), 0
			d := w.drive(c.op, time.Millisecond, func(retry.Attempt) retry.Result { n++; return c.results[n-1] })
			if d.StopReason != c.want || d.Outcome != c.outcome || n != len(c.results) {
				t.Errorf("%s %s after %d tries (%s)", d.StopReason, d.Outcome, n, d.Reason)
			}
			checkRecords(t, w.events(), c.op)
		})
	}
}

// checkRecords writes each decision into a record and validates it.
func checkRecords(t *testing.T, all []seen, op retry.Op) {
	t.Helper()
	for i, s := range all {
		a := retrylens.Attempt{Tenant: "t", LogicalID: "l", Provider: s.at.Provider, Attempt: s.at.Number, Cause: s.at.Cause,
			OperationStartedAt: s.at.RunStartedAt, StartedAt: s.at.StartedAt}
		if op.Keyed {
			a.IdempotencyKey = "k"
		}
		s.d.Apply(&a)
		a.Normalize()
		if err := a.Validate(retrylens.Limits{Now: time.Now().AddDate(100, 0, 0)}); err != nil {
			t.Errorf("record %d: %v: %+v", i, err, s.d)
		}
		if a.Final.Value != (s.d.StopReason != "") || s.d.Retry != a.DelayMS.Set {
			t.Errorf("record %d: final %v, delay %v: %+v", i, a.Final, a.DelayMS, s.d)
		}
	}
}

func TestReasons(t *testing.T) {
	w := newWorld(t, nil)
	w.drive(keyed(), time.Millisecond, func(retry.Attempt) retry.Result { return status(503, "") })
	all := w.events()
	if len(all) != 3 || all[0].d.Reason != "HTTP status 503; retry after backoff" || all[2].d.Reason != "HTTP status 503; no attempt left" {
		t.Errorf("%q %q", all[0].d.Reason, all[len(all)-1].d.Reason)
	}
	long := class("timeout")
	long.Verdict.Reason = strings.Repeat("é", 200)
	d := w.send(t, w.e.Begin(keyed()), 0, long)
	if len(d.Reason) > 256 || !strings.HasSuffix(d.Reason, "é; retry after backoff") {
		t.Errorf("%d bytes: %q", len(d.Reason), d.Reason)
	}
}

func TestCausesAndOrdinals(t *testing.T) {
	w := newWorld(t, nil)
	op := keyed()
	op.FirstAttempt = 200
	var got []string
	w.drive(op, time.Millisecond, func(at retry.Attempt) retry.Result {
		got = append(got, fmt.Sprint(at.Number, at.Cause, at.Position()))
		return class("timeout")
	})
	if want := "[200redelivery0 201policy1 202policy2]"; strings.ReplaceAll(fmt.Sprint(got), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%v", got)
	}
	at, _ := w.e.Begin(keyed()).Start(nil)
	if at.Number != 0 || at.Cause != retrylens.CauseFirst || at.Timeout != time.Minute || at.GapTimeout != 30*time.Second {
		t.Errorf("%+v", at)
	}
	op.Cause = retrylens.CauseSDK
	if at, _ := w.e.Begin(op).Start(nil); at.Cause != retrylens.CauseSDK {
		t.Errorf("declared cause: %s", at.Cause)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name     string
		policy   *retry.Policy
		asked    time.Duration
		low, top time.Duration
		stop     retrylens.StopReason
	}{
		{"honoured, spread on top", policy(nil), 10 * time.Second, 10 * time.Second, 11 * time.Second, ""},
		{"short, backoff on top", policy(nil), 100 * time.Millisecond, 100 * time.Millisecond, 600 * time.Millisecond, ""},
		{"clamped", policy(nil), 90 * time.Second, 20 * time.Second, 22 * time.Second, ""},
		{"obeyed below the cap", policy(func(p *retry.Policy) { p.RetryAfter = retry.Obey }), 20 * time.Second, 20 * time.Second, 22 * time.Second, ""},
		{"obeyed above the cap", policy(func(p *retry.Policy) { p.RetryAfter = retry.Obey }), 21 * time.Second, 0, 0, retrylens.StopDeadline},
		{"does not fit", policy(func(p *retry.Policy) { p.WallClockBudget = 5 * time.Second }), 5 * time.Second, 0, 0, retrylens.StopDeadline},
		{"no jitter", policy(func(p *retry.Policy) { p.Jitter = retry.JitterNone }), 7 * time.Second, 7 * time.Second, 7 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *retry.Options) { o.Policy = c.policy })
			for range 50 {
				d := w.send(t, w.e.Begin(keyed()), time.Second, asking(c.asked))
				if d.StopReason != c.stop || d.Retry != (c.stop == "") || d.Delay < c.low || d.Delay > c.top {
					t.Fatalf("%+v", d)
				}
				if d.RetryAfter != retrylens.Some(c.asked) {
					t.Fatalf("the record keeps what was asked: %v", d.RetryAfter)
				}
			}
		})
	}
}

func TestDelaysByClass(t *testing.T) {
	w := newWorld(t, func(o *retry.Options) {
		p := retry.Batch()
		o.Policy, o.Limits = &p, limits(func(l *retry.Limits) { l.Breaker.MinSamples = 1000 })
	})
	r := w.e.Begin(keyed())
	if d := w.send(t, r, 0, class("bad_gateway")); !d.Retry || d.Delay != 0 {
		t.Errorf("first 502: %+v", d)
	}
	delays := map[time.Duration]bool{}
	for range 20 {
		r := w.e.Begin(keyed())
		w.send(t, r, 0, class("bad_gateway"))
		delays[w.send(t, r, 0, class("bad_gateway")).Delay] = true
	}
	if len(delays) < 2 {
		t.Error("a second 502 backs off")
	}
	for range 20 {
		if d := w.send(t, w.e.Begin(keyed()), 0, class("overloaded")); d.Delay < 30*time.Second || d.Delay > time.Minute {
			t.Errorf("overloaded: %v", d.Delay)
		}
	}
}

// An attempt may start just before the deadline, not at it.
func TestDeadline(t *testing.T) {
	p := policy(func(p *retry.Policy) { p.Jitter = retry.JitterNone })
	w := newWorld(t, func(o *retry.Options) { o.Policy = p })
	if d := w.send(t, w.e.Begin(keyed()), 24500*time.Millisecond-1, class("timeout")); !d.Retry {
		t.Errorf("a nanosecond is left: %+v", d)
	}
	if d := w.send(t, w.e.Begin(keyed()), 24500*time.Millisecond, class("timeout")); d.StopReason != retrylens.StopDeadline {
		t.Errorf("%+v", d)
	}
	op := keyed()
	op.Deadline = w.t.Add(time.Second)
	r := w.e.Begin(op)
	d := w.send(t, r, 400*time.Millisecond, class("timeout"))
	w.advance(d.Delay + 100*time.Millisecond) // whoever sleeps may oversleep
	at, d := r.Start(nil)
	if d.Send || d.StopReason != retrylens.StopDeadline || d.Outcome != retrylens.OutcomeShed || at.Number != 1 {
		t.Errorf("%+v", d)
	}
	if _, again := r.Start(nil); again.Send || again.StopReason != retrylens.StopDeadline {
		t.Errorf("an ended run starts again: %+v", again)
	}
	if s := w.e.State("openai"); s.RetryBudget != 99 {
		t.Errorf("%v tokens: the one of the attempt that never was must be back (the first world run spent one)", s.RetryBudget)
	}
}

// A wall costs no token; a retry costs one, a success brings a tenth.
func TestBudget(t *testing.T) {
	w := newWorld(t, func(o *retry.Options) {
		o.Limits = limits(func(l *retry.Limits) { l.RetryBudget.Tokens, l.Breaker.MinSamples = 2, 1000 })
	})
	wall := status(429, `{"error":{"code":"insufficient_quota"}}`)
	for range 10 {
		w.send(t, w.e.Begin(keyed()), 0, wall)
	}
	if s := w.e.State("openai"); s.RetryBudget != 2 {
		t.Errorf("quota walls cost tokens: %v left", s.RetryBudget)
	}
	d := w.drive(keyed(), 0, func(retry.Attempt) retry.Result { return class("timeout") })
	if d.StopReason != retrylens.StopMaxAttempts {
		t.Errorf("%+v", d)
	}
	d = w.drive(keyed(), 0, func(retry.Attempt) retry.Result { return class("timeout") })
	if d.StopReason != retrylens.StopBudgetExhausted || !strings.Contains(d.Reason, "budget") {
		t.Errorf("%+v", d)
	}
	for range 10 {
		w.drive(keyed(), 0, func(retry.Attempt) retry.Result { return ok })
	}
	if s := w.e.State("openai"); s.RetryBudget != 1 {
		t.Errorf("%v tokens after ten successes", s.RetryBudget)
	}
}

func TestBreakerOpens(t *testing.T) {
	w := newWorld(t, nil)
	for range 20 {
		w.send(t, w.e.Begin(keyed()), 0, class("unavailable"))
	}
	before := len(w.events())
	at, d := w.e.Begin(keyed()).Start(nil)
	if d.StopReason != retrylens.StopBreakerOpen || d.Outcome != retrylens.OutcomeShed || d.Class != retrylens.ClassUnavailable || at.Number != 0 {
		t.Errorf("%+v", d)
	}
	if got := w.events(); len(got) != before+1 {
		t.Errorf("%d observed", len(got)-before)
	}
	checkRecords(t, w.events(), keyed())
	w.advance(30 * time.Second)
	r := w.e.Begin(keyed())
	at, d = r.Start(nil)
	if !d.Send || !at.Probe {
		t.Errorf("no probe: %+v", d)
	}
	if _, second := w.e.Begin(keyed()).Start(nil); second.StopReason != retrylens.StopBreakerOpen {
		t.Errorf("a second probe: %+v", second)
	}
	r.Next(ok)
	if _, d := w.e.Begin(keyed()).Start(nil); !d.Send {
		t.Errorf("closed again: %+v", d)
	}
}

// What is ours never opens the breaker.
func TestBreakerKnowsWhoseFaultItIs(t *testing.T) {
	for c, opens := range map[retrylens.ErrorClass]bool{
		"overloaded": true, "server_error": true, "bad_gateway": true, "unavailable": true, "gateway_timeout": true,
		"timeout": true, "transport_unknown": true, "transport_presend": true, "stream_interrupted": true,
		"rate_limited": false, "quota_exhausted": false, "auth": false, "permission": false, "not_found": false,
		"invalid_request": false, "payload_too_large": false, "context_length": false, "content_filter": false,
		"refusal": false, "empty_response": false, "conflict": false, "cancelled": false, "unclassified": false,
	} {
		w := newWorld(t, nil)
		for range 20 {
			w.send(t, w.e.Begin(keyed()), 0, class(c))
		}
		_, d := w.e.Begin(keyed()).Start(nil)
		if d.Send == opens {
			t.Errorf("%s: opens %t, want %t", c, !d.Send, opens)
		}
	}
}

func TestBulkhead(t *testing.T) {
	w := newWorld(t, func(o *retry.Options) { o.Limits = limits(func(l *retry.Limits) { l.Bulkhead.Limit = 2 }) })
	a, b, c := w.e.Begin(keyed()), w.e.Begin(keyed()), w.e.Begin(keyed())
	a.Start(nil)
	b.Start(nil)
	if _, d := w.e.Begin(keyed()).Start(nil); d.StopReason != retrylens.StopDeadline || d.Outcome != retrylens.OutcomeShed {
		t.Errorf("full and nobody waits: %+v", d)
	}
	granted := 0
	if _, d := c.Start(func() { granted++ }); !d.Queued {
		t.Fatalf("%+v", d)
	}
	if _, d := c.Start(nil); !d.Queued {
		t.Errorf("still in the queue: %+v", d)
	}
	a.Next(ok)
	if granted != 1 {
		t.Fatal("not served")
	}
	if _, d := c.Start(nil); !d.Send {
		t.Errorf("%+v", d)
	}
	b.Next(class("rate_limited")) // halves
	if s := w.e.State("openai").Bulkhead; s.Limit != 1 || s.InFlight != 1 {
		t.Errorf("%+v", s)
	}
	e := w.e.Begin(keyed())
	e.Start(func() { t.Error("served after it left") })
	if d := e.Leave(retrylens.StopCallerGone); d.StopReason != retrylens.StopCallerGone || d.Outcome != retrylens.OutcomeShed {
		t.Errorf("%+v", d)
	}
	f := w.e.Begin(keyed())
	f.Start(func() {})
	c.Next(ok) // grants f
	f.Leave(retrylens.StopDeadline)
	if s := w.e.State("openai").Bulkhead; s.InFlight != 0 || s.Waiting != 0 {
		t.Errorf("a slot is lost: %+v", s)
	}
	checkRecords(t, w.events(), keyed())
}

func TestLeaveInASleepRevises(t *testing.T) {
	w := newWorld(t, nil)
	r := w.e.Begin(keyed())
	w.send(t, r, 0, class("timeout"))
	if left := w.e.State("openai").RetryBudget; left != 99 {
		t.Errorf("%v tokens", left)
	}
	d := r.Leave(retrylens.StopCallerGone)
	if d.Revision != 1 || d.StopReason != retrylens.StopCallerGone || d.Retry || d.Outcome != retrylens.OutcomeError {
		t.Errorf("%+v", d)
	}
	if left := w.e.State("openai").RetryBudget; left != 100 {
		t.Errorf("%v tokens: a retry that was not sent costs none", left)
	}
	all := w.events()
	if len(all) != 2 || all[0].at.Number != all[1].at.Number {
		t.Errorf("%+v", all)
	}
	if d := r.Leave(retrylens.StopCallerGone); d.StopReason != retrylens.StopCallerGone || len(w.events()) != 2 {
		t.Error("left twice")
	}
}

func TestRefresh(t *testing.T) {
	auth := status(401, `{"error":{"code":"invalid_api_key"}}`)
	w := newWorld(t, nil)
	r := w.e.Begin(keyed())
	r.Start(nil)
	if !r.WantsRefresh(0, auth) {
		t.Fatal("want a refresh")
	}
	auth.CredentialChanged = true
	if d := r.Next(auth); !d.Retry || d.Delay != 0 {
		t.Errorf("%+v", d)
	}
	r.Start(nil)
	if r.WantsRefresh(1, auth) {
		t.Error("a second refresh")
	}
	if d := r.Next(auth); d.StopReason != retrylens.StopNotRetryable {
		t.Errorf("a second 401: %+v", d)
	}
	r = w.e.Begin(unkeyed())
	r.Start(nil)
	if r.WantsRefresh(0, auth) {
		t.Error("an unkeyed call is not sent again")
	}
	r = w.e.Begin(keyed())
	if d := w.send(t, r, 0, auth); d.Retry {
		t.Error("changed without being asked")
	}
}

func TestHandedOver(t *testing.T) {
	for _, c := range []struct {
		end     retry.Result
		stop    retrylens.StopReason
		outcome retrylens.Outcome
	}{
		{ok, retrylens.StopDelivered, retrylens.OutcomeSuccess},
		{class("stream_interrupted"), retrylens.StopPartialStream, retrylens.OutcomeInterrupted},
		{class("timeout"), retrylens.StopPartialStream, retrylens.OutcomeError},
		{class("cancelled"), retrylens.StopCallerGone, retrylens.OutcomeAbandoned},
	} {
		w := newWorld(t, nil)
		r := w.e.Begin(keyed())
		at, _ := r.Start(nil)
		if d := r.Next(retry.Result{HandedOver: true}); !d.HandedOver || d.Retry || len(w.events()) != 0 {
			t.Fatalf("%+v", d)
		}
		if s := w.e.State("openai").Bulkhead; s.InFlight != 1 {
			t.Error("the slot is taken until the end")
		}
		d := at.Finish(c.end)
		if d.StopReason != c.stop || d.Outcome != c.outcome || w.e.State("openai").Bulkhead.InFlight != 0 {
			t.Errorf("%+v", d)
		}
		at.Finish(c.end)
		r.Next(c.end)
		if len(w.events()) != 1 || w.e.State("openai").Bulkhead.InFlight != 0 {
			t.Error("a second report counts for nothing")
		}
	}
}
