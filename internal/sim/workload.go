package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// workload is one kind of operation of the fleet.
type workload struct {
	tenant, service, environment, operation string
	provider, model, endpoint               string
	stream, keyed                           bool
	weight                                  int
	prompt, completion                      quantiles
}

// fleet is who calls what. Three quarters of it call the provider that the default fault
// strikes.
func fleet() []workload {
	chat, code := "/v1/chat/completions", "/v1/messages"
	return []workload{
		{"acme", "assistant", "prod", "chat", "openai", "gpt-4o", chat, true, true, 40, conversationPrompt, conversationCompletion},
		{"acme", "code-review", "prod", "review", "openai", "gpt-4o-mini", chat, false, true, 20, codePrompt, codeCompletion},
		{"globex", "search", "prod", "rerank", "openai", "gpt-4o-mini", chat, false, true, 15, codePrompt, codeCompletion},
		{"globex", "support", "prod", "summarise", "anthropic", "claude-haiku-4-5", code, false, true, 20, conversationPrompt, conversationCompletion},
		{"globex", "agent", "staging", "plan", "anthropic", "claude-sonnet-4-5", code, true, false, 5, conversationPrompt, conversationCompletion},
	}
}

func pick(r *rand.Rand, from []workload) *workload {
	total := 0
	for i := range from {
		total += from[i].weight
	}
	n := r.IntN(total)
	for i := range from {
		if n -= from[i].weight; n < 0 {
			return &from[i]
		}
	}
	return &from[len(from)-1]
}

// quantiles are the 10th, 50th, 90th and 99th percentile of a token count.
type quantiles [4]float64

// Figures of the Azure LLM inference trace 2023 (AzurePublicDataset; Patel et al.,
// Splitwise, ISCA 2024; CC BY 4.0).
var (
	codePrompt             = quantiles{147, 1469, 5194, 7436}
	codeCompletion         = quantiles{7, 13, 55, 252}
	conversationPrompt     = quantiles{207, 1020, 2735, 4142}
	conversationCompletion = quantiles{54, 129, 424, 601}
)

// draw returns a count whose distribution has the percentiles: between them its
// logarithm is linear, beyond them it goes to a quarter and to one and a half.
func (q quantiles) draw(r *rand.Rand) int64 {
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

// arrivals gives one operation after another.
type arrivals interface {
	// next returns when the next operation starts, what it is and how many tokens
	// it takes; false when there are no more.
	next() (time.Duration, *workload, Arrival, bool)
}

// steady are arrivals at random moments with a mean rate.
type steady struct {
	rand     *rand.Rand
	fleet    []workload
	gap      time.Duration // mean
	duration time.Duration
	now      time.Duration
}

func (s *steady) next() (time.Duration, *workload, Arrival, bool) {
	s.now += time.Duration(s.rand.ExpFloat64() * float64(s.gap))
	if s.now >= s.duration {
		return 0, nil, Arrival{}, false
	}
	w := pick(s.rand, s.fleet)
	return s.now, w, Arrival{s.now, w.prompt.draw(s.rand), w.completion.draw(s.rand)}, true
}

// replayed are the arrivals of a trace.
type replayed struct {
	rand  *rand.Rand
	fleet []workload
	left  []Arrival
}

func (p *replayed) next() (time.Duration, *workload, Arrival, bool) {
	if len(p.left) == 0 {
		return 0, nil, Arrival{}, false
	}
	a := p.left[0]
	p.left = p.left[1:]
	return a.At, pick(p.rand, p.fleet), a, true
}

// price is what a token costs in pico-dollars. US dollars a million tokens are
// as many millions of them.
type price struct{ prompt, completion uint64 }

// prices are near to those of the models when this was written; a price book is
// not what they are.
var prices = map[string]price{
	"gpt-4o":            {2_500_000, 10_000_000},
	"gpt-4o-mini":       {150_000, 600_000},
	"claude-haiku-4-5":  {1_000_000, 5_000_000},
	"claude-sonnet-4-5": {3_000_000, 15_000_000},
}

func cost(model string, prompt, completion int64) retrylens.Money {
	p := prices[model]
	return retrylens.PicoUSD(uint64(prompt) * p.prompt).Add(retrylens.PicoUSD(uint64(completion) * p.completion))
}
