package retryhttp

import (
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
)

// tracer sees what the HTTP library does with one attempt: connections obtained, sends,
// resends of its own. The library calls it from several goroutines, some of them after
// RoundTrip has returned.
type tracer struct {
	clock     clock.Clock
	asked     atomic.Bool  // the library traces at all
	conns     atomic.Int32 // connections obtained
	sends     atomic.Int32 // requests whose headers were written
	wrote     atomic.Int32 // requests written to their end, or not, with an error
	whole     atomic.Bool  // one of them without an error
	firstByte atomic.Int64 // Unix nanoseconds, 0 = none
	hooks     httptrace.ClientTrace
}

var tracers = sync.Pool{New: func() any { return newTracer() }}

func newTracer() *tracer {
	t := new(tracer)
	t.hooks = httptrace.ClientTrace{
		GetConn:              func(string) { t.asked.Store(true) },
		GotConn:              func(httptrace.GotConnInfo) { t.conns.Add(1) },
		WroteHeaders:         func() { t.sends.Add(1) },
		GotFirstResponseByte: func() { t.firstByte.CompareAndSwap(0, t.clock.Now().UnixNano()) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				t.whole.Store(true)
			}
			t.wrote.Add(1)
		},
	}
	return t
}

func takeTracer(c clock.Clock) *tracer {
	t := tracers.Get().(*tracer)
	t.clock = c
	return t
}

// release gives t back for another attempt if the library can no longer call it: one
// connection, one send, written, answered. It tells whether that is so.
func (t *tracer) release() bool {
	if t.conns.Load() != 1 || t.sends.Load() != 1 || t.wrote.Load() != 1 || t.firstByte.Load() == 0 || !t.whole.Load() {
		return false
	}
	t.asked.Store(false)
	t.conns.Store(0)
	t.sends.Store(0)
	t.wrote.Store(0)
	t.whole.Store(false)
	t.firstByte.Store(0)
	tracers.Put(t)
	return true
}

// trace is what was seen; a library that does not trace proves nothing.
func (t *tracer) trace() classify.Trace {
	if !t.asked.Load() {
		return classify.Trace{}
	}
	return classify.Trace{Traced: true, Conns: int(t.conns.Load()), Sends: int(t.sends.Load()),
		WroteRequest: t.whole.Load(), FirstByte: t.firstByte.Load() != 0}
}

// ttfb is the time from start to the first byte of a response.
func (t *tracer) ttfb(start time.Time) (time.Duration, bool) {
	at := t.firstByte.Load()
	if at == 0 {
		return 0, false
	}
	return max(0, time.Unix(0, at).Sub(start)), true
}
