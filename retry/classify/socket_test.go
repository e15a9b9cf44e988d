package classify_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
)

// try sends one POST the way the policy does, without GetBody, and classifies what
// came of it.
func try(t *testing.T, client *http.Client, target string, edit func(*http.Request)) (classify.Verdict, *classify.Failure) {
	t.Helper()
	var tracer classify.Tracer
	ctx := httptrace.WithClientTrace(t.Context(), tracer.ClientTrace())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(`{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil
	if edit != nil {
		edit(req)
	}
	f := &classify.Failure{Provider: "openai"}
	resp, err := client.Do(req)
	f.Err = err
	if err == nil {
		f.HeadersReceived, f.Status, f.Header = true, resp.StatusCode, resp.Header
		f.Stream = resp.Header.Get("Content-Type") == "text/event-stream"
		f.Body, f.Err = io.ReadAll(resp.Body)
		f.ContentReceived = f.Stream && len(f.Body) > 0
		resp.Body.Close()
	}
	f.Trace = tracer.Trace()
	return classify.New().Classify(f), f
}

// rawServer runs serve for every connection; it returns the address and the count of
// whole request heads that arrived, silent resends included.
func rawServer(t *testing.T, serve func(conn *net.TCPConn, n int, head string)) (string, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var heads, conns atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n := int(conns.Add(1))
			go func() {
				defer conn.Close()
				head := readHead(conn)
				if head != "" {
					heads.Add(1)
				}
				serve(conn.(*net.TCPConn), n, head)
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/v1/chat/completions", &heads
}

// readHead reads a request with its body of 13 bytes.
func readHead(conn net.Conn) string {
	var b []byte
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		b = append(b, buf[:n]...)
		if _, body, ok := strings.Cut(string(b), "\r\n\r\n"); ok && len(body) >= 13 {
			return string(b)
		}
		if err != nil {
			return ""
		}
	}
}

func reset(conn *net.TCPConn) {
	conn.SetLinger(0)
	conn.Close()
}

func newClient(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

type want struct {
	class                        retrylens.ErrorClass
	retryable, preSend, needsKey bool
}

func check(t *testing.T, v classify.Verdict, f *classify.Failure, w want, wire int) {
	t.Helper()
	got := want{v.Class, v.Retryable, v.PreSend, v.NeedsKey}
	if got != w {
		t.Errorf("got %+v (%s), want %+v; error %v, trace %+v", got, v.Reason, w, f.Err, f.Trace)
	}
	if wire >= 0 && f.Trace.Sends != wire {
		t.Errorf("%d sends, want %d; error %v", f.Trace.Sends, wire, f.Err)
	}
}

var (
	presend  = want{retrylens.ClassTransportPresend, true, true, false}
	forever  = want{retrylens.ClassTransportPresend, false, true, false}
	unknown  = want{retrylens.ClassTransportUnknown, true, false, true}
	timedOut = want{retrylens.ClassTimeout, true, false, true}
	broken   = want{retrylens.ClassStreamInterrupted, false, false, false}
)

func TestResets(t *testing.T) {
	tests := []struct {
		name  string
		serve func(*net.TCPConn, int, string)
		want  want
	}{
		{"before headers", func(c *net.TCPConn, _ int, _ string) { reset(c) }, unknown},
		{"closed before headers", func(c *net.TCPConn, _ int, _ string) { c.Close() }, unknown},
		{"while headers", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Ty")
			c.Close()
		}, unknown},
		{"after headers", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"id\":")
			c.Close()
		}, unknown},
		{"stream before content", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
			c.Close()
		}, unknown},
		{"stream after content", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
				"1b\r\ndata: {\"choices\":[{}]}\r\n\r\n\r\n")
			c.Close()
		}, broken},
		{"503 with a lost body", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "HTTP/1.1 503 Unavailable\r\nContent-Length: 900\r\n\r\n<html>")
			c.Close()
		}, want{retrylens.ClassUnavailable, true, false, true}},
		{"no HTTP", func(c *net.TCPConn, _ int, _ string) {
			io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n\r\n")
			c.Close()
		}, unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target, heads := rawServer(t, tt.serve)
			v, f := try(t, newClient(t), target, nil)
			check(t, v, f, tt.want, 1)
			if heads.Load() != 1 {
				t.Errorf("%d requests on the wire, want 1", heads.Load())
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	v, f := try(t, newClient(t), "http://"+addr, nil)
	check(t, v, f, presend, 0)
	if v.Reason != "connection refused" {
		t.Errorf("reason %q", v.Reason)
	}
}

func TestNameDoesNotResolve(t *testing.T) {
	v, f := try(t, newClient(t), "http://no-such-host.invalid/", nil)
	check(t, v, f, presend, 0)
}

// TestProxyRefused dials a proxy that is not there.
func TestProxyRefused(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	proxy := &url.URL{Scheme: "http", Host: l.Addr().String()}
	l.Close()
	client := newClient(t)
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
	v, f := try(t, client, "https://api.example.com/", nil)
	check(t, v, f, presend, 0)
}

// TestProxySaysNo gets a 407 from a proxy for CONNECT: an untyped error of net/http.
func TestProxySaysNo(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}))
	defer srv.Close()
	proxy, _ := url.Parse(srv.URL)
	client := newClient(t)
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(proxy)
	v, f := try(t, client, "https://api.example.com/", nil)
	check(t, v, f, presend, 0)
}

func TestUnsupportedScheme(t *testing.T) {
	v, f := try(t, newClient(t), "gopher://127.0.0.1/", nil)
	check(t, v, f, forever, 0)
}

func TestDialTimeout(t *testing.T) {
	client := newClient(t)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		d := net.Dialer{Deadline: time.Unix(1, 0)}
		return d.DialContext(ctx, network, "127.0.0.1:9")
	}
	v, f := try(t, client, "http://api.example.com/", nil)
	check(t, v, f, presend, 0)
	if v.Reason != "dial timed out" {
		t.Errorf("reason %q", v.Reason)
	}
}

func TestTimeouts(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	target, _ := rawServer(t, func(c *net.TCPConn, _ int, _ string) { <-hold })
	t.Run("response header timeout", func(t *testing.T) {
		client := newClient(t)
		client.Transport.(*http.Transport).ResponseHeaderTimeout = 20 * time.Millisecond
		v, f := try(t, client, target, nil)
		check(t, v, f, timedOut, 1)
	})
	t.Run("client timeout", func(t *testing.T) {
		client := newClient(t)
		client.Timeout = 20 * time.Millisecond
		v, f := try(t, client, target, nil)
		check(t, v, f, timedOut, 1)
	})
	t.Run("context deadline", func(t *testing.T) {
		v, f := try(t, newClient(t), target, func(r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
			t.Cleanup(cancel)
			*r = *r.WithContext(ctx)
		})
		check(t, v, f, timedOut, 1)
	})
	t.Run("deadline before the dial", func(t *testing.T) {
		v, f := try(t, newClient(t), target, func(r *http.Request) {
			ctx, cancel := context.WithDeadline(r.Context(), time.Unix(1, 0))
			t.Cleanup(cancel)
			*r = *r.WithContext(ctx)
		})
		check(t, v, f, presend, 0)
	})
	t.Run("cancelled by the caller before the dial", func(t *testing.T) {
		v, f := try(t, newClient(t), target, func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			cancel()
			*r = *r.WithContext(ctx)
		})
		check(t, v, f, want{retrylens.ClassCancelled, false, true, false}, 0)
	})
	t.Run("cancelled after sending", func(t *testing.T) {
		sent := make(chan struct{})
		target, _ := rawServer(t, func(c *net.TCPConn, _ int, _ string) { close(sent); <-hold })
		v, f := try(t, newClient(t), target, func(r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			go func() { <-sent; cancel() }()
			*r = *r.WithContext(ctx)
		})
		check(t, v, f, want{retrylens.ClassCancelled, false, false, false}, 1)
	})
}

// TestIdleRace: the server takes a second request on a kept connection and closes
// without an answer. With GetBody unset the transport sends once and the outcome is
// unknown; with an Idempotency-Key and GetBody it resends silently, and the second
// failure must not look as if nothing had ever left.
func TestIdleRace(t *testing.T) {
	serve := func(c *net.TCPConn, n int, _ string) {
		if n == 1 {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			readHead(c)
		}
		c.Close()
	}
	warm := func(t *testing.T, serve func(*net.TCPConn, int, string)) (*http.Client, string) {
		target, _ := rawServer(t, serve)
		client := newClient(t)
		if _, f := try(t, client, target, nil); f.Err != nil {
			t.Fatal(f.Err)
		}
		return client, target
	}
	t.Run("one send", func(t *testing.T) {
		client, target := warm(t, serve)
		v, f := try(t, client, target, nil)
		check(t, v, f, unknown, 1)
	})
	t.Run("silent resend", func(t *testing.T) {
		client, target := warm(t, serve)
		v, f := try(t, client, target, func(r *http.Request) {
			r.Header.Set("Idempotency-Key", "k")
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(`{"model":"m"}`)), nil }
		})
		check(t, v, f, unknown, 2)
		if f.Trace.Conns != 2 {
			t.Errorf("%d connections", f.Trace.Conns)
		}
	})
	t.Run("silent resend cannot connect", func(t *testing.T) {
		var dials atomic.Int32
		client, target := warm(t, serve)
		old := client.Transport.(*http.Transport)
		old.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:1")
		}
		v, f := try(t, client, target, func(r *http.Request) {
			r.Header.Set("Idempotency-Key", "k")
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(`{"model":"m"}`)), nil }
		})
		check(t, v, f, unknown, 1)
		if dials.Load() != 1 {
			t.Errorf("%d dials, error %v", dials.Load(), f.Err)
		}
	})
}

func TestTLS(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") })
	quiet := func(s *httptest.Server) *httptest.Server { s.Config.ErrorLog = discard; return s }
	t.Run("unknown authority", func(t *testing.T) {
		srv := quiet(httptest.NewUnstartedServer(ok))
		srv.StartTLS()
		defer srv.Close()
		v, f := try(t, newClient(t), srv.URL, nil)
		check(t, v, f, forever, 0)
	})
	t.Run("wrong host name", func(t *testing.T) {
		srv := quiet(httptest.NewUnstartedServer(ok))
		srv.StartTLS()
		defer srv.Close()
		client := srv.Client()
		client.Transport.(*http.Transport).TLSClientConfig.ServerName = "other.example.org"
		v, f := try(t, client, srv.URL, nil)
		check(t, v, f, forever, 0)
	})
	t.Run("no common version", func(t *testing.T) {
		srv := quiet(httptest.NewUnstartedServer(ok))
		srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
		srv.StartTLS()
		defer srv.Close()
		client := srv.Client()
		client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
		v, f := try(t, client, srv.URL, nil)
		check(t, v, f, presend, 0)
	})
	t.Run("plain HTTP server", func(t *testing.T) {
		srv := quiet(httptest.NewUnstartedServer(ok))
		srv.Start()
		defer srv.Close()
		v, f := try(t, newClient(t), strings.Replace(srv.URL, "http:", "https:", 1), nil)
		check(t, v, f, presend, 0)
	})
	t.Run("closed in the handshake", func(t *testing.T) {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Read(make([]byte, 64))
				c.Close()
			}
		}()
		v, f := try(t, newClient(t), "https://"+l.Addr().String(), nil)
		check(t, v, f, presend, 0)
	})
	t.Run("handshake timeout", func(t *testing.T) {
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		defer l.Close()
		client := newClient(t)
		client.Transport.(*http.Transport).TLSHandshakeTimeout = 20 * time.Millisecond
		v, f := try(t, client, "https://"+l.Addr().String(), nil)
		check(t, v, f, presend, 0)
	})
	t.Run("client certificate demanded", func(t *testing.T) {
		srv := quiet(httptest.NewUnstartedServer(ok))
		srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
		srv.StartTLS()
		defer srv.Close()
		v, f := try(t, srv.Client(), srv.URL, nil)
		// TLS 1.3: the request may have left before the alert came.
		if f.Trace.Sends == 0 {
			check(t, v, f, presend, 0)
		} else {
			check(t, v, f, unknown, 1)
		}
	})
}
