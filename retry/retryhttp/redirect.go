package retryhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/retrylens/retrylens/retry"
)

// A redirect that http.Client follows is no other try: the caller's one request takes a
// detour. It comes as a call of its own, which goes on with the attempt whose answer was the
// redirect: the same operation, number, start and clock of the budget. The record of the
// attempt was made by then; that of its end revises it, with all requests counted.

type redirectKey struct{}

// mayRedirect is r, with the attempt in its context if its answer is a redirect: http.Client
// shows the answer, and with it the request, to the request that follows.
func (x *exchange) mayRedirect(r *http.Request) *http.Request {
	if x.status < 300 || x.status > 399 || x.resp.Header.Get("Location") == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), redirectKey{}, x))
}

// redirectOf is the attempt whose answer made http.Client send r, nil if none of t's did.
func redirectOf(r *http.Request, t *Transport) *exchange {
	if r.Response == nil || r.Response.Request == nil {
		return nil
	}
	x, _ := r.Response.Request.Context().Value(redirectKey{}).(*exchange)
	if x == nil || x.c.t != t {
		return nil
	}
	x.finish(errClosed) // its record comes first
	return x
}

// goesOn has the call be one with that of x. When a layer between http.Client and t sends the
// request behind the redirect once more, that is another attempt.
func (c *call) goesOn(x *exchange) {
	c.h, c.provider, c.path = x.c.h, x.c.provider, x.c.path
	from, to := c.req.Response.Request.URL, c.req.URL
	c.elsewhere = x.c.elsewhere || !sameName(from.Hostname(), to.Hostname()) || port(from) != port(to) || from.Scheme != to.Scheme
	if !x.followed.CompareAndSwap(false, true) {
		c.number = c.h.Number()
		c.cause = c.firstCause()
		return
	}
	c.follows, c.spent = x, x.c.spent+int(x.at.Number-x.c.number)
	c.number, c.cause, c.started = x.number, x.at.Cause, x.at.RunStartedAt
}

// policy of the call: of its operation's attempts some were made before a redirect.
func (c *call) policy() *retry.Policy {
	p := c.h.Operation().Policy
	if c.spent == 0 {
		return p
	}
	if p == nil {
		p = c.t.o.Retry.Policy
	}
	left := retry.Interactive()
	if p != nil {
		left = *p
	}
	left.Attempts = max(1, left.Attempts-c.spent)
	return &left
}

// redirected goes on with the attempt that the call follows, if this is the first one after
// the redirect; else nil.
func (c *call) redirected(at retry.Attempt) *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.follows
	if f == nil || c.newest != nil {
		return nil
	}
	x := &c.first
	x.c, x.at, x.number, x.follows = c, at, f.number, f
	x.seq, x.revision = f.seq, f.revision
	c.started, c.newest = f.c.started, x
	return x
}

// first exchange of the attempt.
func (x *exchange) first() *exchange {
	for x.follows != nil {
		x = x.follows
	}
	return x
}

// start of the attempt.
func (x *exchange) start() time.Time { return x.first().at.StartedAt }
