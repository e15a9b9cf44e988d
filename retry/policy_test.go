package retry_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/breaker"
)

// The table of docs/policy.md.
func TestPresets(t *testing.T) {
	i, b := retry.Interactive(), retry.Batch()
	if i.Validate() != nil || b.Validate() != nil || retry.DefaultLimits().Validate() != nil {
		t.Fatal(i.Validate(), b.Validate(), retry.DefaultLimits().Validate())
	}
	for _, c := range []struct {
		knob     string
		got      [2]any
		expected [2]any
	}{
		{"attempts", [2]any{i.Attempts, b.Attempts}, [2]any{3, 5}},
		{"base", [2]any{i.Base, b.Base}, [2]any{500 * time.Millisecond, 500 * time.Millisecond}},
		{"cap", [2]any{i.Cap, b.Cap}, [2]any{20 * time.Second, time.Minute}},
		{"jitter", [2]any{i.Jitter, b.Jitter}, [2]any{retry.JitterFull, retry.JitterFull}},
		{"wall_clock_budget", [2]any{i.WallClockBudget, b.WallClockBudget}, [2]any{25 * time.Second, 10 * time.Minute}},
		{"attempt_timeout", [2]any{i.AttemptTimeout, b.AttemptTimeout}, [2]any{time.Minute, 10 * time.Minute}},
		{"gap_timeout", [2]any{i.GapTimeout, b.GapTimeout}, [2]any{30 * time.Second, time.Minute}},
	} {
		if c.got != c.expected {
			t.Errorf("%s: %v, want %v", c.knob, c.got, c.expected)
		}
	}
}

func TestValidateNamesTheKnob(t *testing.T) {
	for knob, set := range map[string]func(*retry.Policy){
		"attempts":          func(p *retry.Policy) { p.Attempts = 0 },
		"base":              func(p *retry.Policy) { p.Base = 0 },
		"cap":               func(p *retry.Policy) { p.Cap = 1 },
		"jitter":            func(p *retry.Policy) { p.Jitter = 9 },
		"retry_after":       func(p *retry.Policy) { p.RetryAfter = 9 },
		"overloaded_base":   func(p *retry.Policy) { p.OverloadedBase = -1 },
		"wall_clock_budget": func(p *retry.Policy) { p.WallClockBudget = 0 },
		"attempt_timeout":   func(p *retry.Policy) { p.AttemptTimeout = 0 },
		"gap_timeout":       func(p *retry.Policy) { p.GapTimeout = 0 },
		"failover_after":    func(p *retry.Policy) { p.FailoverAfter = -1 },
	} {
		p := policy(set)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), "retry: "+knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
		if _, err := retry.New(retry.Options{Policy: p}); err == nil {
			t.Errorf("%s: New took it", knob)
		}
	}
	for knob, set := range map[string]func(*retry.Limits){
		"retry_budget.tokens":   func(l *retry.Limits) { l.RetryBudget.Tokens = -1 },
		"breaker.failure_ratio": func(l *retry.Limits) { l.Breaker.FailureRatio = 2 },
		"bulkhead.limit":        func(l *retry.Limits) { l.Bulkhead.Limit = 0 },
		"hedging.share":         func(l *retry.Limits) { l.Hedging.Enabled, l.Hedging.Share = true, 2 },
	} {
		l := limits(set)
		_, err := retry.New(retry.Options{Providers: map[string]retry.Limits{"p": *l}})
		if l.Validate() == nil || err == nil || !strings.Contains(err.Error(), knob+" ") {
			t.Errorf("%s: %v", knob, err)
		}
	}
}

func TestPolicyAsJSON(t *testing.T) {
	p := retry.Batch()
	p.Jitter, p.RetryAfter = retry.JitterDecorrelated, retry.Obey
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"attempts":5`, `"cap":"1m0s"`, `"jitter":"decorrelated"`, `"retry_after":"obey"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s lacks %s", b, want)
		}
	}
	var back retry.Policy
	if err := json.Unmarshal(b, &back); err != nil || back != p {
		t.Errorf("%v %+v", err, back)
	}
	over := retry.Interactive()
	if err := json.Unmarshal([]byte(`{"attempts":2,"cap":"5s"}`), &over); err != nil || over.Attempts != 2 || over.Cap != 5*time.Second || over.Base != 500*time.Millisecond {
		t.Errorf("over a preset: %v %+v", err, over)
	}
	for _, bad := range []string{`{"atempts":2}`, `{"cap":5}`, `{"cap":"5"}`, `{"jitter":"some"}`} {
		if err := json.Unmarshal([]byte(bad), &over); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	l := retry.DefaultLimits()
	if err := json.Unmarshal([]byte(`{"breaker":{"open":"1m"},"retry_budget":{"tokens":5}}`), &l); err != nil {
		t.Fatal(err)
	}
	want := breaker.Default()
	want.Open = time.Minute
	if l.Breaker != want || l.RetryBudget.Tokens != 5 {
		t.Errorf("%+v", l)
	}
}

func TestBackoff(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	intn := rand.New(rand.NewPCG(seed, seed)).Int64N
	base, limit := 500*time.Millisecond, 20*time.Second
	for _, c := range []struct {
		j        retry.Jitter
		attempt  int
		low, top time.Duration
	}{
		{retry.JitterFull, 0, 0, base}, {retry.JitterFull, 3, 0, 4 * time.Second}, {retry.JitterFull, 99, 0, limit},
		{retry.JitterNone, 2, 2 * time.Second, 2 * time.Second}, {retry.JitterNone, 62, limit, limit},
		{retry.JitterEqual, 2, time.Second, 2 * time.Second}, {retry.JitterEqual, 8, 10 * time.Second, limit},
		{retry.JitterDecorrelated, 0, base, 3 * base},
	} {
		b := retry.Backoff{Base: base, Cap: limit, Jitter: c.j}
		low, top := time.Hour, time.Duration(0)
		for range 2000 {
			d := b.Delay(c.attempt, 0, intn)
			low, top = min(low, d), max(top, d)
		}
		if low < c.low || top > c.top || low > c.low+(c.top-c.low)/20 || top < c.top-(c.top-c.low)/20 {
			t.Errorf("%v after attempt %d: %v..%v, want %v..%v", c.j, c.attempt, low, top, c.low, c.top)
		}
	}
	d := retry.Backoff{Base: base, Cap: limit, Jitter: retry.JitterDecorrelated}
	for prev, n := time.Duration(0), 0; n < 1000; n++ {
		next := d.Delay(n, prev, intn)
		if next < base || next > limit || next > 3*max(prev, base) {
			t.Fatalf("%v after %v", next, prev)
		}
		prev = next
	}
}

func TestSpread(t *testing.T) {
	intn := func(n int64) int64 { return n - 1 }
	b := retry.Policy{Base: 500 * time.Millisecond, Cap: 20 * time.Second}.Backoff()
	if got := b.Spread(0, 20*time.Second, intn); got != 2*time.Second {
		t.Errorf("a tenth of the wait: %v", got)
	}
	if got := b.Spread(2, time.Second, intn); got != 2*time.Second {
		t.Errorf("the ceiling: %v", got)
	}
	if got := (retry.Backoff{Base: 1, Cap: 1, Jitter: retry.JitterNone}).Spread(0, time.Hour, intn); got != 0 {
		t.Errorf("no jitter: %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, j := range retry.Jitters {
		var back retry.Jitter
		b, _ := j.MarshalText()
		if err := back.UnmarshalText(b); err != nil || back != j {
			t.Errorf("%s: %v %v", b, err, back)
		}
	}
	if retry.Jitter(9).String() != "unknown(9)" || retry.Clamp.String() != "clamp" {
		t.Error("names")
	}
}
