package retryhttp

import (
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
)

// tracer sees what the HTTP library does with one attempt: connections obtained, sends,
// resends of its own. The library calls it from several goroutines, some of them after
// RoundTrip has returned.
type tracer struct {
	clock     clock.Clock
	start     time.Time     // of the attempt
	seen      atomic.Uint64 // counters side by side, one write an event
	firstByte atomic.Int64  // nanoseconds from the start, at least 1; 0 = none
	hooks     httptrace.ClientTrace
}

// Counters in tracer.seen, of 15 or 16 bits each.
const (
	oneConn  = 1 << 0  // connections obtained
	oneSend  = 1 << 16 // requests whose headers were written
	oneWrote = 1 << 32 // requests written to their end, or not, with an error
	oneWhole = 1 << 48 // of them those without an error
	asked    = 1 << 63 // the library traces at all
	ordinary = asked | oneConn | oneSend | oneWrote | oneWhole
)

var tracers = sync.Pool{New: func() any { return newTracer() }}

func newTracer() *tracer {
	t := new(tracer)
	t.hooks = httptrace.ClientTrace{
		GetConn:      func(string) { t.seen.Or(asked) },
		GotConn:      func(httptrace.GotConnInfo) { t.seen.Add(oneConn) },
		WroteHeaders: func() { t.seen.Add(oneSend) },
		GotFirstResponseByte: func() {
			if t.firstByte.Load() == 0 {
				t.firstByte.CompareAndSwap(0, max(1, int64(t.clock.Now().Sub(t.start))))
			}
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				t.seen.Add(oneWrote + oneWhole)
				return
			}
			t.seen.Add(oneWrote)
		},
	}
	return t
}

func takeTracer(c clock.Clock, start time.Time) *tracer {
	t := tracers.Get().(*tracer)
	t.clock, t.start = c, start
	return t
}

// release gives t back for another attempt if the library can no longer call it: one
// connection, one send, written, answered. It tells whether that is so.
func (t *tracer) release() bool {
	if t.seen.Load() != ordinary || t.firstByte.Load() == 0 {
		return false
	}
	t.seen.Store(0)
	t.firstByte.Store(0)
	tracers.Put(t)
	return true
}

// trace is what was seen; a library that does not trace proves nothing.
func (t *tracer) trace() classify.Trace {
	n := t.seen.Load()
	if n&asked == 0 {
		return classify.Trace{}
	}
	return classify.Trace{Traced: true, Conns: int(uint16(n / oneConn)), Sends: int(uint16(n / oneSend)),
		WroteRequest: n&(asked-oneWhole) != 0, FirstByte: t.firstByte.Load() != 0}
}

// ttfb is the time from start to the first byte of a response, not set without one.
func (t *tracer) ttfb() (o retrylens.Opt[int64]) {
	if at := t.firstByte.Load(); at > 0 {
		o = retrylens.Some(at / int64(time.Millisecond))
	}
	return o
}
