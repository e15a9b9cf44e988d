package usage

import (
	"strings"

	"github.com/retrylens/retrylens"
)

// Tokens are the figures of the attempt record: Prompt holds all input tokens, cached
// ones included, Completion all output tokens, reasoning included, whatever the
// provider counts in or out.
type Tokens struct {
	Prompt, Completion, CachedPrompt, CacheWrite, Reasoning retrylens.Opt[int64]
}

// Known tells whether any figure was reported.
func (t Tokens) Known() bool {
	return t.Prompt.Set || t.Completion.Set || t.CachedPrompt.Set || t.CacheWrite.Set || t.Reasoning.Set
}

// counts are the figures as they stand in bodies, last one wins.
type counts struct {
	f    [nFields]int64
	set  [nFields]bool
	cost [24]byte // OpenRouter's usage.cost, USD
	nc   int
}

type field uint8

const (
	fInput       field     = iota // input without its kind told: see cacheRead and cacheWrite
	fPrompt                       // all of the input: OpenAI's name, whoever uses it
	fOutput                       // output, reasoning included
	fCached                       // part of the input
	fCacheRead                    // beside the input (Anthropic, Bedrock)
	fWrite                        // part of the input
	fCacheWrite                   // beside the input (Anthropic, Bedrock)
	fReasoning                    // part of the output
	fCandidates                   // Gemini: output, thoughts in it or not
	fThoughts                     // Gemini
	fToolPrompt                   // Gemini: beside the prompt
	fTotal                        // Gemini, only to tell whether candidates hold the thoughts
	fBilledIn                     // Cohere: billed units, where tokens are not told
	fBilledOut                    //
	nFields                       //
	fNone        = nFields        //
	fCost        = nFields + 1
	maxTokenText = 20
)

// fieldOf finds a member of a usage object.
func fieldOf(key []byte) field {
	switch string(key) {
	case "prompt_tokens":
		return fPrompt
	case "input_tokens", "promptTokenCount", "inputTokens", "inputTokenCount", "prompt_token_count", "inputTextTokenCount", "prompt_eval_count":
		return fInput
	case "completion_tokens", "output_tokens", "outputTokens", "outputTokenCount", "generation_token_count", "tokenCount", "eval_count":
		return fOutput
	case "cached_tokens", "cachedContentTokenCount", "prompt_cache_hit_tokens":
		return fCached
	case "cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount":
		return fCacheRead
	case "cache_write_tokens":
		return fWrite
	case "cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount":
		return fCacheWrite
	case "reasoning_tokens", "thinking_tokens":
		return fReasoning
	case "candidatesTokenCount":
		return fCandidates
	case "thoughtsTokenCount":
		return fThoughts
	case "toolUsePromptTokenCount":
		return fToolPrompt
	case "totalTokenCount":
		return fTotal
	case "cost":
		return fCost
	}
	return fNone
}

// put keeps a figure. Streams report cumulative figures, so the last one counts; a 0
// after a figure of the input is a provider that no longer tells it.
func (c *counts) put(f field, text []byte) {
	if f == fCost {
		c.nc = copy(c.cost[:], text)
		if len(text) > len(c.cost) {
			c.nc = 0
		}
		return
	}
	v, ok := parseCount(text)
	if !ok || v == 0 && c.f[f] > 0 && f != fOutput && f != fCandidates {
		return
	}
	c.f[f], c.set[f] = v, true
}

// parseCount reads a whole number of tokens; Cohere writes it with a fraction of 0.
func parseCount(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > maxTokenText {
		return 0, false
	}
	var v int64
	for i, ch := range text {
		if ch == '.' && i > 0 {
			return v, strings.Trim(string(text[i+1:]), "0") == "" && i+1 < len(text)
		}
		if ch < '0' || ch > '9' {
			return 0, false
		}
		if v = v*10 + int64(ch-'0'); v > retrylens.MaxTokens {
			return 0, false
		}
	}
	return v, true
}

// tokens does the arithmetic of the providers: Anthropic and Bedrock count the cache
// beside the input, Gemini tools beside the prompt and thoughts mostly beside the
// candidates, OpenAI everything inside.
func (c *counts) tokens() Tokens {
	var t Tokens
	t.Prompt = c.input()
	t.Completion = c.output()
	t.CachedPrompt = c.first(fCacheRead, fCached)
	t.CacheWrite = c.first(fCacheWrite, fWrite)
	t.Reasoning = c.first(fReasoning, fThoughts)
	if !t.Prompt.Set {
		t.Prompt = c.first(fBilledIn)
	}
	if !t.Completion.Set {
		t.Completion = c.first(fBilledOut)
	}
	t.fit()
	return t
}

// input: gateways that speak OpenAI's format for Anthropic's models (LiteLLM) report a
// total and, under Anthropic's names, parts of it; a total that is less than its parts is none.
func (c *counts) input() retrylens.Opt[int64] {
	if c.set[fPrompt] && c.f[fPrompt] >= c.f[fCacheRead]+c.f[fCacheWrite] {
		return c.first(fPrompt)
	}
	return c.sum(fPrompt, fInput, fCacheRead, fCacheWrite, fToolPrompt)
}

func (c *counts) output() retrylens.Opt[int64] {
	if c.set[fOutput] {
		return c.first(fOutput)
	}
	if c.set[fThoughts] && c.set[fTotal] && c.set[fCandidates] {
		in := c.f[fInput] + c.f[fToolPrompt]
		if c.f[fThoughts] <= c.f[fCandidates] && (in+c.f[fCandidates] == c.f[fTotal] || c.f[fInput]+c.f[fCandidates] == c.f[fTotal]) {
			return c.first(fCandidates) // the thoughts are in it
		}
	}
	return c.sum(fCandidates, fThoughts)
}

func (c *counts) first(fields ...field) (o retrylens.Opt[int64]) {
	for _, f := range fields {
		if c.set[f] {
			return retrylens.Some(c.f[f])
		}
	}
	return o
}

func (c *counts) sum(fields ...field) (o retrylens.Opt[int64]) {
	for _, f := range fields {
		if c.set[f] {
			o.Value, o.Set = o.Value+c.f[f], true
		}
	}
	if o.Value > retrylens.MaxTokens {
		return retrylens.Opt[int64]{}
	}
	return o
}

// fit drops parts that exceed their total: a record with them would be refused.
func (t *Tokens) fit() {
	if t.Prompt.Set && t.CachedPrompt.Value+t.CacheWrite.Value > t.Prompt.Value {
		t.CachedPrompt, t.CacheWrite = retrylens.Opt[int64]{}, retrylens.Opt[int64]{}
	}
	if t.Completion.Set && t.Reasoning.Value > t.Completion.Value {
		t.Reasoning = retrylens.Opt[int64]{}
	}
}

// costUSD is what the provider itself says that the call cost.
func (c *counts) costUSD() (o retrylens.Opt[retrylens.Money]) {
	if c.nc == 0 {
		return o
	}
	m, err := retrylens.ParseMoney(c.cost[:c.nc])
	if err != nil {
		return o
	}
	return retrylens.Some(m)
}
