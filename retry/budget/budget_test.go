package budget_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/budget"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBucket(t *testing.T) {
	b, ctx := budget.New(budget.Default()), t.Context()
	for i := range 100 {
		if !b.Take(ctx) {
			t.Fatalf("empty after %d", i)
		}
	}
	if b.Take(ctx) {
		t.Fatal("a 101st token")
	}
	for range 9 {
		b.Success(ctx)
	}
	if b.Take(ctx) {
		t.Error("a token for nine successes")
	}
	b.Success(ctx)
	if !b.Take(ctx) || b.Take(ctx) {
		t.Error("want one token for ten successes")
	}
	b.Return(ctx)
	for range 10000 {
		b.Success(ctx)
	}
	if b.Tokens() != 100 {
		t.Errorf("%v tokens", b.Tokens())
	}
}

// A thousand goroutines never take more than the bucket and a tenth of the successes.
func TestRace(t *testing.T) {
	b := budget.New(budget.Default())
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for range 10 {
				if b.Take(context.Background()) {
					taken.Add(1)
				}
				b.Success(context.Background())
			}
		})
	}
	wg.Wait()
	if got := float64(taken.Load()) + b.Tokens(); got > 100+1000 || taken.Load() < 100 {
		t.Errorf("%d taken, %v left", taken.Load(), b.Tokens())
	}
}

func TestOptions(t *testing.T) {
	for knob, o := range map[string]budget.Options{
		"tokens":      {Tokens: math.NaN()},
		"per_success": {Tokens: 1, PerSuccess: -1},
	} {
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
	}
	o := budget.Default()
	if err := json.Unmarshal([]byte(`{"tokens":10}`), &o); err != nil || o != (budget.Options{Tokens: 10, PerSuccess: 0.1}) {
		t.Errorf("%v %+v", err, o)
	}
	if err := json.Unmarshal([]byte(`{"token":10}`), &o); err == nil {
		t.Error("a typo must be told")
	}
}

func Example() {
	b := budget.New(budget.Options{Tokens: 1, PerSuccess: 0.1})
	ctx := context.Background()
	fmt.Println(b.Take(ctx), b.Take(ctx))
	for range 10 {
		b.Success(ctx)
	}
	fmt.Println(b.Take(ctx))
	// Output:
	// true false
	// true
}
