package retryhttp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/clock"
)

// TestWatch: spans end on the moment, whatever the timer was left at by attempts before.
func TestWatch(t *testing.T) {
	c := clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	p := &watchPool{clock: c}
	for _, before := range []time.Duration{0, time.Second, 9 * time.Second, 50 * time.Second} {
		w := p.start(context.Background(), p.clock.Now(), 60*time.Second) // leaves a timer behind
		p.release(w, true)
		c.Advance(before)

		w = p.start(context.Background(), p.clock.Now(), 10*time.Second)
		c.Advance(10*time.Second - 1)
		if w.life.Err() != nil || w.fired() != nil {
			t.Fatalf("after %v: ended early", before)
		}
		c.Advance(1)
		if !errors.Is(context.Cause(w.life), retry.ErrAttemptTimeout) || !errors.Is(w.fired(), retry.ErrAttemptTimeout) {
			t.Fatalf("after %v: %v", before, context.Cause(w.life))
		}
		p.release(w, true)
	}
}

func TestWatchGaps(t *testing.T) {
	c := clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	p := &watchPool{clock: c}
	w := p.start(context.Background(), p.clock.Now(), 10*time.Second)
	c.Advance(9 * time.Second)
	w.stream(4 * time.Second)
	for range 20 { // far beyond the first span
		c.Advance(3 * time.Second)
		w.feed()
	}
	c.Advance(4*time.Second - 1)
	if w.life.Err() != nil {
		t.Fatal("ended early")
	}
	c.Advance(1)
	if !errors.Is(context.Cause(w.life), retry.ErrGapTimeout) {
		t.Fatalf("%v", context.Cause(w.life))
	}
	p.release(w, true)
}

// TestWatchOfASlowCaller: what the caller does between its reads is no gap of the provider,
// and does not make one shorter.
func TestWatchOfASlowCaller(t *testing.T) {
	c := clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	p := &watchPool{clock: c}
	w := p.start(context.Background(), p.clock.Now(), 10*time.Second)
	w.stream(4 * time.Second)
	for range 5 {
		c.Advance(3 * time.Second)
		w.pause(true)
		c.Advance(time.Hour)
		w.resume()
	}
	for range 3 { // keep-alives
		c.Advance(time.Second)
		w.pause(false)
		c.Advance(time.Hour)
		w.resume()
	}
	c.Advance(time.Second - 1)
	if w.life.Err() != nil {
		t.Fatal("ended early")
	}
	c.Advance(1)
	if !errors.Is(context.Cause(w.life), retry.ErrGapTimeout) {
		t.Fatalf("%v", context.Cause(w.life))
	}
	p.release(w, true)
	if w = p.start(context.Background(), p.clock.Now(), 10*time.Second); w.away.Load() {
		t.Error("the next attempt begins as a slow caller's")
	}
}

// TestWatchOfACallerThatLeaves: its life ends with the caller's cause and is not used again.
func TestWatchOfACallerThatLeaves(t *testing.T) {
	p := &watchPool{clock: clock.Real()}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := p.start(ctx, p.clock.Now(), time.Hour)
	cancel(gone)
	<-w.life.Done()
	if context.Cause(w.life) != gone || w.fired() != nil {
		t.Errorf("%v", context.Cause(w.life))
	}
	p.release(w, true)
	if next := p.start(context.Background(), p.clock.Now(), time.Hour); next.life.Err() != nil {
		t.Error("a life that has ended was used again")
	}
}
