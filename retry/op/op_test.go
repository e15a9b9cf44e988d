package op_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/keys"
	"github.com/retrylens/retrylens/retry/op"
)

// TestStartedAt: an operation has not begun after its first attempt, nor before there were records.
func TestStartedAt(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ named, want time.Time }{
		{time.Time{}, now}, {now.Add(-time.Hour), now.Add(-time.Hour)}, {now, now}, {now.Add(time.Millisecond), now}, {now.Add(time.Hour), now},
		{time.Unix(0, 0), now}, {time.UnixMilli(-1), now}, {time.Date(2019, 12, 31, 23, 59, 59, 0, time.UTC), now},
	} {
		begun, claimed := op.NewHandle(op.Operation{StartedAt: c.named}), op.NewHandle(op.Operation{StartedAt: c.named})
		_, a := begun.Begin(now)
		_, b := claimed.Claim(0, now)
		if !a.Equal(c.want) || !b.Equal(c.want) {
			t.Errorf("named %v: %v and %v", c.named, a, b)
		}
		if _, later := claimed.Claim(1, now.Add(-time.Minute)); !later.Equal(b) {
			t.Errorf("named %v: changed to %v", c.named, later)
		}
	}
}

func TestNumbers(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	h := op.NewHandle(op.Operation{})
	if next, at := h.Begin(now); next != 0 || !at.Equal(now) {
		t.Errorf("%d, %v", next, at)
	}
	if a, b := h.Take(), h.Take(); a != 0 || b != 1 {
		t.Errorf("%d, %d", a, b)
	}
	if next, at := h.Begin(now.Add(time.Second)); next != 2 || !at.Equal(now) {
		t.Errorf("a second run begins at %d, %v", next, at)
	}
	h.Skip(1)
	h.Skip(7)
	if n := h.Take(); n != 7 {
		t.Errorf("after a skip %d", n)
	}
	for _, c := range [][2]int32{{9, 9}, {8, 8}, {8, 10}, {3, 3}} {
		if got, at := h.Claim(c[0], now.Add(time.Minute)); got != c[1] || !at.Equal(now) || h.Number() < got {
			t.Errorf("claimed %d: got %d of an operation that began at %v", c[0], got, at)
		}
	}
	if _, at := op.NewHandle(op.Operation{}).Claim(0, now); !at.Equal(now) {
		t.Errorf("an operation begins at %v, not with its first attempt", at)
	}
	if h.ID() == "" || h.ID() != h.ID() {
		t.Error("the id is not one id")
	}
}

func TestDeliveries(t *testing.T) {
	for deliveries, want := range map[int]int32{-1: 0, 0: 0, 3: 300, 1 << 40: 2147483500} {
		if got := op.NewHandle(op.Operation{Deliveries: deliveries}).Take(); got != want {
			t.Errorf("delivery %d starts at %d, want %d", deliveries, got, want)
		}
	}
}

func TestPersistOnce(t *testing.T) {
	calls, fail := 0, true
	h := op.NewHandle(op.Operation{Key: "k", Persist: func(_ context.Context, key string) error {
		calls++
		if key != "k" {
			t.Errorf("key %q", key)
		}
		if fail {
			return errors.New("disk full")
		}
		return nil
	}})
	if h.Persist(context.Background()) == nil {
		t.Error("a failure was swallowed")
	}
	fail = false
	for range 3 {
		if err := h.Persist(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if calls != 2 {
		t.Errorf("called %d times, want 2", calls)
	}
}

// TestPersistMayAskForTheOperation: what is kept beside the key, the operation itself tells.
func TestPersistMayAskForTheOperation(t *testing.T) {
	kept := ""
	ctx := op.With(t.Context(), op.Operation{Key: "k", Persist: func(ctx context.Context, _ string) error {
		kept = op.From(ctx).ID()
		return nil
	}})
	if err := op.From(ctx).Persist(ctx); err != nil || kept == "" || kept != op.From(ctx).ID() {
		t.Errorf("%q, %v", kept, err)
	}
}

func ExampleWith() {
	ctx := op.With(context.Background(), op.Operation{Name: "summarise", Key: keys.Derive("summary", "document 7")})
	fmt.Println(op.From(ctx).Operation().Name, op.From(context.Background()) == nil)
	// Output: summarise true
}

// For those who keep an operation elsewhere than in a context: the numbers of its attempts go
// on where a redelivery begins.
func ExampleNewHandle() {
	h := op.NewHandle(op.Operation{ID: "job-7", Key: keys.Derive("job", "7"), Deliveries: 1})
	fmt.Println(h.ID(), h.Take(), h.Take())
	// Output: job-7 100 101
}
