package world

import (
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/failure"
	"github.com/retrylens/retrylens/retry"
)

// keptFor is how long a gateway keeps an answer under its key.
const keptFor = time.Hour

// gateway is a proxy with a policy of its own: each request of a client is an
// operation for it, whose attempts are numbered from 100 × the requests before.
type gateway struct {
	*Gateway
	run  *run
	pool *pool
	next upstream
	keys map[int64]*keyed
	book *failure.Book
}

// keyed is what a gateway knows of a key.
type keyed struct {
	gateway  *gateway
	key      int64
	answered bool
	attempt  int32 // that was answered
}

// Fire as in des.Handler: an answer has been kept for long enough.
func (k *keyed) Fire(int) { delete(k.gateway.keys, k.key) }

// newGateway stands before next for one workload; its processes are of a service of
// their own.
func (r *run) newGateway(l *Workload, next upstream) (*gateway, error) {
	g := &gateway{Gateway: l.Gateway, run: r, next: next, keys: map[int64]*keyed{}, book: failure.NewBook(l.Provider, l.Stream)}
	var err error
	g.pool, err = r.addPool("gateway", l.Gateway.Limits, 2)
	return g, err
}

// gatewayCall is a client's request at the gateway.
type gatewayCall struct {
	gateway *gateway
	c       *call
	entry   *keyed
	sentAt  time.Duration
	left    bool // the client
	done    bool
}

func (g *gateway) send(c *call) {
	in := c.intent
	first := 100 * in.asked
	in.asked++
	w := &gatewayCall{gateway: g, c: c, sentAt: g.run.events.Now()}
	if g.Idempotent && in.key != 0 {
		if w.entry = g.keys[in.key]; w.entry != nil {
			w.known(first)
			return
		}
		w.entry = &keyed{gateway: g, key: in.key}
		g.keys[in.key] = w.entry
	}
	g.run.events.After(c.patience, w, 0)
	op := g.run.newOperation(in, g.pool.any(g.run.rand))
	op.next, op.hop, op.first, op.whose = g.next, retrylens.HopGateway, first, w
	if first > 0 {
		op.cause = c.cause
	}
	op.begin(&g.Policy)
}

// Fire as in des.Handler: the client's patience is over. What the gateway is at goes on.
func (w *gatewayCall) Fire(int) {
	if w.done {
		return
	}
	w.left = true
	w.answer(reply{failure: w.gateway.book.Reply(failure.TimedOut, 0), calls: 1, ttfb: -1})
}

func (w *gatewayCall) answer(r reply) {
	w.done = true
	w.c.reply = r
	w.c.back.ended(w.c)
}

// over is told the end of the gateway's operation.
func (w *gatewayCall) over(op *operation, d retry.Decision) {
	g := w.gateway
	if e := w.entry; e != nil {
		e.answered, e.attempt = d.StopReason == retrylens.StopDelivered, op.at.Number
		if e.answered {
			g.run.events.After(keptFor, e, 0)
		} else {
			delete(g.keys, e.key)
		}
	}
	if w.left {
		return
	}
	r := op.call.reply
	r.calls, r.servedBy = 1, retrylens.Some(op.at.Number)
	if r.failure != nil && r.failure.Status == 0 {
		r.failure, r.requestID = g.book.Reply(failure.BadGateway, 0), 0 // as a proxy tells of a broken connection
	}
	r.ttfb = -1
	if r.failure == nil || r.failure.Status > 0 {
		r.ttfb = g.run.events.Now() - w.sentAt
	}
	w.answer(r)
}

// known answers a request whose key is being executed, or was answered before.
func (w *gatewayCall) known(first int32) {
	g, in := w.gateway, w.c.intent
	p := g.pool.any(g.run.rand)
	op := g.run.newOperation(in, p)
	op.hop, op.sentAt, op.pinned = retrylens.HopGateway, g.run.events.Now(), true
	op.at = retry.Attempt{Number: first, Cause: w.c.cause}
	a := op.describe()
	a.DurationMS = retrylens.Some[int64](0)
	a.Final = retrylens.Some(true)
	r := reply{calls: 1, servedBy: retrylens.Some(first)}
	if w.entry.answered {
		a.Outcome, a.ReplayOf, a.Status = retrylens.OutcomeReplayed, retrylens.Some(w.entry.attempt), retrylens.Some[uint16](200)
		a.StopReason = retrylens.StopDelivered
		r.usage = in.usage()
	} else {
		r.failure = g.book.Reply(failure.InFlight, time.Second)
		v := &r.failure.Verdict
		a.Outcome, a.ErrorClass, a.Status = retrylens.OutcomeInFlight, v.Class, retrylens.Some(r.failure.Status)
		a.RetryAfterMS, a.Reason = retrylens.Some(r.failure.RetryAfter.Milliseconds()), "the key is being executed"
	}
	g.run.emit(p, a)
	w.c.reply = r
	g.run.events.After(5*time.Millisecond, w.c, 0)
}

// Fire as in des.Handler: the answer to a call has crossed the network.
func (c *call) Fire(int) { c.back.ended(c) }

// shed is what a client gets from a gateway that did not send its request on.
func (r *run) shed(in *intent) *failure.Reply {
	if r.sheds == nil {
		r.sheds = map[string]*failure.Reply{}
	}
	p := in.work.Provider
	if r.sheds[p] == nil {
		r.sheds[p] = failure.NewBook(p, false).Reply(failure.GatewayShed, 0)
	}
	return r.sheds[p]
}
