package price

import (
	"github.com/retrylens/retrylens"
)

// Price of one model, in US dollars per million tokens. Cached and written prompt
// tokens without a price of their own cost what the prompt does.
type Price struct {
	Prompt, Completion       retrylens.Money
	CachedPrompt, CacheWrite retrylens.Opt[retrylens.Money]
}

// Model names what a price is for.
type Model struct{ Provider, Model string }

// Book is a price list. It must not be changed while it is in use.
type Book map[Model]Price

// Cost of an attempt by its token figures, rounded half to even to a pico-dollar (a
// price of at most six decimals gives whole ones). It is false for a model without a
// price, by the name in the response or else in the request, and for an attempt whose
// prompt and completion tokens are not both known: half a bill is no bill.
func (b Book) Cost(a *retrylens.Attempt) (retrylens.Money, bool) {
	p, ok := b[Model{a.Provider, a.ResponseModel}]
	if !ok {
		p, ok = b[Model{a.Provider, a.Model}]
	}
	if !ok || !a.PromptTokens.Set || !a.CompletionTokens.Set {
		return retrylens.Money{}, false
	}
	cached, written := uint64(max(0, a.CachedPromptTokens.Value)), uint64(max(0, a.CacheWriteTokens.Value))
	plain := uint64(max(0, a.PromptTokens.Value))
	if cached+written > plain {
		return retrylens.Money{}, false
	}
	plain -= cached + written
	sum := times(p.Prompt, plain).Add(times(p.CachedPrompt.Or(p.Prompt), cached)).
		Add(times(p.CacheWrite.Or(p.Prompt), written)).Add(times(p.Completion, uint64(max(0, a.CompletionTokens.Value))))
	return sum.Div(perMillion), true
}

const perMillion = 1_000_000

func times(m retrylens.Money, n uint64) retrylens.Money { return m.MulDiv(n, 1) }
