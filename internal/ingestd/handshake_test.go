package ingestd

import (
	"bufio"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections that need no network, and no real time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p <- server
	return client
}

// A sender far away, or one of many, needs longer for a TLS handshake than net/http may
// for what it answers by itself; one that never ends it does not stay.
func TestTLSHandshakesHaveTheTimeOfAHead(t *testing.T) {
	made := newTestPair(t)
	pair, err := tls.X509KeyPair(made.cert, made.key)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]bool{0: true, 3 * drainTime: true, readHeaderTimeout - time.Second: true, readHeaderTimeout + time.Second: false} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes)
				server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), slog.New(slog.DiscardHandler))
				go server.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}))
				defer server.Close()
				conn := listener.dial()
				defer conn.Close()
				time.Sleep(after)
				client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
				_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
				var resp *http.Response
				if err == nil {
					resp, err = http.ReadResponse(bufio.NewReader(client), nil)
				}
				if got := err == nil && resp.StatusCode == http.StatusNoContent; got != want {
					t.Errorf("served %v, %v", got, err)
				}
			})
		})
	}
}
