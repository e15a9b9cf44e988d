package world

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// Quantiles are the 10th, 50th, 90th and 99th percentile of a token count.
type Quantiles [4]float64

// Figures of the Azure LLM inference trace 2023 (AzurePublicDataset; Patel et al.,
// Splitwise, ISCA 2024; CC BY 4.0).
var (
	CodePrompt             = Quantiles{147, 1469, 5194, 7436}
	CodeCompletion         = Quantiles{7, 13, 55, 252}
	ConversationPrompt     = Quantiles{207, 1020, 2735, 4142}
	ConversationCompletion = Quantiles{54, 129, 424, 601}
)

// draw returns a count whose distribution has the percentiles: between them its
// logarithm is linear, beyond them it goes to a quarter and to one and a half.
func (q *Quantiles) draw(r *rand.Rand) int64 {
	shares := [...]float64{0, 0.10, 0.50, 0.90, 0.99, 1}
	values := [...]float64{q[0] / 4, q[0], q[1], q[2], q[3], q[3] * 1.5}
	u := r.Float64()
	i := 1
	for u > shares[i] {
		i++
	}
	part := (u - shares[i-1]) / (shares[i] - shares[i-1])
	return int64(math.Round(values[i-1] * math.Pow(values[i]/values[i-1], part)))
}

// model is how fast a model is and what it costs: US dollars a million tokens are
// as many millions of pico-dollars a token.
type model struct {
	firstMS                      float64 // to read a prompt of nothing
	promptMS                     float64 // a token
	tokenMS                      float64 // a token generated
	promptPrice, completionPrice uint64
	spread                       float64 // of the logarithm of the speed
}

// models have prices near to those of their day; a price book is not what they are.
var models = map[string]model{
	"gpt-4o":            {180, 0.06, 11, 2_500_000, 10_000_000, 0.25},
	"gpt-4o-mini":       {150, 0.04, 9, 150_000, 600_000, 0.25},
	"claude-haiku-4-5":  {200, 0.05, 9, 1_000_000, 5_000_000, 0.25},
	"claude-sonnet-4-5": {300, 0.08, 14, 3_000_000, 15_000_000, 0.3},
	"gemini-2.5-flash":  {160, 0.04, 7, 300_000, 2_500_000, 0.25},
}

var otherModel = model{200, 0.06, 11, 1_000_000, 4_000_000, 0.25}

func modelOf(name string) model {
	if m, ok := models[name]; ok {
		return m
	}
	return otherModel
}

// times draws how long an answer takes: the prompt is read, then every token takes
// its time.
func (m *model) times(r *rand.Rand, q *request, factor float64) (first, whole time.Duration) {
	speed := factor * float64(time.Millisecond) * math.Exp(m.spread*r.NormFloat64())
	read := (m.firstMS + m.promptMS*float64(q.prompt)) * speed
	return bounded(read), bounded(read + m.tokenMS*float64(q.completion)*speed)
}

// bounded keeps a time within what a record holds.
func bounded(ns float64) time.Duration { return time.Duration(min(ns, float64(1000*time.Hour))) }

func (m *model) cost(prompt, completion int64) retrylens.Money {
	return retrylens.PicoUSD(uint64(prompt) * m.promptPrice).Add(retrylens.PicoUSD(uint64(completion) * m.completionPrice))
}

// meanService of a workload's answers, by drawing some: what a provider's capacity
// is made for.
func (l *Workload) meanService() time.Duration {
	const draws = 400
	m, r := modelOf(l.Model), rand.New(rand.NewPCG(1, 1))
	sum := time.Duration(0)
	for range draws {
		q := request{prompt: l.Prompt.draw(r), completion: l.Completion.draw(r)}
		_, whole := m.times(r, &q, 1)
		sum += whole
	}
	return sum / draws
}
