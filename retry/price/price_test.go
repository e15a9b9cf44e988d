package price_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/price"
)

func usd(s string) retrylens.Money {
	m, err := retrylens.ParseMoney(s)
	if err != nil {
		panic(err)
	}
	return m
}

func attempt(prompt, completion, cached, written int64) *retrylens.Attempt {
	return &retrylens.Attempt{Provider: "openai", Model: "m", PromptTokens: retrylens.Some(prompt), CompletionTokens: retrylens.Some(completion),
		CachedPromptTokens: retrylens.Some(cached), CacheWriteTokens: retrylens.Some(written)}
}

func TestCost(t *testing.T) {
	full := price.Price{Prompt: usd("0.15"), Completion: usd("0.6"), CachedPrompt: retrylens.Some(usd("0.075")), CacheWrite: retrylens.Some(usd("0.1875"))}
	book := price.Book{{"openai", "m"}: full, {"openai", "m-2026"}: {Prompt: usd("1"), Completion: usd("1")}}
	a := attempt(1000, 10, 600, 100)
	if got, ok := book.Cost(a); !ok || got != usd("0.00011475") {
		t.Errorf("%v, %t", got, ok) // (300·0.15 + 600·0.075 + 100·0.1875 + 10·0.6) / 10^6
	}
	a.ResponseModel = "m-2026"
	if got, _ := book.Cost(a); got != usd("0.00101") {
		t.Errorf("the price of the model that answered: %v", got)
	}
	for name, bad := range map[string]*retrylens.Attempt{
		"no price":       {Provider: "x", Model: "m", PromptTokens: retrylens.Some[int64](1), CompletionTokens: retrylens.Some[int64](1)},
		"half a usage":   {Provider: "openai", Model: "m", CompletionTokens: retrylens.Some[int64](1)},
		"impossible one": attempt(1, 1, 2, 0),
	} {
		if _, ok := book.Cost(bad); ok {
			t.Errorf("%s has a cost", name)
		}
	}
}

// TestExact: the cost is that of rational arithmetic, rounded once.
func TestExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1_000_000_000)
		pico := rapid.Uint64Range(0, 1<<50)
		p := price.Price{Prompt: retrylens.PicoUSD(pico.Draw(t, "prompt")), Completion: retrylens.PicoUSD(pico.Draw(t, "completion"))}
		a := attempt(n.Draw(t, "in"), n.Draw(t, "out"), 0, 0)
		got, ok := price.Book{{"openai", "m"}: p}.Cost(a)
		sum := new(big.Int).Add(new(big.Int).Mul(p.Prompt.Pico(), big.NewInt(a.PromptTokens.Value)), new(big.Int).Mul(p.Completion.Pico(), big.NewInt(a.CompletionTokens.Value)))
		diff := new(big.Int).Sub(new(big.Int).Mul(got.Pico(), big.NewInt(1_000_000)), sum)
		if !ok || diff.CmpAbs(big.NewInt(500_000)) > 0 {
			t.Fatalf("%v is %v millionths of a pico-dollar off", got, diff)
		}
	})
}

func ExampleBook() {
	prompt, _ := retrylens.ParseMoney("0.15")
	completion, _ := retrylens.ParseMoney("0.60")
	book := price.Book{{Provider: "openai", Model: "gpt-5-mini"}: {Prompt: prompt, Completion: completion}}
	cost, ok := book.Cost(&retrylens.Attempt{Provider: "openai", Model: "gpt-5-mini", PromptTokens: retrylens.Some[int64](1000), CompletionTokens: retrylens.Some[int64](100)})
	fmt.Println(cost, ok)
	// Output: 0.000210000000 true
}
