package bulkhead_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/bulkhead"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func of(limit int) *bulkhead.Bulkhead {
	o := bulkhead.Default()
	o.Limit = limit
	return bulkhead.New(o)
}

func TestLimit(t *testing.T) {
	b := of(2)
	got := 0
	for b.TryAcquire(start) {
		got++
	}
	if got != 2 {
		t.Fatalf("%d slots, want two", got)
	}
	b.Release(start)
	if !b.TryAcquire(start) {
		t.Error("a released slot is free")
	}
}

// Halved once in the window, 10 % of the full limit back a minute.
func TestAIMD(t *testing.T) {
	b := of(40)
	limit := func(d time.Duration) int { return b.Snapshot(start.Add(d)).Limit }
	b.RateLimited(start)
	b.RateLimited(start.Add(59 * time.Second))
	if got := limit(0); got != 20 {
		t.Errorf("halved to %d, want 20", got)
	}
	if got := limit(time.Minute); got != 24 {
		t.Errorf("after a minute %d, want 24", got)
	}
	b.RateLimited(start.Add(time.Minute))
	if got := limit(time.Minute); got != 12 {
		t.Errorf("halved again %d, want 12", got)
	}
	for i, want := range []int{16, 20, 24, 28, 32, 36, 40, 40} {
		if got := limit(time.Duration(i+2) * time.Minute); got != want {
			t.Errorf("minute %d: %d, want %d", i+2, got, want)
		}
	}
	for i := range 20 {
		b.RateLimited(start.Add(time.Hour + time.Duration(i)*time.Minute))
	}
	if got := limit(80 * time.Minute); got < 1 {
		t.Errorf("limit %d", got)
	}
}

func TestQueueIsFair(t *testing.T) {
	b := of(1)
	b.TryAcquire(start)
	var got []int
	var places []*bulkhead.Waiter
	for i := range 4 {
		w, err := b.Enqueue(start, func() { got = append(got, i) })
		if w == nil || err != nil {
			t.Fatal(w, err)
		}
		places = append(places, w)
	}
	if b.TryAcquire(start) {
		t.Error("jumped the queue")
	}
	if !b.Leave(places[1]) || b.Leave(places[1]) {
		t.Error("Leave: want true once")
	}
	for range 3 {
		b.Release(start)
	}
	if fmt.Sprint(got) != "[0 2 3]" {
		t.Errorf("served %v", got)
	}
	if b.Leave(places[0]) {
		t.Error("who was served has nothing to leave")
	}
	if s := b.Snapshot(start); s.InFlight != 1 || s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestShrunkLimitDrains(t *testing.T) {
	b := of(4)
	for range 4 {
		b.TryAcquire(start)
	}
	b.RateLimited(start)
	served := 0
	_, _ = b.Enqueue(start, func() { served++ })
	b.Release(start)
	b.Release(start)
	if served != 0 {
		t.Error("served above the halved limit")
	}
	b.Release(start)
	if served != 1 {
		t.Error("not served below it")
	}
}

func TestAcquireHonoursContext(t *testing.T) {
	b := of(1)
	if err := b.Acquire(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := b.Acquire(ctx, start); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := of(1)
		b.TryAcquire(start)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Acquire(ctx, start) }()
		synctest.Wait()
		if b.Snapshot(start).Waiting != 1 {
			t.Error("nobody waits")
		}
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) || b.Snapshot(start).Waiting != 0 {
			t.Errorf("%v", err)
		}
		go func() { done <- b.Acquire(t.Context(), start) }()
		synctest.Wait()
		b.Release(start)
		if err := <-done; err != nil {
			t.Errorf("%v", err)
		}
	})
	if s := b.Snapshot(start); s.Waiting != 0 || s.InFlight != 1 {
		t.Errorf("%+v", s)
	}
}

func TestFullQueue(t *testing.T) {
	o := bulkhead.Default()
	o.Limit, o.MaxWaiting = 1, 1
	b := bulkhead.New(o)
	b.TryAcquire(start)
	if _, err := b.Enqueue(start, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := b.Acquire(t.Context(), start); !errors.Is(err, bulkhead.ErrFull) {
		t.Errorf("%v", err)
	}
}

// A thousand goroutines, some of which give up, some of which are rate limited.
func TestRace(t *testing.T) {
	b := of(16)
	var inside, most, ticks atomic.Int64
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%7 == 0 {
				go cancel()
			}
			defer cancel()
			now := start.Add(time.Duration(ticks.Add(1)) * time.Second)
			if b.Acquire(ctx, now) != nil {
				return
			}
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if i%50 == 0 {
				b.RateLimited(now)
			}
			inside.Add(-1)
			b.Release(now)
		})
	}
	wg.Wait()
	if s := b.Snapshot(start); s.InFlight != 0 || s.Waiting != 0 || most.Load() > 16 {
		t.Errorf("%+v, at most %d inside", s, most.Load())
	}
}

func TestOptions(t *testing.T) {
	if err := bulkhead.Default().Validate(); err != nil {
		t.Fatal(err)
	}
	for knob, set := range map[string]func(*bulkhead.Options){
		"limit":        func(o *bulkhead.Options) { o.Limit = 0 },
		"min":          func(o *bulkhead.Options) { o.Min = 65 },
		"limit_window": func(o *bulkhead.Options) { o.LimitWindow = -1 },
		"recovery":     func(o *bulkhead.Options) { o.Recovery = 2 },
		"max_waiting":  func(o *bulkhead.Options) { o.MaxWaiting = -1 },
	} {
		o := bulkhead.Default()
		set(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
	}
	b, err := json.Marshal(bulkhead.Default())
	var o bulkhead.Options
	if err != nil || json.Unmarshal(b, &o) != nil || o != bulkhead.Default() {
		t.Errorf("%s %v %+v", b, err, o)
	}
}

func Example() {
	b := bulkhead.New(bulkhead.Options{Limit: 8, Min: 1, LimitWindow: time.Minute, Recovery: 0.1})
	now := time.Unix(0, 0)
	b.RateLimited(now)
	fmt.Println(b.Snapshot(now).Limit, b.Snapshot(now.Add(5*time.Minute)).Limit)
	// Output: 4 8
}
