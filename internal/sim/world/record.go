package world

import (
	"time"

	"github.com/retrylens/retrylens"
)

// describe fills in what is known of an attempt before its end. The record is written
// over by the next one.
func (op *operation) describe() *retrylens.Attempt {
	r, in, w := op.run, op.intent, op.intent.work
	a := &r.record
	*a = retrylens.Attempt{
		Tenant: w.Tenant, LogicalID: in.id, OperationStartedAt: r.when(in.startedAt), Hop: op.hop, Attempt: op.at.Number, Cause: op.at.Cause,
		Service: w.Service, Environment: w.Environment, Operation: w.Operation,
		Provider: w.Provider, Model: w.Model, Endpoint: w.Endpoint, Stream: w.Stream,
		IdempotencyKey: in.keyText, StartedAt: r.when(op.sentAt),
	}
	return a
}

// when is a moment of virtual time, cut to the millisecond.
func (r *run) when(at time.Duration) time.Time {
	return r.world.Start.Add(at.Truncate(time.Millisecond))
}

// answered fills in what came back by now.
func (op *operation) answered(a *retrylens.Attempt, r *reply) {
	now := op.run.when(op.run.events.Now())
	a.DurationMS = retrylens.Some(now.Sub(a.StartedAt).Milliseconds())
	if r.ttfb >= 0 {
		a.TTFBMS = retrylens.Some(min(r.ttfb.Milliseconds(), a.DurationMS.Value))
	}
	a.ProviderRequestID, a.ServedBy = op.run.requestID(r.requestID), r.servedBy
	if r.calls != 1 {
		a.UpstreamCalls = retrylens.Some(uint16(min(r.calls, 1<<16-1))) //nolint:gosec // bounded
	}
	bill(a, op.intent.work.model, r.usage)
	if r.failure == nil {
		a.Status, a.ResponseModel = retrylens.Some[uint16](200), op.intent.work.Model
		return
	}
	a.Status = retrylens.Some(r.failure.Status)
	a.ProviderErrorType = r.failure.Verdict.ProviderErrorType
	if r.failure.Verdict.PreSend {
		a.UpstreamCalls = retrylens.Opt[uint16]{}
	}
}

// bill fills in usage and cost.
func bill(a *retrylens.Attempt, m *model, u usage) {
	if !u.known {
		return
	}
	a.PromptTokens, a.CompletionTokens = retrylens.Some(u.prompt), retrylens.Some(u.completion)
	a.CostUSD, a.CostSource = retrylens.Some(m.cost(u.prompt, u.completion)), retrylens.CostPriceBook
	if u.partial {
		a.UsageSource = retrylens.UsagePartial
	}
}
