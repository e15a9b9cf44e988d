package retry_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/clock"
)

// engine on the real clock, which is a fake one inside of a synctest bubble.
func engine(t testing.TB, o retry.Options) *retry.Engine {
	t.Helper()
	e, err := retry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func noJitter() *retry.Policy {
	return policy(func(p *retry.Policy) { p.Jitter = retry.JitterNone })
}

func TestDoSleepsOnItsClock(t *testing.T) {
	c := clock.NewFake(start)
	e := engine(t, retry.Options{Clock: c, Policy: noJitter()})
	type answer struct {
		res retry.Result
		err error
	}
	done := make(chan answer)
	go func() {
		n := 0
		res, err := e.Do(t.Context(), keyed(), func(context.Context, retry.Attempt) retry.Result {
			if n++; n < 3 {
				return class("timeout")
			}
			return retry.Result{Delivered: true, Value: c.Now()}
		})
		done <- answer{res, err}
	}()
	for _, d := range []time.Duration{500 * time.Millisecond, time.Second} {
		if err := c.BlockUntil(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		c.Advance(d)
	}
	a := <-done
	if a.err != nil || !a.res.Value.(time.Time).Equal(start.Add(1500*time.Millisecond)) {
		t.Errorf("%+v", a)
	}
}

func TestDoErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken pipe")
		for _, c := range []struct {
			res   retry.Result
			is    error
			tries int
		}{
			{class("timeout"), retry.ErrExhausted, 3},
			{class("invalid_request"), retry.ErrPermanent, 1},
			{class("cancelled"), retry.ErrCallerGone, 1},
		} {
			c.res.Err = broken
			res, err := engine(t, retry.Options{Policy: noJitter()}).Do(t.Context(), keyed(), func(context.Context, retry.Attempt) retry.Result { return c.res })
			var e *retry.Error
			if !errors.Is(err, c.is) || !errors.Is(err, broken) || !errors.As(err, &e) || e.Attempts != c.tries ||
				e.Last.Class != c.res.Verdict.Class || res.Verdict.Class != c.res.Verdict.Class {
				t.Errorf("%v: %+v", c.is, err)
			}
			if !strings.Contains(err.Error(), string(e.StopReason)) {
				t.Errorf("%q", err)
			}
		}
	})
	e := engine(t, retry.Options{Clock: &manual{start}})
	if _, err := e.Do(t.Context(), keyed(), nil); err == nil || !strings.Contains(err.Error(), "clock.Clock") {
		t.Errorf("%v", err)
	}
}

func TestDoCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e := engine(t, retry.Options{Policy: noJitter(), Observer: l})
		left := errors.New("left")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(left) })
		_, err := e.Do(ctx, keyed(), func(context.Context, retry.Attempt) retry.Result { return class("timeout") })
		if !errors.Is(err, retry.ErrCallerGone) || !errors.Is(err, left) {
			t.Errorf("%v", err)
		}
		all := l.events()
		if len(all) != 2 || !all[0].d.Retry || all[1].d.Revision != 1 || all[1].d.StopReason != retrylens.StopCallerGone {
			t.Errorf("%+v", all)
		}
		_, err = e.Do(ctx, keyed(), func(context.Context, retry.Attempt) retry.Result { t.Error("sent"); return ok })
		if !errors.Is(err, retry.ErrCallerGone) {
			t.Errorf("%v", err)
		}
	})
}

// A deadline of the context counts as one of the operation: no sleep beyond it.
func TestDoContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, before := engine(t, retry.Options{Policy: noJitter()}), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, err := e.Do(ctx, keyed(), func(context.Context, retry.Attempt) retry.Result { return class("timeout") })
		if !errors.Is(err, retry.ErrExhausted) || time.Since(before) != 0 {
			t.Errorf("%v after %v", err, time.Since(before))
		}
	})
}

func TestDoWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e := engine(t, retry.Options{Observer: l, Limits: limits(func(l *retry.Limits) { l.Bulkhead.Limit = 1 })})
		var wg sync.WaitGroup
		call := func(ctx context.Context, want retrylens.StopReason) {
			wg.Go(func() {
				_, err := e.Do(ctx, keyed(), func(context.Context, retry.Attempt) retry.Result {
					time.Sleep(10 * time.Second)
					return ok
				})
				var re *retry.Error
				if want == retrylens.StopDelivered && err != nil || want != retrylens.StopDelivered && (!errors.As(err, &re) || re.StopReason != want) {
					t.Errorf("want %s: %v", want, err)
				}
			})
			synctest.Wait() // the order of arrival is the order of the queue
		}
		call(t.Context(), retrylens.StopDelivered) // 0..10 s
		call(t.Context(), retrylens.StopDelivered) // 10..20 s
		impatient, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		call(impatient, retrylens.StopDeadline)
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		call(left, retrylens.StopCallerGone)
		call(t.Context(), retrylens.StopDelivered) // 20..30 s
		call(t.Context(), retrylens.StopDeadline)  // 25 s are over first
		wg.Wait()
		if s := e.State("openai").Bulkhead; s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if n := len(l.events()); n != 6 {
			t.Errorf("%d decisions for six operations", n)
		}
	})
}

func TestDoRefreshes(t *testing.T) {
	for _, c := range []struct {
		changed bool
		err     error
		tries   int
	}{{true, nil, 2}, {false, nil, 1}, {true, errors.New("no"), 1}} {
		tries, asked := 0, 0
		op := keyed()
		op.Refresh = func(context.Context) (bool, error) { asked++; return c.changed, c.err }
		_, err := engine(t, retry.Options{}).Do(t.Context(), op, func(context.Context, retry.Attempt) retry.Result {
			tries++
			return status(401, "")
		})
		if !errors.Is(err, retry.ErrPermanent) || tries != c.tries || asked != 1 {
			t.Errorf("%+v: %d tries, asked %d times, %v", c, tries, asked, err)
		}
	}
}

func TestDoPanic(t *testing.T) {
	e := engine(t, retry.Options{})
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic must pass through")
			}
		}()
		_, _ = e.Do(t.Context(), keyed(), func(context.Context, retry.Attempt) retry.Result { panic("boom") })
	}()
	if s := e.State("openai").Bulkhead; s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDoDiscardsWhatItDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []any
		op := keyed()
		op.Discard = func(r retry.Result) { dropped = append(dropped, r.Value) }
		n := 0
		res, err := engine(t, retry.Options{}).Do(t.Context(), op, func(context.Context, retry.Attempt) retry.Result {
			r := class("timeout")
			r.Value, r.Delivered = n, n == 2
			n++
			return r
		})
		if err != nil || res.Value != 2 || len(dropped) != 2 || dropped[0] != 0 || dropped[1] != 1 {
			t.Errorf("%v %v, dropped %v", err, res.Value, dropped)
		}
	})
}

// hedgingEngine knows that good answers take 100 ms.
func hedgingEngine(t *testing.T, l *log) *retry.Engine {
	e := engine(t, retry.Options{Observer: l, Limits: limits(func(l *retry.Limits) { l.Hedging.Enabled = true })})
	for range 40 {
		_, _ = e.Do(t.Context(), two(), func(context.Context, retry.Attempt) retry.Result {
			time.Sleep(100 * time.Millisecond)
			return ok
		})
	}
	l.all = nil
	return e
}

func TestDoHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e, before := hedgingEngine(t, l), time.Now()
		var dropped atomic.Int32
		op := two()
		op.Discard = func(retry.Result) { dropped.Add(1) }
		res, err := e.Do(t.Context(), op, func(ctx context.Context, at retry.Attempt) retry.Result {
			if at.Cause == retrylens.CauseHedge {
				time.Sleep(50 * time.Millisecond)
				return retry.Result{Delivered: true, Value: "copy"}
			}
			<-ctx.Done() // never answers
			time.Sleep(time.Second)
			return class("cancelled")
		})
		if took := time.Since(before); err != nil || res.Value != "copy" || took > 160*time.Millisecond {
			t.Errorf("%v %v after %v", res.Value, err, took)
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all := l.events()
		if len(all) != 2 || all[0].d.StopReason != retrylens.StopDelivered || all[0].at.Cause != retrylens.CauseHedge ||
			all[1].d.Outcome != retrylens.OutcomeHedgeLost || all[1].at.Number != 0 || dropped.Load() != 1 {
			t.Errorf("%+v, %d dropped", all, dropped.Load())
		}
		if s := e.State("openai").Bulkhead; s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestDoHedgeBothFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e, n := hedgingEngine(t, l), atomic.Int32{}
		res, err := e.Do(t.Context(), two(), func(_ context.Context, at retry.Attempt) retry.Result {
			if n.Add(1) == 3 {
				return retry.Result{Delivered: true, Value: at.Number}
			}
			time.Sleep(200 * time.Millisecond)
			return class("timeout")
		})
		if all := l.events(); err != nil || res.Value != int32(2) || len(all) != 3 || all[0].d.Retry || !all[1].d.Retry {
			t.Errorf("%v %v %+v", res.Value, err, all)
		}
	})
}

// The winner's context lives until its reader is done; the loser's does not.
func TestDoHedgeHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		e := hedgingEngine(t, l)
		type open struct {
			ctx context.Context
			at  retry.Attempt
		}
		res, err := e.Do(t.Context(), two(), func(ctx context.Context, at retry.Attempt) retry.Result {
			if at.Cause != retrylens.CauseHedge {
				<-ctx.Done()
				return class("cancelled")
			}
			return retry.Result{HandedOver: true, Value: open{ctx, at}}
		})
		o, _ := res.Value.(open)
		if err != nil || o.ctx == nil || o.ctx.Err() != nil {
			t.Fatalf("%v %+v", err, res)
		}
		if d := o.at.Finish(ok); d.StopReason != retrylens.StopDelivered || o.ctx.Err() == nil {
			t.Errorf("%+v, context %v", d, o.ctx.Err())
		}
		_ = e.Close(t.Context())
	})
}

func TestDoHedgePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := hedgingEngine(t, &log{})
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic must pass through")
				}
			}()
			_, _ = e.Do(t.Context(), two(), func(ctx context.Context, at retry.Attempt) retry.Result {
				if at.Cause == retrylens.CauseHedge {
					panic("boom")
				}
				<-ctx.Done()
				return class("cancelled")
			})
		}()
		if err := e.Close(t.Context()); err != nil || e.State("openai").Bulkhead.InFlight != 0 {
			t.Errorf("%v %+v", err, e.State("openai"))
		}
	})
}

func TestCloseHonoursContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := hedgingEngine(t, &log{})
		release := make(chan struct{})
		_, _ = e.Do(t.Context(), two(), func(_ context.Context, at retry.Attempt) retry.Result {
			if at.Cause != retrylens.CauseHedge {
				<-release
			}
			return ok
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(release)
		_ = e.Close(t.Context())
	})
}

// A thousand goroutines over one engine: bulkhead, breaker, budget, hedges.
func TestDoRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bulkhead = 32
		l := limits(func(l *retry.Limits) {
			l.Hedging.Enabled, l.Hedging.MinSamples, l.Hedging.Share = true, 5, 0.5
			l.Bulkhead.Limit = bulkhead
		})
		var observed, inside, most, sent atomic.Int64
		e := engine(t, retry.Options{Limits: l, Observer: retry.ObserverFunc(func(*retry.Op, retry.Attempt, retry.Decision) { observed.Add(1) })})
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%11 == 0 {
					time.AfterFunc(time.Duration(i)*time.Millisecond, cancel)
				}
				_, _ = e.Do(ctx, retry.Op{Provider: "openai", Keyed: i%3 > 0, HedgeSafe: true}, func(ctx context.Context, at retry.Attempt) retry.Result {
					n := inside.Add(1)
					defer inside.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					k := sent.Add(1)
					_ = clock.Sleep(ctx, clock.Real(), time.Duration(k%400)*time.Millisecond)
					switch {
					case ctx.Err() != nil:
						return class("cancelled")
					case k%3 == 0:
						return class(retrylens.ErrorClasses[int(k)%len(retrylens.ErrorClasses)])
					}
					return ok
				})
			})
		}
		wg.Wait()
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := e.State("openai"); s.Bulkhead.InFlight != 0 || s.Bulkhead.Waiting != 0 || most.Load() > bulkhead {
			t.Errorf("%+v, at most %d inside", s, most.Load())
		}
		if observed.Load() < 1000 {
			t.Errorf("%d decisions for 1,000 operations", observed.Load())
		}
		t.Logf("%d sends, %d decisions, at most %d in flight", sent.Load(), observed.Load(), most.Load())
	})
}
