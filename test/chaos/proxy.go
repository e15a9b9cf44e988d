package main

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy stands between the ingest nodes and the engine's native port, and can
// behave badly.
type proxy struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error)

	mu    sync.Mutex
	mode  mode
	conns map[net.Conn]bool
}

// mode is how connections are treated; the zero one passes all.
type mode struct {
	name  string
	code  int32  // an exception instead of a greeting
	text  string // its text
	close bool   // refuse
	stall bool   // take, and never answer
	cut   bool   // cut after some bytes
}

// refusals are the classes of errors of a store.
var refusals = []mode{
	{name: "refused", close: true},
	{name: "stalled", stall: true},
	{name: "cut", cut: true},
	{name: "memory", code: 241, text: "Memory limit (total) exceeded"},
	{name: "too_many_parts", code: 252, text: "Too many parts (3000 with average size of 1.00 MiB)"},
	{name: "too_many_partitions", code: 252, text: "Too many partitions for single INSERT block (more than 100)"},
	{name: "read_only", code: 242, text: "Table is in readonly mode"},
	{name: "keeper", code: 999, text: "Coordination::Exception: Session expired"},
	{name: "overloaded", code: 202, text: "Too many simultaneous queries"},
	{name: "authentication", code: 516, text: "Authentication failed"},
	{name: "no_table", code: 60, text: "Table does not exist"},
	{name: "bad_data", code: 469, text: "Constraint is violated"},
	{name: "unknown", code: 4711, text: "Something new"},
}

func newProxy(dial func(context.Context) (net.Conn, error)) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, dial: dial, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// set changes the mode; connections that are open end.
func (p *proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[c] = true
		m := p.mode
		p.mu.Unlock()
		go func() {
			p.serve(c, m)
			c.Close()
			p.mu.Lock()
			delete(p.conns, c)
			p.mu.Unlock()
		}()
	}
}

func (p *proxy) serve(c net.Conn, m mode) {
	switch {
	case m.close:
	case m.stall:
		_, _ = io.Copy(io.Discard, c)
	case m.code != 0:
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Write(exception(m))
	default:
		p.pass(c, m)
	}
}

func (p *proxy) pass(c net.Conn, m mode) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	up, err := p.dial(ctx)
	if err != nil {
		return
	}
	defer up.Close()
	go func() {
		_, _ = io.Copy(c, up)
		c.Close()
	}()
	var in io.Reader = c
	if m.cut {
		in = io.LimitReader(c, 500+rand.Int64N(40_000))
	}
	_, _ = io.Copy(up, in)
}

// exception is the packet of the native protocol.
func exception(m mode) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	b := binary.LittleEndian.AppendUint32([]byte{2}, uint32(m.code))
	b = text(text(text(b, "DB::Exception"), "DB::Exception: "+m.text), "")
	return append(b, 0)
}
