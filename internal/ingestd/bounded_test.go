package ingestd_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/ingestd"
)

// patience is far above every bound that these tests ask for.
const patience = 8 * time.Second

// serve puts a handler behind a server as the service has it.
func serve(t *testing.T, h http.Handler) (*http.Server, string) {
	t.Helper()
	l, err := ingestd.Listen("127.0.0.1:0", ingestd.TLSFiles{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := ingestd.NewServer(h, slog.New(slog.DiscardHandler))
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return server, l.Addr().String()
}

func dial(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A body that does not come, or hardly, holds no connection: it is answered and
// closed, whatever the path, the token and the length.
func TestBodiesThatDoNotComeAreAnsweredAndClosed(t *testing.T) {
	s := start(t, func(o *ingestd.Options) { o.Pace = ingestd.Pace{Stall: 100 * time.Millisecond, Grace: time.Second} })
	_, addr := serve(t, s.h.Routes())
	post := func(token, head, body string) string {
		return "POST /v1/attempts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/x-ndjson\r\n" + head + "\r\n\r\n" + body
	}
	const kib = "Content-Length: 1000"
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"good token":          {post("acme", kib, ""), 408},
		"good token, begun":   {post("acme", kib, "0123456789"), 408},
		"good token, gzip":    {post("acme", kib+"\r\nContent-Encoding: gzip", ""), 408},
		"good token, zstd":    {post("acme", kib+"\r\nContent-Encoding: zstd", ""), 408},
		"good token, chunked": {post("acme", "Transfer-Encoding: chunked", "5\r\n{"), 408},
		"bad token":           {post("no", kib, ""), 401},
		"bad token, 250 kB":   {post("no", "Content-Length: 250000", ""), 401},
		"bad token, 300 kB":   {post("no", "Content-Length: 300000", ""), 401},
		"bad token, chunked":  {post("no", "Transfer-Encoding: chunked", ""), 401},
		"415":                 {post("acme", kib+"\r\nContent-Encoding: br", ""), 415},
		"413 in the middle":   {post("acme", "Content-Length: 200000", strings.Repeat("1\n", 50_002)), 413},
		"404":                 {"POST /x HTTP/1.1\r\nHost: x\r\n" + kib + "\r\n\r\n", 404},
		"405":                 {"PUT /v1/attempts HTTP/1.1\r\nHost: x\r\n" + kib + "\r\n\r\n", 405},
		"health":              {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + kib + "\r\n\r\n", 200},
		"ready":               {"GET /readyz HTTP/1.1\r\nHost: x\r\n" + kib + "\r\n\r\n", 200},
		"metrics":             {"GET /metrics HTTP/1.1\r\nHost: x\r\n" + kib + "\r\n\r\n", 200},
	} {
		for _, trickles := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, trickle %v", name, trickles), func(t *testing.T) {
				t.Parallel()
				conn := dial(t, addr, c.request)
				if trickles {
					go trickle(conn)
				}
				in := bufio.NewReader(conn)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				want := c.status
				if trickles && name == "good token, gzip" && resp.StatusCode != http.StatusRequestTimeout {
					want = 400 // what trickles is no gzip, if it comes in time
				}
				if resp.StatusCode != want {
					t.Errorf("got %d, want %d", resp.StatusCode, want)
				}
				if _, err := in.ReadByte(); err == nil || isTimeout(err) {
					t.Errorf("not closed: %v", err)
				}
			})
		}
	}
}

func trickle(conn net.Conn) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := conn.Write([]byte("1")); err != nil {
			return
		}
	}
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// A body that is refused but comes at once leaves its connection as it was.
func TestARefusedBodyThatComesKeepsItsConnection(t *testing.T) {
	s := start(t, nil)
	_, addr := serve(t, s.h.Routes())
	body := ndjson(0, 100)
	request := fmt.Sprintf("POST /v1/attempts HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	conn := dial(t, addr, request+request)
	in := bufio.NewReader(conn)
	for range 2 {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusUnauthorized || resp.Close {
			t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
		}
	}
}

// A request that does not end takes its share of the grace and no more.
func TestStopCutsOffRequestsThatDoNotEnd(t *testing.T) {
	s := start(t, func(o *ingestd.Options) { o.Pace = ingestd.Pace{Stall: time.Minute, Grace: time.Hour} })
	inHandler := make(chan struct{})
	routes := s.h.Routes()
	server, addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(inHandler)
		routes.ServeHTTP(w, r)
	}))
	conn := dial(t, addr, "POST /v1/attempts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer acme\r\nContent-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n")
	<-inHandler
	began := time.Now()
	if err := ingestd.Stop(server, 50*time.Millisecond); err == nil {
		t.Error("nothing was cut off")
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("took %v", took)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("not closed: %v", err)
	}
}

// What the HTTP library answers before a request reaches the service, as
// docs/cli.md tells it: no problem+json, and the connection is closed.
func TestWhatTheLibraryAnswers(t *testing.T) {
	s := start(t, nil)
	_, addr := serve(t, s.h.Routes())
	const post = "POST /v1/attempts HTTP/1.1\r\nHost: x\r\n"
	for request, status := range map[string]int{
		"nonsense\r\n\r\n": 400,
		"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 30_000) + "\r\n\r\n": 431,
		post + "Content-Length: 500\r\nExpect: more\r\n\r\n":                                 417, // and the body never comes
		post + "Transfer-Encoding: chunked\r\nExpect: more\r\n\r\n":                          417,
		post + "Transfer-Encoding: gzip\r\n\r\n":                                             501,
	} {
		conn := dial(t, addr, request)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Errorf("%d: %v", status, err)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%d: the connection stays open: %v", status, err)
		}
		if media := resp.Header.Get("Content-Type"); resp.StatusCode != status || !resp.Close || media != "" && !strings.HasPrefix(media, "text/plain") {
			t.Errorf("want %d: got %d, close %v, %q", status, resp.StatusCode, resp.Close, media)
		}
	}
}

// TestOptionsOfEverythingIsAnswered at once, whatever body was announced.
func TestOptionsOfEverythingIsAnswered(t *testing.T) {
	s := start(t, nil)
	_, addr := serve(t, s.h.Routes())
	resp, err := http.ReadResponse(bufio.NewReader(dial(t, addr, "OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n")), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("%s", resp.Status)
	}
}
