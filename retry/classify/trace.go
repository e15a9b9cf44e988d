package classify

import (
	"net/http/httptrace"
	"sync/atomic"
)

// Trace is what httptrace saw of one attempt. The zero value says nothing.
type Trace struct {
	Traced       bool // the other fields are facts, zeros included
	Conns        int  // connections obtained, those of silent resends included
	Sends        int  // requests whose headers were written; above 1 the transport resent by itself
	WroteRequest bool // a whole request was written without an error
	FirstByte    bool // a byte of a response arrived
}

// Tracer records a Trace. It is safe for concurrent use, as the transport calls it
// from several goroutines, and one is made for every attempt.
type Tracer struct {
	conns, sends     atomic.Int32
	wrote, firstByte atomic.Bool
}

// ClientTrace returns the hooks for httptrace.WithClientTrace.
func (t *Tracer) ClientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { t.conns.Add(1) },
		WroteHeaders: func() { t.sends.Add(1) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				t.wrote.Store(true)
			}
		},
		GotFirstResponseByte: func() { t.firstByte.Store(true) },
	}
}

// Trace returns what was seen so far.
func (t *Tracer) Trace() Trace {
	return Trace{
		Traced: true, Conns: int(t.conns.Load()), Sends: int(t.sends.Load()),
		WroteRequest: t.wrote.Load(), FirstByte: t.firstByte.Load(),
	}
}
