package arith_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/arith"
	"github.com/retrylens/retrylens/retry"
)

func usd(t *testing.T, s string) retrylens.Money {
	t.Helper()
	m, err := retrylens.ParseMoney(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStormOfTheField: 60 clients, capacity 10: 63.0 s without jitter, with full
// jitter about 1 s whatever the seed.
func TestStormOfTheField(t *testing.T) {
	o := arith.DefaultStorm()
	r, err := arith.Storm(t.Context(), o, retry.JitterNone)
	if err != nil {
		t.Fatal(err)
	}
	if r.Completion != 63*time.Second || r.Retries != 60+50+40+30+20+10 || r.Requests != 270 || r.Peak != 60 || r.Amplification != 4.5 {
		t.Errorf("without jitter: %+v", r)
	}
	for o.Seed = range 200 {
		r, err := arith.Storm(t.Context(), o, retry.JitterFull)
		if err != nil || r.Completion < 800*time.Millisecond || r.Completion > 1050*time.Millisecond || r.Requests != 120 || r.Peak > o.Capacity {
			t.Fatalf("seed %d, full jitter: %+v, %v", o.Seed, r, err)
		}
	}
}

func TestStorm(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*arith.StormOptions)
		completion time.Duration
		requests   int
		peak       int
	}{
		"all fit":      {func(o *arith.StormOptions) { o.Capacity = 60 }, time.Second, 120, 60},
		"one too many": {func(o *arith.StormOptions) { o.Capacity = 59 }, 3 * time.Second, 121, 60},
		"alone":        {func(o *arith.StormOptions) { o.Clients = 1 }, time.Second, 2, 1},
		"cap":          {func(o *arith.StormOptions) { o.Cap = 20 * time.Second }, 51 * time.Second, 270, 60},
		"base":         {func(o *arith.StormOptions) { o.Base = 500 * time.Millisecond }, 31500 * time.Millisecond, 270, 60},
		"one window":   {func(o *arith.StormOptions) { o.Step = time.Minute }, 303 * time.Second, 470, 260},
	} {
		o := arith.DefaultStorm()
		c.change(&o)
		r, err := arith.Storm(t.Context(), o, retry.JitterNone)
		if err != nil || r.Completion != c.completion || r.Requests != c.requests || r.Peak != c.peak {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestStormServesWithinCapacity: every client is served, no faster than the
// capacity allows, and the seed says all.
func TestStormServesWithinCapacity(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		o := arith.StormOptions{
			Clients: 1 + r.IntN(200), Capacity: 1 + r.IntN(20), Step: time.Duration(1+r.IntN(100)) * time.Millisecond,
			Base: time.Duration(1+r.IntN(1000)) * time.Millisecond, Cap: 30 * time.Second, Seed: r.Uint64(),
		}
		for _, j := range retry.Jitters {
			a, err := arith.Storm(t.Context(), o, j)
			b, _ := arith.Storm(t.Context(), o, j)
			rounds := (o.Clients + o.Capacity - 1) / o.Capacity
			if err != nil || a != b || a.Retries < o.Clients || a.Completion < time.Duration(rounds-1)*o.Step {
				t.Fatalf("%+v %v: %+v, %v", o, j, a, err)
			}
		}
	}
}

func TestStormIsGivenUp(t *testing.T) {
	o := arith.DefaultStorm()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Clients, o.Capacity = 1_000_000, 1
	var number *arith.NumberError
	if _, err := arith.Storm(t.Context(), o, retry.JitterNone); !errors.As(err, &number) || number.Name != "clients" {
		t.Errorf("too many: %v", err)
	}
	if _, err := arith.Storm(ctx, o, retry.JitterFull); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTimeoutOfTheField(t *testing.T) {
	c, err := arith.Timeout(arith.DefaultTimeout())
	want := arith.TimeoutCost{RetriesADay: 40_000, TokensADay: 72_000_000, CallUSD: usd(t, "0.0054"), DayUSD: usd(t, "216"), MonthUSD: usd(t, "6480")}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	o := arith.TimeoutOptions{Tokens: 1, Price: usd(t, "0.075"), Requests: 3, Retries: 1, Days: 31}
	if c, err = arith.Timeout(o); err != nil || c.DayUSD != usd(t, "0.000000225") || c.MonthUSD != usd(t, "0.000006975") {
		t.Errorf("small: %+v, %v", c, err)
	}
	o = arith.TimeoutOptions{Tokens: 10_000_000, Price: usd(t, "1000000"), Requests: 1_000_000_000, Retries: 98, Days: 366}
	if c, err = arith.Timeout(o); err != nil || c.TokensADay != 98e16 || c.MonthUSD != usd(t, "980000000000").MulDiv(1_000_000*366, 1) {
		t.Errorf("the most: %+v, %v", c, err)
	}
}

func TestHedgeOfTheField(t *testing.T) {
	c, err := arith.Hedge(arith.DefaultHedge())
	want := arith.HedgeCost{Copies: 50_000, Generations: 1_050_000, ExtraTokens: 90_000_000, ExtraUSD: usd(t, "270"), TotalUSD: usd(t, "5670")}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	o := arith.DefaultHedge()
	o.Requests = 39
	if c, _ = arith.Hedge(o); c.Copies != 1 {
		t.Errorf("copies are rounded down: %+v", c)
	}
	o.Requests, o.Share = 1_000_000_000, arith.Whole
	if c, _ = arith.Hedge(o); c.Generations != 2_000_000_000 {
		t.Errorf("all: %+v", c)
	}
}

func TestShare(t *testing.T) {
	for in, want := range map[string]string{
		"5%": "5%", "0.05": "5%", "5 %": "5%", "1": "100%", "100%": "100%", "0": "0%", "0.125%": "0.125%", "0.000000000001": "0.0000000001%",
	} {
		if s, err := arith.ParseShare(in); err != nil || s.Percent() != want {
			t.Errorf("%s: %s, %v", in, s.Percent(), err)
		}
	}
	for _, in := range []string{"", "%", "-1%", "101%", "1.1", "x", "NaN", "0.0000000000001", "0.00000000001%", "5%%"} {
		if s, err := arith.ParseShare(in); err == nil {
			t.Errorf("%q: %v, want an error", in, s)
		}
	}
	if s, n := arith.Whole/3, uint64(math.MaxUint64); (s+1).Of(n) > n/2 || arith.Whole.Of(n) != n {
		t.Error("a share of very many")
	}
}

func TestLayers(t *testing.T) {
	for in, want := range map[string]uint64{"3x4": 12, "3×4": 12, "3": 3, "3*4*2": 24, "1x1": 1, "3 X 4": 12, "1000x1000x1000x1000x1000x1000": 1e18} {
		layers, err := arith.ParseFactors(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		out, err := arith.Layers(layers)
		if err != nil || out[len(out)-1].Calls != want {
			t.Errorf("%s: %+v, %v", in, out, err)
		}
	}
	sdk, err := arith.ParseLayer("sdk=3")
	if err != nil {
		t.Fatal(err)
	}
	out, err := arith.Layers([]arith.Layer{sdk, {Attempts: 4}})
	if err != nil || out[0] != (arith.LayerCalls{Name: "sdk", Attempts: 3, Calls: 3}) || out[1] != (arith.LayerCalls{Name: "layer 2", Attempts: 4, Calls: 12}) {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestWrongLayers(t *testing.T) {
	for _, in := range []string{"", "x", "3x", "0", "3x-4", "3.5", "1001", "99999999999999999999"} {
		if l, err := arith.ParseFactors(in); err == nil {
			t.Errorf("%q: %v, want an error", in, l)
		}
	}
	for _, in := range []string{"", "sdk", "=3", "sdk=", "sdk=0", "sdk=x"} {
		if l, err := arith.ParseLayer(in); err == nil {
			t.Errorf("%q: %v, want an error", in, l)
		}
	}
	for _, layers := range [][]arith.Layer{nil, {{}}, make([]arith.Layer, 17), many(7)} {
		if out, err := arith.Layers(layers); err == nil {
			t.Errorf("%v, want an error", out)
		}
	}
}

// many layers of the highest factor; seven are beyond 64 bits.
func many(n int) (out []arith.Layer) {
	for range n {
		out = append(out, arith.Layer{Attempts: arith.MaxFactor})
	}
	return out
}

// TestWrongNumbersAreNamed each by its option.
func TestWrongNumbersAreNamed(t *testing.T) {
	storm := func(f func(*arith.StormOptions)) error { o := arith.DefaultStorm(); f(&o); return o.Validate() }
	timeout := func(f func(*arith.TimeoutOptions)) error {
		o := arith.DefaultTimeout()
		f(&o)
		_, err := arith.Timeout(o)
		return err
	}
	hedge := func(f func(*arith.HedgeOptions)) error {
		o := arith.DefaultHedge()
		f(&o)
		_, err := arith.Hedge(o)
		return err
	}
	outage := func(f func(*arith.OutageOptions)) error { o := arith.DefaultOutage(); f(&o); return o.Validate() }
	dear := retrylens.PicoUSD(math.MaxUint64)
	for _, c := range []struct {
		name string
		err  error
	}{
		{"clients", storm(func(o *arith.StormOptions) { o.Clients = 0 })},
		{"capacity", storm(func(o *arith.StormOptions) { o.Capacity = -1 })},
		{"step", storm(func(o *arith.StormOptions) { o.Step = 0 })},
		{"base", storm(func(o *arith.StormOptions) { o.Base = 0 })},
		{"cap", storm(func(o *arith.StormOptions) { o.Cap = o.Base - 1 })},
		{"tokens", timeout(func(o *arith.TimeoutOptions) { o.Tokens = 0 })},
		{"price", timeout(func(o *arith.TimeoutOptions) { o.Price = dear })},
		{"requests", timeout(func(o *arith.TimeoutOptions) { o.Requests = 1e12 })},
		{"retries", timeout(func(o *arith.TimeoutOptions) { o.Retries = 99 })},
		{"days", timeout(func(o *arith.TimeoutOptions) { o.Days = 0 })},
		{"share", hedge(func(o *arith.HedgeOptions) { o.Share = arith.Whole + 1 })},
		{"attempts", outage(func(o *arith.OutageOptions) { o.Policy.Attempts = 0 })},
		{"cap", outage(func(o *arith.OutageOptions) { o.Policy.Base = time.Minute })},
		{"retry-budget", outage(func(o *arith.OutageOptions) { o.Limits.RetryBudget.Tokens = -1 })},
		{"rate", outage(func(o *arith.OutageOptions) { o.Rate = math.NaN() })},
		{"rate", outage(func(o *arith.OutageOptions) { o.Rate = 1e5 })},
		{"failure-rate", outage(func(o *arith.OutageOptions) { o.FailureRate = 1.01 })},
		{"failure", outage(func(o *arith.OutageOptions) { o.Failure = "cancelled" })},
		{"retry-after", outage(func(o *arith.OutageOptions) { o.RetryAfter = 1500 * time.Millisecond })},
		{"capacity", outage(func(o *arith.OutageOptions) { o.Capacity = -1 })},
	} {
		var number *arith.NumberError
		if !errors.As(c.err, &number) || number.Name != c.name || !strings.Contains(c.err.Error(), c.name+" must be ") {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}
