package metrics

import (
	"math/big"

	"github.com/retrylens/retrylens"
)

// Figures are the derived figures of a row that do not add up. A ratio with
// denominator 0 is not set.
type Figures struct {
	RetryRatio, RetryRate, Amplification, RetrySuccessRatio, RescueRatio retrylens.Opt[float64]
	ErrorRatio, AttemptErrorRatio, OrphanedCostRatio, LayerFactor        retrylens.Opt[float64]
	CostPerRescueUSD                                                     retrylens.Opt[retrylens.Money]
}

// Figures derives the ratios from the counters.
func (c *Counters) Figures() Figures {
	return Figures{
		RetryRatio:        ratio(c.Attempts, c.Operations),
		RetryRate:         ratio(c.Retries, c.Attempts),
		Amplification:     ratio(c.UpstreamCalls, c.Operations),
		RetrySuccessRatio: ratio(c.RetrySuccesses, c.Retries),
		RescueRatio:       ratio(c.Rescued, c.RetriedOperations),
		ErrorRatio:        ratio(c.Failed, c.Succeeded+c.Failed),
		AttemptErrorRatio: ratio(c.FailedAttempts, c.Attempts),
		OrphanedCostRatio: moneyRatio(c.OrphanedCostUSD, c.BilledCostUSD),
		LayerFactor:       ratio(c.LayerUpstreamCalls, c.LayerAttempts),
		CostPerRescueUSD:  moneyPer(c.RescueCostUSD, c.Rescued),
	}
}

func ratio(num, den uint64) retrylens.Opt[float64] {
	if den == 0 {
		return retrylens.Opt[float64]{}
	}
	return retrylens.Some(float64(num) / float64(den))
}

// moneyRatio is the float nearest to the exact quotient.
func moneyRatio(num, den retrylens.Money) retrylens.Opt[float64] {
	if den.IsZero() {
		return retrylens.Opt[float64]{}
	}
	f, _ := new(big.Rat).SetFrac(num.Pico(), den.Pico()).Float64()
	return retrylens.Some(f)
}

// moneyPer divides money by a count, rounded half-even to 12 decimals.
func moneyPer(m retrylens.Money, n uint64) retrylens.Opt[retrylens.Money] {
	if n == 0 {
		return retrylens.Opt[retrylens.Money]{}
	}
	return retrylens.Some(m.Div(n))
}
