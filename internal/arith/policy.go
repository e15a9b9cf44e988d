package arith

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
)

// provider is the one that all call.
const provider = "provider"

// failures are those a simulated provider knows: the status it answers with, 0 for
// no answer within the attempt timeout.
var failures = []struct {
	class  retrylens.ErrorClass
	status int
}{
	{retrylens.ClassUnavailable, http.StatusServiceUnavailable},
	{retrylens.ClassRateLimited, http.StatusTooManyRequests},
	{retrylens.ClassOverloaded, 529},
	{retrylens.ClassServerError, http.StatusInternalServerError},
	{retrylens.ClassBadGateway, http.StatusBadGateway},
	{retrylens.ClassGatewayTimeout, http.StatusGatewayTimeout},
	{retrylens.ClassTimeout, 0},
}

// FailureNames are the classes that an outage may fail with.
func FailureNames() []string {
	var out []string
	for _, f := range failures {
		out = append(out, string(f.class))
	}
	return out
}

// OutageOptions describe operations that one process starts at one provider, and an
// outage of it. The policy is the engine's own, on virtual time: budget, breaker and
// bulkhead included.
//
// Operations start at random times at Rate in the mean. A good call takes
// ServiceTime, a failed one FailTime; a call that is not answered within the attempt
// timeout fails at that time, and is generated and billed all the same.
type OutageOptions struct {
	Policy retry.Policy
	Limits retry.Limits

	Rate     float64       // operations a second
	Duration time.Duration // in which operations start
	Unkeyed  bool          // no idempotency key

	OutageAt    time.Duration
	Outage      time.Duration
	FailureRate float64              // of the calls that start in the outage
	Failure     retrylens.ErrorClass // one of FailureNames
	RetryAfter  time.Duration        // asked by failures, in whole seconds; 0 = none. See Variants

	ServiceTime time.Duration
	FailTime    time.Duration
	Capacity    int // calls at once, those beyond fail as in the outage; 0 = any number

	Tokens uint64          // of one generation
	Price  retrylens.Money // USD per million tokens
	Seed   uint64
}

// DefaultOutage is a minute in which four of ten calls fail.
func DefaultOutage() OutageOptions {
	return OutageOptions{
		Policy: retry.Interactive(), Limits: retry.DefaultLimits(),
		Rate: 2, Duration: 5 * time.Minute, OutageAt: time.Minute, Outage: time.Minute,
		FailureRate: 0.4, Failure: retrylens.ClassUnavailable, RetryAfter: 30 * time.Second,
		ServiceTime: time.Second, FailTime: 100 * time.Millisecond,
		Tokens: 1800, Price: retrylens.PicoUSD(3_000_000_000_000), Seed: 1,
	}
}

// maxOperations is how many one simulation may start, in the mean.
const maxOperations = 1_000_000

// Validate returns a *NumberError that names the first wrong one.
func (o OutageOptions) Validate() error {
	err := first(o.validatePolicy(),
		within("rate", o.Rate, 0.001, 100_000),
		within("duration", o.Duration, time.Second, 24*time.Hour),
		within("outage-at", o.OutageAt, 0, 24*time.Hour),
		within("outage", o.Outage, 0, 24*time.Hour),
		within("failure-rate", o.FailureRate, 0, 1),
		within("retry-after", o.RetryAfter, 0, 24*time.Hour),
		within("service-time", o.ServiceTime, time.Millisecond, time.Hour),
		within("fail-time", o.FailTime, time.Millisecond, time.Hour),
		within("capacity", o.Capacity, 0, 1_000_000),
		within("tokens", o.Tokens, 1, maxTokens),
		priceWithin(o.Price))
	switch {
	case err != nil:
		return err
	case o.RetryAfter%time.Second != 0:
		return &NumberError{"retry-after", fmt.Sprintf("whole seconds, got %v", o.RetryAfter)}
	case o.Rate*o.Duration.Seconds() > maxOperations:
		return &NumberError{"rate", fmt.Sprintf("at most %d operations in the duration, got %.0f", maxOperations, o.Rate*o.Duration.Seconds())}
	}
	_, err = o.verdict(0)
	return err
}

// validatePolicy under the names of options; knobs without one are the engine's to
// judge.
func (o OutageOptions) validatePolicy() error {
	err := first(
		within("attempts", o.Policy.Attempts, 1, 99),
		within("base", o.Policy.Base, time.Millisecond, time.Hour),
		within("cap", o.Policy.Cap, o.Policy.Base, time.Hour),
		within("wall-clock-budget", o.Policy.WallClockBudget, time.Millisecond, 24*time.Hour),
		within("attempt-timeout", o.Policy.AttemptTimeout, time.Millisecond, time.Hour),
		within("retry-budget", o.Limits.RetryBudget.Tokens, 0, 1_000_000),
		within("bulkhead", o.Limits.Bulkhead.Limit, 1, 1_000_000),
	)
	return first(err, o.Policy.Validate(), o.Limits.Validate())
}

// verdict is the classifier's on a failure that asks for a wait.
func (o OutageOptions) verdict(asked time.Duration) (classify.Verdict, error) {
	for _, f := range failures {
		if f.class != o.Failure {
			continue
		}
		if f.status == 0 {
			return timedOut(), nil
		}
		h := http.Header{}
		if asked > 0 {
			h.Set("Retry-After", strconv.Itoa(int(asked/time.Second)))
		}
		return classify.New().Classify(&classify.Failure{Provider: provider, Status: f.status, Header: h, HeadersReceived: true}), nil
	}
	return classify.Verdict{}, &NumberError{"failure", fmt.Sprintf("one of %v, got %.40q", FailureNames(), string(o.Failure))}
}

func timedOut() classify.Verdict {
	return classify.New().Classify(&classify.Failure{Provider: provider, Err: retry.ErrAttemptTimeout})
}

// Variant is one way to run the same policy.
type Variant struct {
	Jitter retry.Jitter
	Asked  bool                 // failures ask for OutageOptions.RetryAfter
	Mode   retry.RetryAfterMode // what becomes of it
}

// Variants are each jitter where nobody asks for a wait, then, with full jitter,
// clamp against obey where failures ask for one; a timeout asks for nothing.
func (o OutageOptions) Variants(jitters []retry.Jitter) []Variant {
	var out []Variant
	for _, j := range jitters {
		out = append(out, Variant{Jitter: j})
	}
	if o.RetryAfter > 0 && o.Failure != retrylens.ClassTimeout {
		out = append(out, Variant{Asked: true, Mode: retry.Clamp}, Variant{Asked: true, Mode: retry.Obey})
	}
	return out
}

// OutageResult is what came of one variant.
type OutageResult struct {
	Variant
	Operations, Delivered, Failed int
	StopReasons                   map[retrylens.StopReason]int // of the failed ones
	Calls                         int                          // sent to the provider
	PeakCalls                     int                          // in a second that begins on the second
	Amplification                 float64                      // calls / operations; NaN without operations
	P50, P99                      time.Duration                // from start to answer, of the delivered ones; 0 without any
	LastAt                        time.Duration                // when the last operation ended
	Tokens, OrphanedTokens        uint64                       // bought; of them those of calls that timed out
	USD                           retrylens.Money
}

// Outage plays one variant. Errors are those of ctx and of Validate.
func Outage(ctx context.Context, o OutageOptions, v Variant) (OutageResult, error) {
	if err := o.Validate(); err != nil {
		return OutageResult{}, err
	}
	w, err := newWorld(o, v)
	if err != nil {
		return OutageResult{}, err
	}
	if err := w.run(ctx); err != nil {
		return OutageResult{}, err
	}
	return w.result(), nil
}
