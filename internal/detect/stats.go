package detect

import (
	"math"
	"slices"
)

// maxScore bounds scores: beyond it nothing more is learned, and the tails underflow.
const maxScore = 12

// poissonScore is the standard deviations of a normal distribution that are as unlikely
// as k or more events where mean are expected; 0 where that is no surprise.
func poissonScore(k, mean float64) float64 {
	k = math.Floor(k)
	if k <= mean || k < 1 {
		return 0
	}
	if mean <= 0 {
		return maxScore
	}
	lg, _ := math.Lgamma(k + 1)
	term := math.Exp(k*math.Log(mean) - mean - lg)
	sum := term
	for i := k + 1; term > sum*1e-9; i++ {
		term *= mean / i
		sum += term
	}
	return scoreOf(sum)
}

// binomialScore is that of k or more hits in n trials of probability p.
func binomialScore(k, n int64, p float64) float64 {
	if k < 1 || float64(k) <= p*float64(n) {
		return 0
	}
	if p <= 0 {
		return maxScore
	}
	fk, fn := float64(k), float64(n)
	a, _ := math.Lgamma(fn + 1)
	b, _ := math.Lgamma(fk + 1)
	c, _ := math.Lgamma(fn - fk + 1)
	term := math.Exp(a - b - c + fk*math.Log(p) + (fn-fk)*math.Log1p(-min(p, 1-1e-12)))
	sum := term
	for i := fk; i < fn && term > sum*1e-9; i++ {
		term *= (fn - i) / (i + 1) * p / (1 - p)
		sum += term
	}
	return scoreOf(sum)
}

// scoreOf a tail's probability.
func scoreOf(p float64) float64 {
	if !(p > 1e-32) {
		return maxScore
	}
	return min(maxScore, max(0, math.Sqrt2*math.Erfcinv(2*min(p, 0.5))))
}

// madScale makes a median absolute deviation a standard deviation.
const madScale = 1.4826

// median of values, which it sorts; 0 without any.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// ratio is 0 of nothing.
func ratio(num, den int64) float64 {
	if den == 0 {
		return 0
	}
	return float64(num) / float64(den)
}
