package retryhttp

import (
	"context"
	"net/http/httptrace"
	"time"
)

// attemptContext is the context of one attempt: the caller's values, the watch's life,
// the tracer's hooks. It saves the allocations of a chain of contexts.
type attemptContext struct {
	values context.Context
	life   context.Context // made by package context, so that its children find it
	hooks  *httptrace.ClientTrace
}

func (c *attemptContext) Deadline() (time.Time, bool) { return c.values.Deadline() }
func (c *attemptContext) Done() <-chan struct{}       { return c.life.Done() }
func (c *attemptContext) Err() error                  { return c.life.Err() }

func (c *attemptContext) Value(key any) any {
	if key == traceKey {
		return c.hooks
	}
	if v := c.life.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// traceKey is the key under which package httptrace looks for hooks, learned by asking
// it once.
var traceKey = func() any {
	s := &keySpy{Context: context.Background()}
	httptrace.ContextClientTrace(s)
	return s.key
}()

type keySpy struct {
	context.Context
	key any
}

func (s *keySpy) Value(key any) any {
	s.key = key
	return nil
}

// context of the attempt; the caller's own hooks are called as well.
func (x *exchange) context(parent context.Context) context.Context {
	x.ctx = attemptContext{values: parent, life: x.watch.life}
	if traceKey != nil && httptrace.ContextClientTrace(parent) == nil {
		x.ctx.hooks = &x.tracer.hooks
		return &x.ctx
	}
	x.ctx.hooks = httptrace.ContextClientTrace(parent)
	hooks := x.tracer.hooks // a copy: the caller's are written into it, and the tracer serves others afterwards
	return httptrace.WithClientTrace(&x.ctx, &hooks)
}
