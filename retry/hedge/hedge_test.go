package hedge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/hedge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// The quantile is the nearest rank or at most 4.5 % above it.
func TestQuantile(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, seed))
	tr := hedge.NewTracker(hedge.Default())
	var all []time.Duration
	for range 5000 {
		d := time.Duration(rnd.ExpFloat64() * float64(2*time.Second))
		all = append(all, d)
		tr.Observe(start, d)
	}
	slices.Sort(all)
	want := all[4749]
	got, ok := tr.After(start)
	if !ok || got < want || float64(got) > 1.045*float64(want) {
		t.Errorf("After = %v, %t; nearest rank %v", got, ok, want)
	}
}

func TestOldLatenciesGo(t *testing.T) {
	tr := hedge.NewTracker(hedge.Default())
	if _, ok := tr.After(start); ok {
		t.Error("a quantile of nothing")
	}
	for range 20 {
		tr.Observe(start, time.Hour*10)
	}
	if _, ok := tr.After(start.Add(4 * time.Minute)); !ok {
		t.Error("gone too early")
	}
	if _, ok := tr.After(start.Add(5 * time.Minute)); ok {
		t.Error("still there")
	}
	for range 20 {
		tr.Observe(start.Add(time.Hour), 0)
	}
	if d, ok := tr.After(start.Add(time.Hour)); !ok || d != time.Millisecond {
		t.Errorf("%v %t", d, ok)
	}
}

func TestShare(t *testing.T) {
	tr := hedge.NewTracker(hedge.Default())
	hedges := 0
	for range 10000 {
		tr.Call()
		if tr.Take() {
			hedges++
		}
	}
	if hedges != 500 {
		t.Errorf("%d hedges for 10,000 calls", hedges)
	}
	for range 10000 {
		tr.Call()
	}
	saved := 0
	for tr.Take() {
		saved++
	}
	tr.Return()
	if saved != 10 || !tr.Take() {
		t.Errorf("a quiet time saves %d", saved)
	}
}

func TestRace(t *testing.T) {
	tr := hedge.NewTracker(hedge.Default())
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			now := start.Add(time.Duration(i) * time.Second)
			tr.Call()
			tr.Observe(now, time.Duration(i)*time.Millisecond)
			tr.After(now)
			if tr.Take() {
				tr.Return()
			}
		})
	}
	wg.Wait()
}

func TestOptions(t *testing.T) {
	if err := (hedge.Options{}).Validate(); err != nil {
		t.Errorf("off is valid: %v", err)
	}
	for knob, set := range map[string]func(*hedge.Options){
		"quantile":    func(o *hedge.Options) { o.Quantile = 1 },
		"window":      func(o *hedge.Options) { o.Window = 0 },
		"min_samples": func(o *hedge.Options) { o.MinSamples = 0 },
		"share":       func(o *hedge.Options) { o.Share = 1.5 },
	} {
		o := hedge.Default()
		o.Enabled = true
		set(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
	}
	b, err := json.Marshal(hedge.Default())
	var o hedge.Options
	if err != nil || json.Unmarshal(b, &o) != nil || o != hedge.Default() {
		t.Errorf("%s %v %+v", b, err, o)
	}
}

func Example() {
	o := hedge.Default()
	o.Enabled = true
	t := hedge.NewTracker(o)
	now := time.Unix(0, 0)
	for i := range 100 {
		t.Call()
		t.Observe(now, time.Duration(i+1)*10*time.Millisecond)
	}
	after, ok := t.After(now)
	fmt.Println(after.Round(time.Millisecond), ok, t.Take())
	// Output: 981ms true true
}
