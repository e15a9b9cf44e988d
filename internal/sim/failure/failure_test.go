package failure_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/failure"
)

// TestEveryPageMeansWhatItsKindSays: a scenario relies on what the classifier makes
// of the bytes. Several classes where providers word it so.
func TestEveryPageMeansWhatItsKindSays(t *testing.T) {
	type classes []retrylens.ErrorClass
	want := map[failure.Kind]struct {
		classes   classes
		retryable bool
	}{
		failure.Overloaded:     {classes{retrylens.ClassOverloaded, retrylens.ClassUnavailable}, true},
		failure.ServerError:    {classes{retrylens.ClassServerError}, true},
		failure.RateLimited:    {classes{retrylens.ClassRateLimited}, true},
		failure.Quota:          {classes{retrylens.ClassQuotaExhausted}, false},
		failure.BadRequest:     {classes{retrylens.ClassInvalidRequest}, false},
		failure.BadGateway:     {classes{retrylens.ClassBadGateway}, true},
		failure.GatewayTimeout: {classes{retrylens.ClassGatewayTimeout}, true},
		failure.Reset:          {classes{retrylens.ClassTransportUnknown}, true},
		failure.Refused:        {classes{retrylens.ClassTransportPresend}, true},
		failure.TimedOut:       {classes{retrylens.ClassTimeout}, true},
		failure.Broken:         {classes{retrylens.ClassStreamInterrupted}, false},
		failure.InFlight:       {classes{retrylens.ClassConflict}, true},
		failure.GatewayShed:    {classes{retrylens.ClassUnavailable}, true},
	}
	for _, provider := range []string{"openai", "anthropic", "gemini", "bedrock", "somebody"} {
		for kind, w := range want {
			wait := time.Duration(0)
			if kind == failure.RateLimited || kind == failure.InFlight {
				wait = 2 * time.Second
			}
			r := failure.NewBook(provider, false).Reply(kind, wait)
			ok := false
			for _, c := range w.classes {
				ok = ok || r.Verdict.Class == c
			}
			if !ok || r.Verdict.Retryable != w.retryable || r.Asks() != (wait > 0) || wait > 0 && r.Verdict.Asked.Value != wait {
				t.Errorf("%s %s: %s retryable %v asks %v (%s)", provider, kind, r.Verdict.Class, r.Verdict.Retryable, r.Verdict.Asked, r.Verdict.Reason)
			}
		}
	}
}

func TestAReplyIsJudgedOnce(t *testing.T) {
	b := failure.NewBook("openai", true)
	a := b.Reply(failure.RateLimited, 1500*time.Millisecond)
	if a != b.Reply(failure.RateLimited, 2*time.Second) || a == b.Reply(failure.RateLimited, 3*time.Second) {
		t.Error("waits are whole seconds, rounded up")
	}
}

func TestAMixIsDrawnByItsWeights(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	mix := failure.Mix{{Kind: failure.Reset, Weight: 3}, {Kind: failure.Refused, Weight: 1}}
	got := map[failure.Kind]float64{}
	for range 10_000 {
		got[mix.Pick(rnd.Float64())]++
	}
	if math.Abs(got[failure.Reset]-7500) > 200 || len(got) != 2 {
		t.Errorf("%v", got)
	}
	if (failure.Mix{}).Pick(0.5) != failure.Overloaded {
		t.Error("a mix of nothing")
	}
}
