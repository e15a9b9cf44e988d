package retry_test

import (
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
)

func two() retry.Op {
	return retry.Op{Provider: "openai", SecondProvider: "azure_openai", Keyed: true, HedgeSafe: true}
}

// breakOpen makes the breaker of a provider refuse.
func breakOpen(t *testing.T, w *world, provider string) {
	t.Helper()
	for {
		r := w.e.Begin(retry.Op{Provider: provider, Keyed: true})
		if _, d := r.Start(nil); !d.Send {
			break
		}
		r.Next(class("stream_interrupted"))
	}
	w.all = nil
}

// An open breaker sends the operation elsewhere at once and at no cost.
func TestFailoverByBreaker(t *testing.T) {
	w := newWorld(t, nil)
	breakOpen(t, w, "openai")
	var got []string
	d := w.drive(two(), time.Millisecond, func(at retry.Attempt) retry.Result {
		got = append(got, at.Provider+" "+string(at.Cause))
		return ok
	})
	all := w.events()
	if d.StopReason != retrylens.StopDelivered || len(got) != 1 || got[0] != "azure_openai failover" {
		t.Fatalf("%+v %v", d, got)
	}
	if len(all) != 2 || all[0].d.Outcome != retrylens.OutcomeShed || !all[0].d.Retry || all[0].d.Delay != 0 || all[1].at.Number != 1 {
		t.Errorf("%+v", all)
	}
	if s := w.e.State("azure_openai"); s.RetryBudget != 100 {
		t.Errorf("the operation's first send costs no token: %v", s.RetryBudget)
	}
	breakOpen(t, w, "azure_openai")
	d = w.drive(two(), 0, func(retry.Attempt) retry.Result { t.Error("sent"); return ok })
	if d.StopReason != retrylens.StopBreakerOpen || len(w.events()) != 2 {
		t.Errorf("both refuse: %+v", d)
	}
	checkRecords(t, w.events(), two())
}

func TestFailoverAfterFailures(t *testing.T) {
	w := newWorld(t, func(o *retry.Options) { o.Policy = policy(func(p *retry.Policy) { p.FailoverAfter = 1 }) })
	var got []string
	d := w.drive(two(), time.Millisecond, func(at retry.Attempt) retry.Result {
		got = append(got, at.Provider)
		return class("unavailable")
	})
	if d.StopReason != retrylens.StopMaxAttempts || len(got) != 3 || got[0] != "openai" || got[1] != "azure_openai" || got[2] != "azure_openai" {
		t.Errorf("%+v %v", d, got)
	}
	if a, b := w.e.State("openai").RetryBudget, w.e.State("azure_openai").RetryBudget; a != 100 || b != 98 {
		t.Errorf("who gets the retry pays for it: %v, %v", a, b)
	}
}

// A retry that meets an open breaker gets its token back and pays at the other one.
func TestFailoverOfARetryPaysOnce(t *testing.T) {
	w := newWorld(t, nil)
	r := w.e.Begin(two())
	d := w.send(t, r, 0, class("timeout"))
	breakOpen(t, w, "openai")
	w.advance(d.Delay)
	if _, d = r.Start(nil); !d.Retry || d.Outcome != retrylens.OutcomeShed {
		t.Fatalf("%+v", d)
	}
	if a, b := w.e.State("openai").RetryBudget, w.e.State("azure_openai").RetryBudget; a != 100 || b != 99 {
		t.Errorf("%v, %v", a, b)
	}
	if at, d := r.Start(nil); !d.Send || at.Provider != "azure_openai" || at.Number != 2 {
		t.Errorf("%+v %+v", at, d)
	}
}

// hedging is a world in which the first provider answers in 100 ms.
func hedging(t *testing.T, set func(*retry.Limits)) *world {
	w := newWorld(t, func(o *retry.Options) {
		o.Limits = limits(func(l *retry.Limits) {
			l.Hedging.Enabled = true
			if set != nil {
				set(l)
			}
		})
	})
	for range 100 {
		w.send(t, w.e.Begin(two()), 100*time.Millisecond, ok)
	}
	w.all = nil
	return w
}

func TestHedge(t *testing.T) {
	w := hedging(t, nil)
	r := w.e.Begin(two())
	first, _ := r.Start(nil)
	after, yes := r.HedgeAfter()
	if !yes || after < 100*time.Millisecond || after > 105*time.Millisecond {
		t.Fatalf("after %v, %t", after, yes)
	}
	w.advance(after)
	second, d := r.Hedge()
	if !d.Send || second.Cause != retrylens.CauseHedge || second.Number != 1 || second.Provider != "openai" {
		t.Fatalf("%+v %+v", second, d)
	}
	if _, d := r.Hedge(); d.Send {
		t.Error("a third copy")
	}
	if d := r.Finish(second.Number, ok); d.StopReason != retrylens.StopDelivered {
		t.Errorf("%+v", d)
	}
	if d := r.Finish(first.Number, class("cancelled")); d.Outcome != retrylens.OutcomeHedgeLost || d.StopReason != "" || d.Retry {
		t.Errorf("%+v", d)
	}
	s := w.e.State("openai")
	if s.Bulkhead.InFlight != 0 || s.RetryBudget < 99 || s.RetryBudget > 99.2 {
		t.Errorf("%+v", s)
	}
	checkRecords(t, w.events(), two())
}

func TestHedgeAtTheSecondProvider(t *testing.T) {
	w := hedging(t, func(l *retry.Limits) { l.Hedging.SecondProvider = true })
	r := w.e.Begin(two())
	r.Start(nil)
	at, d := r.Hedge()
	if !d.Send || at.Provider != "azure_openai" || at.Cause != retrylens.CauseHedge {
		t.Fatalf("%+v %+v", at, d)
	}
	// The copy fails first: the other one is waited for. Then that fails as well.
	if d := r.Finish(1, asking(5*time.Second)); d.Retry || d.StopReason != "" || d.Outcome != retrylens.OutcomeError {
		t.Errorf("%+v", d)
	}
	if d := r.Finish(0, class("timeout")); !d.Retry || d.Delay < 5*time.Second {
		t.Errorf("a retry honours what either provider asked for: %+v", d)
	}
	if at, d := r.Start(nil); !d.Send || at.Number != 2 || at.Provider != "openai" {
		t.Errorf("%+v %+v", at, d)
	}
	if d := r.Next(class("timeout")); d.StopReason != retrylens.StopMaxAttempts {
		t.Errorf("hedges are attempts: %+v", d)
	}
}

func TestNoHedge(t *testing.T) {
	none := func(name string, w *world, op retry.Op) {
		t.Helper()
		r := w.e.Begin(op)
		r.Start(nil)
		before := w.e.State("openai")
		_, d := r.Hedge()
		after := w.e.State("openai")
		if d.Send || d.Reason == "" || after.RetryBudget != before.RetryBudget || after.Bulkhead.InFlight != before.Bulkhead.InFlight {
			t.Errorf("%s: %+v, %+v then %+v", name, d, before, after)
		}
	}
	change := func(set func(*retry.Op)) retry.Op {
		op := two()
		set(&op)
		return op
	}
	w := hedging(t, nil)
	none("unkeyed", w, change(func(o *retry.Op) { o.Keyed = false }))
	none("stream", w, change(func(o *retry.Op) { o.Stream = true }))
	none("not marked safe", w, change(func(o *retry.Op) { o.HedgeSafe = false }))
	none("one attempt", w, change(func(o *retry.Op) { o.Policy = policy(func(p *retry.Policy) { p.Attempts = 1 }) }))
	none("off", newWorld(t, nil), two())
	none("no share", hedging(t, func(l *retry.Limits) { l.Hedging.Share = 0 }), two())
	none("no budget", hedging(t, func(l *retry.Limits) { l.RetryBudget.Tokens = 0 }), two())
	none("no slot", hedging(t, func(l *retry.Limits) { l.Bulkhead.Limit = 1 }), two())

	w = hedging(t, nil)
	r := w.e.Begin(two())
	r.Start(nil)
	breakOpen(t, w, "openai")
	if _, d := r.Hedge(); d.Send || d.Reason != "breaker open" {
		t.Errorf("%+v", d)
	}
	w.advance(time.Minute)
	r = w.e.Begin(retry.Op{Provider: "azure_openai", Keyed: true, HedgeSafe: true})
	r.Start(nil)
	if _, yes := r.HedgeAfter(); yes {
		t.Error("no latencies, no hedge")
	}
}

// Never more than 5 % of the calls.
func TestShareOfHedges(t *testing.T) {
	w := hedging(t, func(l *retry.Limits) { l.RetryBudget.PerSuccess = 1 })
	hedges := 0
	for range 2000 {
		r := w.e.Begin(two())
		r.Start(nil)
		if at, d := r.Hedge(); d.Send {
			hedges++
			r.Finish(at.Number, ok)
		}
		r.Finish(0, ok)
	}
	if hedges < 100 || hedges > 105+5 {
		t.Errorf("%d hedges for 2,000 calls", hedges)
	}
}

// Half-open admits exactly one, and that is never a copy: who waits for it has another.
func TestAHedgeIsNoProbe(t *testing.T) {
	w := hedging(t, nil)
	op := two()
	op.Policy = policy(func(p *retry.Policy) { p.WallClockBudget = 10 * time.Minute })
	r := w.e.Begin(op)
	r.Start(nil)
	breakOpen(t, w, "openai")
	w.advance(time.Minute)
	if _, d := r.Hedge(); d.Send {
		t.Errorf("a hedge was the probe: %+v", d)
	}
	if at, d := w.e.Begin(keyed()).Start(nil); !d.Send || !at.Probe {
		t.Errorf("the probe is gone: %+v %+v", at, d)
	}
}

// The one retry of an unkeyed call is not another one somewhere else.
func TestAnUnkeyedRetryFailsOverNowhere(t *testing.T) {
	w := newWorld(t, nil)
	op := two()
	op.Keyed = false
	r := w.e.Begin(op)
	d := w.send(t, r, time.Millisecond, class("transport_presend"))
	if !d.Retry {
		t.Fatalf("%+v", d)
	}
	breakOpen(t, w, "openai")
	w.advance(d.Delay)
	if at, d := r.Start(nil); d.Send || d.Retry || d.StopReason != retrylens.StopBreakerOpen {
		t.Errorf("%+v %+v", at, d)
	}
}

// What a provider asked for is waited for also when the retry goes elsewhere.
func TestFailoverKeepsTheWait(t *testing.T) {
	w := newWorld(t, nil)
	r := w.e.Begin(two())
	d := w.send(t, r, 0, asking(5*time.Second))
	if !d.Retry || d.Delay < 5*time.Second {
		t.Fatalf("%+v", d)
	}
	breakOpen(t, w, "openai")
	w.advance(time.Second)
	if _, d = r.Start(nil); !d.Retry || d.Delay < 4*time.Second {
		t.Errorf("sent elsewhere after 1 s: %+v", d)
	}
}

// The same 500 of another provider is another fault.
func TestIdenticalFaultsAreOfOneProvider(t *testing.T) {
	w := newWorld(t, func(o *retry.Options) { o.Policy = policy(func(p *retry.Policy) { p.FailoverAfter = 1 }) })
	var got []string
	d := w.drive(two(), time.Millisecond, func(at retry.Attempt) retry.Result {
		got = append(got, at.Provider)
		return status(500, `{"error":{"message":"boom","type":"server_error"}}`)
	})
	if len(got) != 3 || d.StopReason != retrylens.StopRepeatedIdentically && d.StopReason != retrylens.StopMaxAttempts {
		t.Errorf("%v %+v", got, d)
	}
}
