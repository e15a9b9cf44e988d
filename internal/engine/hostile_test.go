package engine_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// A hostileClient does one nasty thing with a fresh connection.
type hostileClient struct {
	name string
	port string // http, tcp or both
	do   func(h *hostile, c net.Conn)
}

// hostile is what a client works with: the owner's password too, so that it gets
// further than the door.
type hostile struct {
	rand *rand.Rand
	ep   engine.Endpoint
}

// request sends an HTTP request of the owner's, which may well be cut short.
func (h *hostile) request(c net.Conn, line, rest string) {
	fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nX-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n%s", line, h.ep.User, h.ep.Password, rest)
}

// Each of these ended the engine while its session was not an interactive one, or
// is a neighbour of one that did.
var hostileClients = []hostileClient{
	{"reset at once", "both", func(_ *hostile, c net.Conn) { reset(c) }},
	{"close at once", "both", func(_ *hostile, c net.Conn) { c.Close() }},
	{"garbage", "both", func(h *hostile, c net.Conn) {
		c.Write(h.garbage(1000))
		answer(c, 2*time.Millisecond)
		reset(c)
	}},
	{"HTTP request, close", "both", func(_ *hostile, c net.Conn) {
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		c.Close()
	}},
	{"request, reset", "http", func(h *hostile, c net.Conn) {
		h.request(c, "GET /?query=SELECT+1", "\r\n")
		reset(c)
	}},
	{"half a body", "http", func(h *hostile, c net.Conn) {
		h.request(c, "POST /?query=INSERT+INTO+FUNCTION+null('a+UInt8')+FORMAT+Native", "Content-Length: 100000\r\n\r\nabc")
		answer(c, 2*time.Millisecond)
		reset(c)
	}},
	{"bad chunk", "http", func(h *hostile, c net.Conn) {
		h.request(c, "POST /", "Transfer-Encoding: chunked\r\n\r\nzz\r\nSELECT 1")
		answer(c, 2*time.Millisecond)
		reset(c)
	}},
	{"reset in a long answer", "http", func(h *hostile, c net.Conn) {
		h.request(c, "GET /?query=SELECT+number+FROM+numbers(100000000)", "\r\n")
		answer(c, 100*time.Millisecond)
		reset(c)
	}},
	{"reset in a slow query", "http", func(h *hostile, c net.Conn) {
		h.request(c, "GET /?query=SELECT+sleep(0.1)", "\r\n")
		answer(c, 2*time.Millisecond)
		reset(c)
	}},
	{"bad compression", "http", func(h *hostile, c net.Conn) {
		h.request(c, "POST /?decompress=1", "Content-Length: 40\r\n\r\n"+strings.Repeat("0123456789", 4))
		answer(c, 100*time.Millisecond)
		c.Close()
	}},
	{"header without end", "http", func(h *hostile, c net.Conn) {
		io.WriteString(c, "GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 100_000))
		reset(c)
	}},
	{"hello, reset", "tcp", func(h *hostile, c net.Conn) {
		c.Write(hello(h.ep.User, h.ep.Password))
		answer(c, 100*time.Millisecond)
		reset(c)
	}},
	{"hello with a wrong password", "tcp", func(_ *hostile, c net.Conn) {
		c.Write(hello("retrylens", "wrong"))
		answer(c, 100*time.Millisecond)
		reset(c)
	}},
	{"half a hello", "tcp", func(_ *hostile, c net.Conn) {
		c.Write(hello("retrylens", "")[:7])
		reset(c)
	}},
	{"hello, then garbage", "tcp", func(h *hostile, c net.Conn) {
		c.Write(append(hello(h.ep.User, h.ep.Password), h.garbage(1000)...))
		answer(c, 2*time.Millisecond)
		reset(c)
	}},
}

func (h *hostile) garbage(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(h.rand.Uint32())
	}
	return b
}

// hello is the first packet of the native protocol, revision 54460.
func hello(user, password string) []byte {
	b := []byte{0, 1, 'x', 1, 1, 0xbc, 0xa9, 3, 0} // client "x" 1.1, no database
	b = append(append(b, byte(len(user))), user...)
	return append(append(b, byte(len(password))), password...)
}

func reset(c net.Conn) {
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// answer reads once, for at most d.
func answer(c net.Conn, d time.Duration) {
	c.SetReadDeadline(time.Now().Add(d))
	c.Read(make([]byte, 4096))
}

func TestHostileClients(t *testing.T) {
	c := enginetest.Start(t)
	conn := connect(t, c)
	before := endpointOf(t, c)
	for _, hc := range hostileClients {
		for port, addr := range map[string]string{"http": before.HTTPAddr, "tcp": before.TCPAddr} {
			if hc.port != port && hc.port != "both" {
				continue
			}
			t.Run(port+"/"+hc.name, func(t *testing.T) {
				attack(t, hc, before, addr)
				if got := scalar[uint8](t, conn, "SELECT 1"); got != 1 {
					t.Errorf("SELECT 1 = %d", got)
				}
				if now := endpointOf(t, c); now.PID != before.PID {
					t.Errorf("the engine died: PID was %d, is %d", before.PID, now.PID)
				}
			})
		}
	}
}

// attack sends the client 48 times, four at a time.
func attack(t *testing.T, hc hostileClient, ep engine.Endpoint, addr string) {
	t.Helper()
	errs := make(chan error)
	for i := range 4 {
		h := &hostile{rand.New(rand.NewPCG(1, uint64(i))), ep}
		go func() { errs <- attackSome(h, hc, addr) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func attackSome(h *hostile, hc hostileClient, addr string) error {
	for i := range 12 {
		c, err := net.DialTimeout("tcp", addr, 2*time.Second)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		hc.do(h, c)
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}

func endpointOf(t *testing.T, c *engine.Client) engine.Endpoint {
	t.Helper()
	ep, err := c.Endpoint(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

// TestKeepsNothingOfTheParent: what a client started must not hold the client's
// open files, nor share its session.
func TestKeepsNothingOfTheParent(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	clearCloseOnExec(t, w)
	c := enginetest.Start(t)
	w.Close()
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read = %v, want EOF: the engine still holds the pipe", err)
	}
	requireOwnSession(t, endpointOf(t, c).PID)
}
