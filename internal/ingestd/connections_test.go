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

// Whatever happens in whatever order, the count is right, and neither a request
// under way nor a sender who has just come is closed.
func TestRequestsUnderWayAreNeverClosed(t *testing.T) {
	c := newConnections(2)
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	var conns []net.Conn
	for range 4 {
		conn, peer := net.Pipe()
		defer peer.Close()
		conns = append(conns, conn)
	}
	step := func(after time.Duration, i int, state http.ConnState, next time.Duration, closed ...int) {
		t.Helper()
		now = now.Add(after)
		c.follow(now, conns[i], state)
		over, again := c.over(now)
		if again != next || len(over) != len(closed) {
			t.Fatalf("%d %v: closed %d, want %v; again in %v, want %v", i, state, len(over), closed, again, next)
		}
		for j, k := range closed {
			if over[j] != conns[k] {
				t.Fatalf("%d %v: the %dth closed is not %d", i, state, j, k)
			}
		}
	}
	step(0, 0, http.StateNew, 0)
	step(0, 0, http.StateActive, 0)
	step(0, 1, http.StateNew, 0)
	step(0, 1, http.StateActive, 0)
	step(0, 2, http.StateNew, fairWait) // all others are under way
	step(fairWait-1, 2, http.StateActive, 0)
	step(time.Hour, 3, http.StateNew, fairWait)
	step(fairWait-1, 2, http.StateIdle, 1)
	step(1, 0, http.StateIdle, fairWait-1, 3) // the longest first
	step(0, 3, http.StateActive, fairWait-1)  // it no longer counts
	step(0, 3, http.StateClosed, fairWait-1)
	step(fairWait, 1, http.StateIdle, 0, 2)
	step(time.Hour, 0, http.StateClosed, 0)
	step(0, 1, http.StateClosed, 0)
	if c.open != 0 || len(c.places) != 0 || c.waiting.Len() != 0 {
		t.Errorf("left: %d %d %d", c.open, len(c.places), c.waiting.Len())
	}
}

// Beyond the limit with requests under way alone, who comes is answered.
func TestASenderIsAnsweredBesideManyRequests(t *testing.T) {
	const limit = 3
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release, arrived := make(chan struct{}), make(chan struct{})
	server := NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-release
		}
	}), slog.New(slog.DiscardHandler))
	server.ConnState = newConnections(limit).changed
	go server.Serve(l)
	defer server.Close()
	defer close(release)
	ask := func(path string) net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(8 * time.Second))
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		return conn
	}
	for range 2 * limit {
		ask("/slow")
		<-arrived
	}
	for range 5 {
		if _, err := http.ReadResponse(bufio.NewReader(ask("/")), nil); err != nil {
			t.Error(err)
		}
	}
}
