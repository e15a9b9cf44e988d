package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/op"
)

// call is one RoundTrip.
type call struct {
	t         *Transport
	req       *http.Request
	h         *op.Handle
	body      body
	layer     layer
	path      string // of the request, which is the caller's again once the answer has ended
	provider  string // of the records
	to        string // the provider that is sent to: another one where a redirect has led there
	elsewhere bool   // a redirect has led to another host: no credential for it is asked for
	spent     int    // attempts of the policy before a redirect
	gateway   bool
	key       [1]string // as sent, "" = unkeyed; as a header has it
	cause     retrylens.Cause
	follows   *exchange // whose answer sent the caller's http.Client here, nil for most
	number    int32     // of the first attempt
	started   time.Time // the operation, once there was an attempt; before it this call, if that had to do something first

	mu      sync.Mutex
	headers http.Header // of all tries, with what Refresh changed
	newest  *exchange   // of the tries, which are a list through themselves
	first   exchange    // of them
}

// RoundTrip sends the request by the policy. An answer with an error status is an answer:
// it is returned as the last try got it. The error of a call without one is a
// *retry.Error around what the base transport said.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := t.begin(r)
	if err != nil {
		return nil, err
	}
	defer c.body.close()
	res, err := t.engine.Do(r.Context(), c.operation(), c.try)
	x, _ := res.Value.(*exchange)
	if err != nil {
		c.mayComeAgain()
	}
	if x != nil && x.resp != nil {
		x.resp.Request = x.mayRedirect(r)
		return x.resp, nil
	}
	return nil, err
}

// begin reads the request: body, operation, key.
func (t *Transport) begin(r *http.Request) (*call, error) {
	if r.URL == nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("retryhttp: the request has no URL")
	}
	c := &call{t: t, req: r, path: r.URL.Path, layer: layerOf(r.Header), gateway: len(t.gateways) > 0 && t.isGateway(r.URL)}
	if err := c.body.read(r, t.o.MaxBody); err != nil {
		return nil, err
	}
	c.to = t.provider(r, c.gateway)
	if x := redirectOf(r, t); x != nil {
		c.goesOn(x)
	} else {
		c.provider = c.to
		c.findOperation(r.Context())
		c.number = c.h.Number()
		c.cause = c.firstCause()
	}
	c.setHeaders()
	return c, c.persist(r.Context())
}

// persist the key before anything is sent. What that takes is the operation's time.
func (c *call) persist(ctx context.Context) error {
	if c.h.Operation().Persist == nil {
		return nil
	}
	c.started = c.t.clock.Now()
	if err := c.h.Persist(ctx); err != nil {
		c.body.close()
		return err
	}
	return nil
}

// findOperation: the context's, else the one that an SDK is trying again, else a new one.
func (c *call) findOperation(ctx context.Context) {
	if c.h = op.From(ctx); c.h != nil {
		return
	}
	if c.layer.retries > 0 {
		c.h = c.t.layers.take(c.layerKey(c.layer.retries), c.t.clock.Now())
	}
	if c.h == nil {
		c.h = op.NewHandle(op.Operation{ID: c.layer.id})
		c.h.Skip(int32(c.layer.retries))
	}
}

// mayComeAgain: an SDK that counts its tries may make another one.
func (c *call) mayComeAgain() {
	if c.layer.known && op.From(c.req.Context()) == nil {
		c.t.layers.put(c.layerKey(c.layer.retries+1), c.h, c.t.clock.Now())
	}
}

// firstCause of this call's first attempt. Attempts before it were made by a layer above:
// an SDK if it is one, else whoever submitted the operation again.
func (c *call) firstCause() retrylens.Cause {
	switch {
	case c.number == 0:
		return retrylens.CauseFirst
	case c.layer.retries > 0, c.layer.sdk && !c.layer.known && c.number%100 != 0:
		return retrylens.CauseSDK
	}
	return retrylens.CauseRedelivery
}

// operation as the engine needs to know it.
func (c *call) operation() retry.Op {
	o := c.h.Operation()
	e := retry.Op{Provider: c.provider, StartedAt: c.started, Keyed: c.key[0] != "", Policy: c.policy(), Cheap: o.Cheap, HedgeSafe: o.HedgeSafe,
		FirstAttempt: c.number, Cause: c.cause, Discard: discard, Value: c}
	if o.HedgeSafe { // a stream is never hedged
		e.Stream = c.body.facts().info.Stream || streamPath(c.path)
		e.HedgeSafe = c.body.rest == nil
	}
	if c.t.o.Refresh != nil && !c.elsewhere {
		e.Refresh = c.refresh
	}
	return e
}

// discard closes an answer that is not returned.
func discard(res retry.Result) {
	if x, ok := res.Value.(*exchange); ok && x.resp != nil {
		_ = x.resp.Body.Close()
	}
}

const (
	keyHeader       = "Idempotency-Key"
	operationHeader = "Retrylens-Operation"
)

// setHeaders decides on the key: one that the caller has set itself, else the
// operation's where the next hop is to get it.
func (c *call) setHeaders() {
	if c.headers = c.req.Header; c.headers == nil {
		c.headers = http.Header{}
	}
	name := c.t.o.KeyHeaders[c.to]
	if c.gateway {
		name = keyHeader
	}
	if c.key[0] = first(c.req.Header, keyHeader); name == "" || c.key[0] != "" && name == keyHeader {
		return
	}
	name = http.CanonicalHeaderKey(name)
	key := or(first(c.req.Header, name), c.h.Operation().Key)
	if key == "" {
		return
	}
	c.key[0] = key
	c.headers = with(c.headers, name, c.key[:])
}

// with returns h and one header more; the values of the others are shared.
func with(h http.Header, name string, value []string) http.Header {
	out := make(http.Header, len(h)+1)
	for k, v := range h {
		out[k] = v
	}
	out[name] = value
	return out
}

// header of one try. A gateway is told which one it is.
func (c *call) header(x *exchange) http.Header {
	h := c.headers
	if c.t.o.Refresh != nil {
		c.mu.Lock()
		h = c.headers
		c.mu.Unlock()
	}
	if c.gateway {
		h = with(h, operationHeader, []string{"id=" + url.QueryEscape(c.h.ID()) + ";started=" + strconv.FormatInt(c.started.UnixMilli(), 10) +
			";attempt=" + strconv.Itoa(int(x.number)) + ";cause=" + string(x.at.Cause)})
	}
	return h
}

// refresh asks for another credential after a 401.
func (c *call) refresh(ctx context.Context) (bool, error) {
	c.mu.Lock()
	h := c.headers.Clone()
	c.mu.Unlock()
	before := credentialsOf(h)
	if err := c.t.o.Refresh(ctx, c.provider, h); err != nil {
		return false, err
	}
	c.mu.Lock()
	c.headers = h
	c.mu.Unlock()
	return credentialsOf(h) != before, nil
}

func credentialsOf(h http.Header) (all [4]string) {
	for i, k := range credentials {
		all[i] = first(h, k)
	}
	return all
}

// shortestWait between two questions to a gateway, whatever it asks for.
const shortestWait = 250 * time.Millisecond

// try makes one attempt. While a gateway says that the key is in flight it asks again
// under the same key, as long as the deadline allows; each question is an attempt.
func (c *call) try(ctx context.Context, at retry.Attempt) retry.Result {
	x := c.exchange(at)
	for {
		res := x.send(ctx)
		if !x.inFlight || res.CallerGone {
			return res
		}
		wait := max(res.Verdict.Asked.Or(time.Second), shortestWait)
		now := c.t.clock.Now()
		if !now.Add(wait).Before(at.Deadline) {
			return res
		}
		x.waits(res, wait)
		discard(res)
		if clock.Sleep(ctx, c.t.clock, wait) != nil {
			return retry.Result{CallerGone: ctx.Err() == context.Canceled, Err: context.Cause(ctx), Value: nil,
				Verdict: classify.Verdict{Class: retrylens.ClassCancelled, Reason: "the caller left while its key was in flight"}}
		}
		x = c.question(at)
	}
}

// exchange begins the record of an attempt. Its number is the engine's, unless another
// call or a question to a gateway has taken that.
func (c *call) exchange(at retry.Attempt) *exchange {
	if x := c.redirected(at); x != nil {
		return x
	}
	return c.attempt(at)
}

// attempt begins the record of an attempt of its own.
func (c *call) attempt(at retry.Attempt) *exchange {
	number, started := c.h.Claim(at.Number, at.RunStartedAt)
	switch {
	case number == 0:
		at.Cause = retrylens.CauseFirst
	case at.Cause == retrylens.CauseFirst: // two calls at once share the operation
		at.Cause = retrylens.CauseRedelivery
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &c.first
	if x.c != nil {
		x = new(exchange)
	}
	if c.newest == nil {
		c.started = started
	}
	x.c, x.at, x.number = c, at, number
	x.earlier, c.newest = c.newest, x
	return x
}

// question to a gateway, which says that the key is in flight: once more.
func (c *call) question(at retry.Attempt) *exchange {
	at.StartedAt, at.Cause = c.t.clock.Now(), retrylens.CausePolicy
	x := &exchange{c: c, at: at, number: c.h.Take()}
	c.mu.Lock()
	x.earlier, c.newest = c.newest, x
	c.mu.Unlock()
	return x
}

// of finds the exchange of an engine's attempt, the last one; nil if it was not sent.
func (c *call) of(number int32) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.newest
	for x != nil && x.at.Number != number {
		x = x.earlier
	}
	return x
}
