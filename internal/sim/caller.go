package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// The retry loop of every caller: a plain one.
const (
	maxAttempts    = 3
	backoffBase    = 500 * time.Millisecond
	backoffCap     = 20 * time.Second
	attemptTimeout = time.Minute
	learnsUsage    = 0.5 // share of timed-out requests whose usage is learned by draining them
)

// callers make the operations of the fleet and tell of every attempt.
type callers struct {
	clock     *clock
	rand      *rand.Rand
	start     time.Time
	providers map[string]*provider
	emit      func(*retrylens.Attempt) error
	seq       map[string]int64 // by emitter
	count     int64            // of operations
}

// operation is one caller's intent on its way through the retry loop.
type operation struct {
	*callers
	work    *workload
	request request
	id      string
	begun   time.Time
	attempt int32
}

// begin starts an operation now.
func (c *callers) begin(w *workload, a Arrival) error {
	c.count++
	op := &operation{callers: c, work: w, begun: c.time(), id: c.newID()}
	op.request = request{model: w.model, promptTokens: a.PromptTokens, completionTokens: a.CompletionTokens}
	if w.keyed {
		op.request.key = c.count
	}
	return op.send()
}

func (c *callers) time() time.Time { return c.start.Add(c.clock.now).Truncate(time.Millisecond) }

// newID returns a UUIDv7 of the virtual time.
func (c *callers) newID() string {
	ms, a, b := uint64(c.time().UnixMilli()), c.rand.Uint64(), c.rand.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", ms>>16, ms&0xffff, a&0xfff, 0x8000|a>>12&0x3fff, b&0xffffffffffff)
}

// send makes one attempt; what it came to is known when the reply or the timeout is there.
func (op *operation) send() error {
	sent := op.time()
	r := op.providers[op.work.provider].call(op.clock.now, op.request)
	op.clock.after(min(r.after, attemptTimeout), func() error { return op.settle(sent, r) })
	return nil
}

// settle records an attempt and sleeps before the next, if there is one.
func (op *operation) settle(sent time.Time, r reply) error {
	timedOut := r.after > attemptTimeout
	a := op.record(sent)
	if timedOut {
		a.DurationMS, a.Status = ms(attemptTimeout), retrylens.Some[uint16](0)
		a.Outcome, a.ErrorClass = retrylens.OutcomeError, retrylens.ClassTimeout
	} else {
		op.answered(&a, r)
	}
	delay, again := op.decide(&a, r.retryAfter)
	if err := op.tell(a); err != nil {
		return err
	}
	if timedOut && r.class == "" && op.rand.Float64() < learnsUsage {
		op.clock.after(r.after-attemptTimeout, func() error { return op.revise(a, r) })
	}
	if again {
		op.attempt++
		op.clock.after(delay, op.send)
	}
	return nil
}

// record fills in what is known before an attempt.
func (op *operation) record(sent time.Time) retrylens.Attempt {
	w := op.work
	a := retrylens.Attempt{
		Tenant: w.tenant, LogicalID: op.id, OperationStartedAt: op.begun, Attempt: op.attempt,
		Service: w.service, Environment: w.environment, Operation: w.operation, Provider: w.provider, Model: w.model, Endpoint: w.endpoint,
		Stream: w.stream, StartedAt: sent, Emitter: "client-" + w.service + "-1",
	}
	if w.keyed {
		a.IdempotencyKey = "k-" + op.id
	}
	a.Seq = retrylens.Some(op.seq[a.Emitter])
	op.seq[a.Emitter]++
	return a
}

// answered fills in what came back.
func (op *operation) answered(a *retrylens.Attempt, r reply) {
	a.DurationMS, a.Status = ms(r.after), retrylens.Some(r.status)
	a.ProviderErrorType, a.ProviderRequestID, a.ErrorClass = r.errorType, r.requestID, r.class
	if r.status != 0 {
		a.TTFBMS = ms(r.ttfb)
	}
	if r.retryAfter > 0 {
		a.RetryAfterMS = ms(r.retryAfter)
	}
	a.Outcome = retrylens.OutcomeError
	if r.class == "" {
		a.Outcome = retrylens.OutcomeSuccess
		a.ResponseModel = op.work.model
		op.bill(a)
	}
}

func (op *operation) bill(a *retrylens.Attempt) {
	q := op.request
	a.PromptTokens, a.CompletionTokens = retrylens.Some(q.promptTokens), retrylens.Some(q.completionTokens)
	a.CostUSD, a.CostSource = retrylens.Some(cost(q.model, q.promptTokens, q.completionTokens)), retrylens.CostPriceBook
}

// decide says whether another attempt is made and after which sleep.
func (op *operation) decide(a *retrylens.Attempt, retryAfter time.Duration) (time.Duration, bool) {
	switch {
	case a.Outcome == retrylens.OutcomeSuccess:
		a.StopReason = retrylens.StopDelivered
	case !retryable(a.ErrorClass):
		a.StopReason = retrylens.StopNotRetryable
	case op.attempt+1 >= maxAttempts:
		a.StopReason = retrylens.StopMaxAttempts
	default:
		delay := op.backoff(retryAfter)
		a.DelayMS, a.Final = ms(delay), retrylens.Some(false)
		return delay, true
	}
	a.Final = retrylens.Some(true)
	return 0, false
}

func retryable(c retrylens.ErrorClass) bool {
	switch c {
	case retrylens.ClassRateLimited, retrylens.ClassOverloaded, retrylens.ClassServerError, retrylens.ClassBadGateway,
		retrylens.ClassUnavailable, retrylens.ClassGatewayTimeout, retrylens.ClassTimeout, retrylens.ClassTransportUnknown:
		return true
	}
	return false
}

// backoff is full jitter, uniform(0, min(cap, base · 2^attempt)), or what the
// provider asked for, if that is more, up to the cap.
func (op *operation) backoff(retryAfter time.Duration) time.Duration {
	ceiling := min(backoffCap, backoffBase<<op.attempt)
	delay := time.Duration(op.rand.Int64N(int64(ceiling) + 1)).Truncate(time.Millisecond)
	return max(delay, min(retryAfter, backoffCap))
}

// revise tells an attempt again once the answer nobody waited for is drained.
func (op *operation) revise(a retrylens.Attempt, r reply) error {
	a.Revision++
	a.ProviderRequestID = r.requestID
	op.bill(&a)
	return op.tell(a)
}

func (op *operation) tell(a retrylens.Attempt) error {
	a.Normalize()
	return op.emit(&a)
}

func ms(d time.Duration) retrylens.Opt[int64] { return retrylens.Some(d.Milliseconds()) }
