package sim

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens/internal/sim/world"
	"github.com/retrylens/retrylens/retry"
)

const (
	chat     = "/v1/chat/completions"
	messages = "/v1/messages"
	generate = "/v1beta/models/gemini-2.5-flash:generateContent"
)

// learnsUsage is the share of given-up requests whose usage is learned by draining.
const learnsUsage = 0.5

// interactive is the policy of calls that somebody waits for, its timeout measured:
// what a good call's head takes, with headroom.
func interactive() retry.Policy {
	p := retry.Interactive()
	p.AttemptTimeout = 10 * time.Second
	return p
}

// batch is the policy of calls that nobody waits for, its timeout measured likewise.
func batch() retry.Policy {
	p := retry.Batch()
	p.AttemptTimeout = 30 * time.Second
	return p
}

// unguarded is a plain retry loop: no budget, no breaker, no bulkhead to speak of.
func unguarded() retry.Limits {
	l := retry.DefaultLimits()
	l.RetryBudget.Tokens, l.RetryBudget.PerSuccess = 1e6, 1
	l.Breaker.MinSamples = 1e9
	l.Bulkhead.Limit = 1e6
	return l
}

// talk is a stream of conversation, code is short answers about long prompts.
func talk(l world.Workload, share float64) world.Workload {
	l.Stream, l.Policy, l.Prompt, l.Completion = true, interactive(), world.ConversationPrompt, world.ConversationCompletion
	return filled(l, share)
}

func code(l world.Workload, share float64) world.Workload {
	l.Policy, l.Prompt, l.Completion = batch(), world.CodePrompt, world.CodeCompletion
	return filled(l, share)
}

func summary(l world.Workload, share float64) world.Workload {
	l.Policy, l.Prompt, l.Completion = batch(), world.ConversationPrompt, world.ConversationCompletion
	return filled(l, share)
}

func filled(l world.Workload, share float64) world.Workload {
	l.Environment, l.Keyed, l.PerMinute, l.LearnsUsage, l.Limits = "prod", true, share, learnsUsage, retry.DefaultLimits()
	return l
}

// mixed is the usual fleet: three quarters of it call openai.
func mixed() []world.Workload {
	plan := talk(world.Workload{Tenant: "globex", Service: "agent", Operation: "plan", Provider: "anthropic", Model: "claude-sonnet-4-5", Endpoint: messages}, 5)
	plan.Environment, plan.Keyed = "staging", false
	return []world.Workload{
		talk(world.Workload{Tenant: "acme", Service: "assistant", Operation: "chat", Provider: "openai", Model: "gpt-4o", Endpoint: chat}, 40),
		code(world.Workload{Tenant: "acme", Service: "code-review", Operation: "review", Provider: "openai", Model: "gpt-4o-mini", Endpoint: chat}, 20),
		code(world.Workload{Tenant: "globex", Service: "search", Operation: "rerank", Provider: "openai", Model: "gpt-4o-mini", Endpoint: chat}, 15),
		summary(world.Workload{Tenant: "globex", Service: "support", Operation: "summarise", Provider: "anthropic", Model: "claude-haiku-4-5", Endpoint: messages}, 20),
		plan,
	}
}

// three providers share the work of one service evenly.
func three() []world.Workload {
	l := func(provider, model, endpoint string) world.Workload {
		return summary(world.Workload{Tenant: "acme", Service: "router", Operation: "summarise", Provider: provider, Model: model, Endpoint: endpoint}, 1)
	}
	return []world.Workload{l("openai", "gpt-4o", chat), l("anthropic", "claude-haiku-4-5", messages), l("gemini", "gemini-2.5-flash", generate)}
}

// pair is the same work for two providers.
func pair() []world.Workload { return three()[:2] }

// single is one workload of one provider.
func single() []world.Workload {
	return []world.Workload{summary(world.Workload{
		Tenant: "acme", Service: "reports", Operation: "summarise", Provider: "openai", Model: "gpt-4o", Endpoint: chat,
	}, 1)}
}

// dialects of the providers of many series.
var dialects = [...]string{"openai", "anthropic", "gemini", "bedrock"}

// SeriesName is the provider and the model of a series, from 0.
func SeriesName(i int) (provider, model string) {
	return dialects[i%len(dialects)], fmt.Sprintf("model-%03d", i)
}

// many series of the same rate, each a workload of its own.
func many(n int) []world.Workload {
	out := make([]world.Workload, n)
	for i := range out {
		provider, model := SeriesName(i)
		out[i] = summary(world.Workload{
			Tenant: "acme", Service: fmt.Sprintf("service-%03d", i), Operation: "summarise", Provider: provider, Model: model, Endpoint: chat,
		}, 1)
	}
	return out
}
