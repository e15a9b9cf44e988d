package breaker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/retry/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// feed reports n outcomes at now.
func feed(t *testing.T, b *breaker.Breaker, now time.Time, n int, out breaker.Outcome) {
	t.Helper()
	for range n {
		p, ok := b.Allow(now, false)
		if !ok {
			t.Fatalf("refused at %v", now.Sub(start))
		}
		b.Done(now, p, out)
	}
}

func state(b *breaker.Breaker, now time.Time) breaker.State { return b.Snapshot(now).State }

func opened(t *testing.T, o breaker.Options) *breaker.Breaker {
	t.Helper()
	b := breaker.New(o, nil)
	feed(t, b, start, o.MinSamples, breaker.Failure)
	if state(b, start) != breaker.Open {
		t.Fatal("not open")
	}
	return b
}

func TestOpensAtHalfOfTwenty(t *testing.T) {
	b := breaker.New(breaker.Default(), nil)
	feed(t, b, start, 19, breaker.Failure)
	if state(b, start) != breaker.Closed {
		t.Error("open with 19 samples")
	}
	feed(t, b, start, 1, breaker.Failure)
	if state(b, start) != breaker.Open {
		t.Error("not open with 20 of 20")
	}

	b = breaker.New(breaker.Default(), nil)
	feed(t, b, start, 11, breaker.Success)
	feed(t, b, start, 10, breaker.Failure)
	if state(b, start) != breaker.Closed {
		t.Error("open at 10 of 21")
	}
	feed(t, b, start, 1, breaker.Failure)
	if state(b, start) != breaker.Open {
		t.Error("not open at 11 of 22")
	}
}

func TestClientFaultsAreNoSamples(t *testing.T) {
	b := breaker.New(breaker.Default(), nil)
	feed(t, b, start, 100, breaker.Neutral)
	feed(t, b, start, 100, breaker.Unknown)
	feed(t, b, start, 19, breaker.Failure)
	if s := b.Snapshot(start); s.State != breaker.Closed || s.Samples != 19 || s.Failures != 19 {
		t.Errorf("%+v", s)
	}
}

func TestWindowRolls(t *testing.T) {
	b := breaker.New(breaker.Default(), nil)
	feed(t, b, start, 19, breaker.Failure)
	later := start.Add(61 * time.Second)
	feed(t, b, later, 1, breaker.Failure)
	if s := b.Snapshot(later); s.State != breaker.Closed || s.Samples != 1 {
		t.Errorf("%+v", s)
	}
}

func TestConsecutive(t *testing.T) {
	o := breaker.Default()
	o.Consecutive = 3
	b := breaker.New(o, nil)
	feed(t, b, start, 2, breaker.Failure)
	feed(t, b, start, 1, breaker.Success)
	feed(t, b, start, 2, breaker.Failure)
	if state(b, start) != breaker.Closed {
		t.Error("open after two in a row")
	}
	feed(t, b, start, 1, breaker.Failure)
	if state(b, start) != breaker.Open {
		t.Error("not open after three in a row")
	}
}

// Cooldowns 30, 60, 120, 240, 300, 300 s; a good probe closes and starts anew.
func TestProbesDoubleTheCooldown(t *testing.T) {
	var changes []string
	b := breaker.New(breaker.Default(), func(from, to breaker.State) { changes = append(changes, fmt.Sprint(from, ">", to)) })
	feed(t, b, start, 20, breaker.Failure)
	now := start
	for _, cooldown := range []time.Duration{30, 60, 120, 240, 300, 300} {
		now = now.Add(cooldown*time.Second - time.Millisecond)
		if _, ok := b.Allow(now, true); ok {
			t.Fatalf("admitted before %v s were over", cooldown)
		}
		now = now.Add(time.Millisecond)
		p, ok := b.Allow(now, false)
		if !ok || !p.Probe {
			t.Fatalf("no probe after %v s", cooldown)
		}
		if _, second := b.Allow(now, true); second {
			t.Fatal("a second probe")
		}
		b.Done(now, p, breaker.Failure)
	}
	now = now.Add(300 * time.Second)
	p, _ := b.Allow(now, false)
	b.Done(now, p, breaker.Success)
	if s := b.Snapshot(now); s.State != breaker.Closed || s.Cooldown != 30*time.Second || s.Samples != 0 {
		t.Errorf("%+v", s)
	}
	if len(changes) != 15 || changes[0] != "closed>open" || changes[14] != "half_open>closed" {
		t.Errorf("changes %v", changes)
	}
}

func TestProbeThatSaysNothing(t *testing.T) {
	b := opened(t, breaker.Default())
	now := start.Add(30 * time.Second)
	p, _ := b.Allow(now, false)
	b.Done(now, p, breaker.Unknown)
	p, ok := b.Allow(now, false)
	if !ok || !p.Probe {
		t.Fatal("no other probe")
	}
	b.Done(now, p, breaker.Neutral)
	if state(b, now) != breaker.Closed {
		t.Error("an answer, be it a 400, shows that the provider is there")
	}
}

func TestLostProbe(t *testing.T) {
	o := breaker.Default()
	b := opened(t, o)
	now := start.Add(o.Open)
	lost, _ := b.Allow(now, false)
	now = now.Add(o.ProbeTimeout)
	p, ok := b.Allow(now, false)
	if !ok {
		t.Fatal("a lost probe blocks for good")
	}
	b.Done(now, lost, breaker.Failure)
	if state(b, now) != breaker.HalfOpen {
		t.Error("the lost probe's report counted")
	}
	b.Done(now, p, breaker.Success)
	if state(b, now) != breaker.Closed {
		t.Error("not closed")
	}
}

func TestLateReportsOfOldCalls(t *testing.T) {
	b := breaker.New(breaker.Default(), nil)
	old, _ := b.Allow(start, false)
	feed(t, b, start, 20, breaker.Failure)
	now := start.Add(30 * time.Second)
	p, _ := b.Allow(now, false)
	b.Done(now, old, breaker.Success)
	if state(b, now) != breaker.HalfOpen {
		t.Error("a call from before the opening closed the breaker")
	}
	b.Done(now, p, breaker.Success)
	b.Done(now, p, breaker.Failure)
	if s := b.Snapshot(now); s.State != breaker.Closed || s.Samples != 0 {
		t.Errorf("second report counted: %+v", s)
	}
}

func TestOnlyCheapCallsProbeInTheGrace(t *testing.T) {
	o := breaker.Default()
	o.ProbeGrace = 5 * time.Second
	b := opened(t, o)
	now := start.Add(o.Open)
	if _, ok := b.Allow(now, false); ok {
		t.Error("a dear probe at once")
	}
	if p, ok := b.Allow(now, true); !ok || !p.Probe {
		t.Error("no cheap probe")
	}
	b = opened(t, o)
	if _, ok := b.Allow(now.Add(o.ProbeGrace), false); !ok {
		t.Error("no probe after the grace")
	}
}

// A thousand goroutines: never more than one probe at a time, whatever they report.
func TestRace(t *testing.T) {
	o := breaker.Default()
	o.MinSamples, o.ProbeTimeout = 5, time.Hour // a probe that is slow to report is not lost
	b := breaker.New(o, func(_, _ breaker.State) {})
	var ticks, probes atomic.Int64
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			for j := range 20 {
				now := start.Add(time.Duration(ticks.Add(1)) * 50 * time.Millisecond)
				p, ok := b.Allow(now, i%2 == 0)
				if !ok {
					continue
				}
				if p.Probe && probes.Add(1) > 1 {
					t.Error("two probes at a time")
				}
				if p.Probe {
					probes.Add(-1)
				}
				b.Done(now, p, breaker.Outcome((i*j)%4))
				b.Snapshot(now)
			}
		})
	}
	wg.Wait()
}

func TestOptions(t *testing.T) {
	if err := breaker.Default().Validate(); err != nil {
		t.Fatal(err)
	}
	for knob, set := range map[string]func(*breaker.Options){
		"failure_ratio": func(o *breaker.Options) { o.FailureRatio = 0 },
		"min_samples":   func(o *breaker.Options) { o.MinSamples = 0 },
		"window":        func(o *breaker.Options) { o.Window = 1 },
		"consecutive":   func(o *breaker.Options) { o.Consecutive = -1 },
		"open":          func(o *breaker.Options) { o.Open = 0 },
		"max_open":      func(o *breaker.Options) { o.MaxOpen = time.Second },
		"probe_grace":   func(o *breaker.Options) { o.ProbeGrace = -1 },
		"probe_timeout": func(o *breaker.Options) { o.ProbeTimeout = 0 },
	} {
		o := breaker.Default()
		set(&o)
		if err := o.Validate(); err == nil || !strings.HasPrefix(err.Error(), knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
	}
	b, err := json.Marshal(breaker.Default())
	o := breaker.Options{}
	if err != nil || !strings.Contains(string(b), `"open":"30s"`) || json.Unmarshal(b, &o) != nil || o != breaker.Default() {
		t.Errorf("%s %v %+v", b, err, o)
	}
	if err := json.Unmarshal([]byte(`{"opne":"1s"}`), &o); err == nil || !strings.Contains(err.Error(), "opne") {
		t.Errorf("a typo must be told: %v", err)
	}
}

func Example() {
	b := breaker.New(breaker.Default(), nil)
	now := time.Unix(0, 0)
	for range 20 {
		if p, ok := b.Allow(now, false); ok {
			b.Done(now, p, breaker.Failure)
		}
	}
	_, ok := b.Allow(now.Add(29*time.Second), false)
	fmt.Println(ok)
	p, ok := b.Allow(now.Add(30*time.Second), false)
	fmt.Println(ok, p.Probe)
	// Output:
	// false
	// true true
}
