package ingestd

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/netutil"
)

// Connections that wait for a request, with or without one before or with half a
// head, never keep a sender out.
func TestWaitingConnectionsMakeRoom(t *testing.T) {
	const room, limit = 16, 12
	whole := "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, sent := range map[string]string{"keep-alive": whole, "silent": "", "half a head": "GET / HT", "half of the next": whole + "GE"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), slog.New(slog.DiscardHandler))
			server.ConnState = newConnections(limit).changed
			go server.Serve(netutil.LimitListener(l, room))
			t.Cleanup(func() { server.Close() })
			ask := func(text string) net.Conn {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
				fmt.Fprint(conn, text)
				return conn
			}
			answered := func(conn net.Conn) {
				t.Helper()
				if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
					t.Fatal(err)
				}
			}
			first := ask(sent)
			for range 3 * room {
				ask(sent)
			}
			for range 3 {
				answered(ask(whole))
			}
			if _, err := io.Copy(io.Discard, first); err != nil {
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Error("the one that waited longest is still open")
				}
			}
		})
	}
}

// Whatever happens in whatever order, the count is right and requests under way
// are never closed.
func TestRequestsUnderWayAreNeverClosed(t *testing.T) {
	c := newConnections(2)
	var conns []net.Conn
	for range 4 {
		conn, peer := net.Pipe()
		defer peer.Close()
		conns = append(conns, conn)
	}
	step := func(i int, state http.ConnState, closed int) {
		t.Helper()
		got := c.follow(conns[i], state)
		if closed < 0 && got != nil || closed >= 0 && got != conns[closed] {
			t.Fatalf("%d %v: closed %v, want %d", i, state, got, closed)
		}
	}
	step(0, http.StateNew, -1)
	step(0, http.StateActive, -1)
	step(1, http.StateNew, -1)
	step(1, http.StateActive, -1)
	step(2, http.StateNew, 2)
	step(2, http.StateActive, -1) // it no longer counts
	step(2, http.StateClosed, -1)
	step(0, http.StateIdle, -1)
	step(3, http.StateNew, 0)
	step(0, http.StateClosed, -1)
	step(3, http.StateActive, -1)
	step(1, http.StateClosed, -1)
	step(3, http.StateClosed, -1)
	if c.open != 0 || len(c.places) != 0 || c.waiting.Len() != 0 {
		t.Errorf("left: %d %d %d", c.open, len(c.places), c.waiting.Len())
	}
}
