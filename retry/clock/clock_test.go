package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestFakeFiresInOrder(t *testing.T) {
	c := clock.NewFake(start)
	var got []int
	c.AfterFunc(3*time.Second, func() { got = append(got, 3) })
	c.AfterFunc(time.Second, func() {
		got = append(got, 1)
		c.AfterFunc(time.Second, func() { got = append(got, 2) })
	})
	stopped := c.AfterFunc(2*time.Second, func() { t.Error("a stopped timer fired") })
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop: want true once")
	}
	c.Advance(5 * time.Second)
	if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("fired %v", got)
	}
	if want := start.Add(5 * time.Second); !c.Now().Equal(want) || c.Pending() != 0 {
		t.Errorf("now %v, %d pending", c.Now(), c.Pending())
	}
}

func TestFakeTimer(t *testing.T) {
	c := clock.NewFake(start)
	tm := c.NewTimer(time.Second)
	if at, ok := c.Next(); !ok || !at.Equal(start.Add(time.Second)) {
		t.Errorf("Next = %v, %t", at, ok)
	}
	c.Advance(time.Second)
	tm.Reset(time.Second) // takes the stale value away
	select {
	case <-tm.C():
		t.Error("stale value after Reset")
	default:
	}
	c.Advance(time.Second)
	if at := <-tm.C(); !at.Equal(start.Add(2 * time.Second)) {
		t.Errorf("fired at %v", at)
	}
	<-c.NewTimer(0).C()
}

func TestSleep(t *testing.T) {
	c := clock.NewFake(start)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- clock.Sleep(ctx, c, time.Minute) }()
	if err := c.BlockUntil(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Minute)
	if err := <-done; err != nil {
		t.Error(err)
	}
	gone := errors.New("gone")
	go func() { done <- clock.Sleep(ctx, c, time.Minute) }()
	_ = c.BlockUntil(t.Context(), 1)
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("Sleep = %v", err)
	}
	if err := clock.Sleep(ctx, c, 0); !errors.Is(err, gone) {
		t.Errorf("Sleep(0) with a done context = %v", err)
	}
	if err := clock.Sleep(t.Context(), c, 0); err != nil {
		t.Error(err)
	}
}

// The real clock in a bubble, where time is fake as well.
func TestReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, before := clock.Real(), time.Now()
		if err := clock.Sleep(t.Context(), c, time.Hour); err != nil || time.Since(before) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		late := errors.New("late")
		ctx, w := clock.Watch(t.Context(), c, time.Minute, late)
		time.Sleep(59 * time.Second)
		w.Feed(time.Minute)
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil {
			t.Error("ended although fed")
		}
		time.Sleep(2 * time.Second)
		if !errors.Is(context.Cause(ctx), late) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		w.Close()
	})
}

func TestWatchdogDisarmed(t *testing.T) {
	c := clock.NewFake(start)
	ctx, w := clock.Watch(t.Context(), c, time.Minute, errors.New("late"))
	w.Disarm()
	c.Advance(time.Hour)
	if ctx.Err() != nil {
		t.Error("ended although disarmed")
	}
	w.Feed(0)
	w.Close()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("Close must free the context")
	}
	unlimited, w2 := clock.Watch(t.Context(), c, 0, errors.New("late"))
	c.Advance(time.Hour)
	if unlimited.Err() != nil {
		t.Error("no limit means none")
	}
	w2.Close()
}
