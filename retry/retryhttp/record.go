package retryhttp

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
)

// observe makes the record of an attempt from what the engine decided on it.
func (t *Transport) observe(o *retry.Op, at retry.Attempt, d retry.Decision) {
	c, ok := o.Value.(*call)
	if !ok {
		return
	}
	x := c.of(at.Number)
	if x == nil { // refused
		x = c.attempt(at)
		x.end = at.StartedAt
	}
	x.emit(d)
	if user := t.o.Retry.Observer; user != nil {
		user.Observe(o, at, d)
	}
}

// waits makes the record of a question that a gateway answered with "in flight".
func (x *exchange) waits(res retry.Result, wait time.Duration) {
	x.emit(retry.Decision{Retry: true, Delay: wait, Class: retrylens.ClassConflict, Reason: res.Verdict.Reason, RetryAfter: res.Verdict.Asked})
}

var records = sync.Pool{New: func() any { return new(retrylens.Attempt) }}

// emit makes the record and hands it over; one that was handed over before is revised.
func (x *exchange) emit(d retry.Decision) {
	if x.c.t.o.Records == nil {
		return
	}
	a, _ := records.Get().(*retrylens.Attempt)
	*a = retrylens.Attempt{Seq: retrylens.Opt[int64]{Value: max(x.seq-1, 0), Set: x.seq > 0}}
	x.fill(a)
	d.Apply(a)
	x.overrule(a)
	a.Revision = max(a.Revision, x.revision)
	x.revision = a.Revision + min(1, math.MaxUint8-a.Revision)
	x.c.t.o.Records.Emit(a, x)
	if a.Seq.Set {
		x.seq = a.Seq.Value + 1
	}
	records.Put(a)
}

// fill writes what was seen into the record.
func (x *exchange) fill(a *retrylens.Attempt) {
	c := x.c
	o := c.h.Operation()
	a.LogicalID, a.OperationStartedAt, a.Attempt, a.Cause = o.ID, c.started, x.number, x.at.Cause
	a.Tenant, a.Service, a.Environment = or(o.Tenant, c.t.o.Tenant), or(o.Service, c.t.o.Service), or(o.Environment, c.t.o.Environment)
	a.Operation, a.Provider, a.Endpoint, a.Attributes = o.Name, x.at.Provider, c.path, o.Attributes
	a.IdempotencyKey = c.key[0]
	a.StartedAt = x.start()
	a.DurationMS = retrylens.Some(max(0, x.end.Sub(a.StartedAt).Milliseconds()))
	if a.TTFBMS = x.ttfb; a.TTFBMS.Set {
		a.TTFBMS.Value += x.at.StartedAt.Sub(a.StartedAt).Milliseconds()
	}
	a.Status = status(x.status)
	a.UpstreamCalls = retrylens.Some(x.sends())
	a.ProviderErrorType = x.asked
	if x.resp != nil {
		a.ProviderRequestID = requestID(x.resp.Header)
		a.Stream = x.stream()
		if c.gateway { // who else says so lies
			a.ServedBy = servedBy(x.resp.Header)
		}
	}
	a.ResponseModel = x.model
	x.fillUsage(a)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// status of the record; 0 = no response head, and one that HTTP does not know is not reported.
func status(s int) (o retrylens.Opt[uint16]) {
	if s == 0 || s >= 100 && s <= 599 {
		o = retrylens.Some(uint16(s))
	}
	return o
}

// sends counts the requests of which bytes may have been written. A library that does
// not trace has sent one.
func (x *exchange) sends() uint16 {
	n := x.trace.Sends
	if x.resp != nil || x.began && !x.trace.Traced {
		n = max(n, 1)
	}
	if x.follows != nil {
		n += int(x.follows.sends())
	}
	return uint16(min(n, math.MaxUint16))
}

// fillUsage: the provider's own figures are final once the answer is complete, or where
// the event that says how it failed tells them, else a lower bound; where it told none, the content that came is estimated.
func (x *exchange) fillUsage(a *retrylens.Attempt) {
	t := x.tokens
	a.PromptTokens, a.CompletionTokens = t.Prompt, t.Completion
	a.CachedPromptTokens, a.CacheWriteTokens, a.ReasoningTokens = t.CachedPrompt, t.CacheWrite, t.Reasoning
	a.CostUSD = x.cost
	switch {
	case t.Known() && !x.final:
		a.UsageSource = retrylens.UsagePartial
	case !t.Known() && x.estimate > 0 && !x.c.t.o.NoEstimates:
		a.CompletionTokens, a.UsageSource = retrylens.Some(x.estimate), retrylens.UsageEstimated
	case !t.Known() && x.resp != nil:
		x.headerUsage(a)
	}
}

// headerUsage: Bedrock tells the tokens of InvokeModel in headers as well.
func (x *exchange) headerUsage(a *retrylens.Attempt) {
	a.PromptTokens = headerCount(x.resp.Header, "X-Amzn-Bedrock-Input-Token-Count")
	a.CompletionTokens = headerCount(x.resp.Header, "X-Amzn-Bedrock-Output-Token-Count")
}

func headerCount(h http.Header, name string) (o retrylens.Opt[int64]) {
	text := first(h, name)
	if text == "" {
		return o
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n <= retrylens.MaxTokens {
		return retrylens.Some(n)
	}
	return o
}

// servedBy is the gateway's attempt whose answer this is.
func servedBy(h http.Header) (o retrylens.Opt[int32]) {
	text := first(h, "Retrylens-Attempt")
	if text == "" {
		return o
	}
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		return retrylens.Some(int32(n))
	}
	return o
}

// overrule writes what the record's rules say of the outcome.
func (x *exchange) overrule(a *retrylens.Attempt) {
	switch {
	case x.inFlight:
		a.Outcome, a.UpstreamCalls = retrylens.OutcomeInFlight, retrylens.Some[uint16](0)
	case x.mismatch:
		a.Outcome, a.UpstreamCalls = retrylens.OutcomeKeyMismatch, retrylens.Some[uint16](0)
		a.Final = retrylens.Some(true)
	case a.Outcome == retrylens.OutcomeShed:
		a.UpstreamCalls, a.Status, a.IdempotencyKey = retrylens.Some[uint16](0), retrylens.Some[uint16](0), x.c.key[0]
	}
	a.Delivery = ""
	if a.Outcome != retrylens.OutcomeSuccess && a.Outcome != retrylens.OutcomeHedgeLost && x.handed && x.content {
		a.Delivery = retrylens.DeliveryPartial
	}
}

// Size is the memory held for Complete, see emit.Late.
func (x *exchange) Size() int { return len(x.first().c.body.bytes) }

// Complete makes the parts of the record whose making takes time, see emit.Late.
func (x *exchange) Complete(a *retrylens.Attempt) {
	c := x.first().c
	facts := c.body.facts()
	a.LogicalID = c.h.ID()
	a.Fingerprint = facts.fingerprint
	if a.Model = modelOf(c.path); a.Model == "" {
		a.Model = c.t.models.get(facts.info.Model)
	}
	a.Stream = a.Stream || facts.info.Stream || streamPath(c.path)
	if p := c.t.o.Prices; p != nil && !a.CostUSD.Set && (a.UsageSource == "" || a.UsageSource == retrylens.UsageProvider || a.UsageSource == retrylens.UsagePartial) {
		if m, ok := p.Cost(a); ok {
			a.CostUSD, a.CostSource = retrylens.Some(m), retrylens.CostPriceBook
		}
	}
}
