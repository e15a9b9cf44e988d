package alerts_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/alerts"
)

// manner is how an Alertmanager behind a real socket answers a post of these alerts. It returns when it
// is through with the connection.
type manner func(c net.Conn, got []posted, ended <-chan struct{})

const unwell = "HTTP/1.1 503 Service Unavailable\r\n"

// Manners. Those that hang do so until the test ends.
var (
	well manner = func(c net.Conn, _ []posted, _ <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	neverAnswers   manner = func(_ net.Conn, _ []posted, ended <-chan struct{}) { <-ended }
	closesAtOnce   manner = func(net.Conn, []posted, <-chan struct{}) {}
	closesMidBody         = says(unwell+"Content-Length: 100\r\n\r\nhalf", false)
	stallsMidBody         = says(unwell+"Content-Length: 100\r\n\r\nhalf", true)
	stallsAtHeader        = says("HTTP/1.1 200 OK\r\nContent-Le", true)
	endlessHeaders manner = func(c net.Conn, _ []posted, _ <-chan struct{}) { endless(c, "HTTP/1.1 200 OK\r\n", "X-More: 1\r\n") }
	endlessBody    manner = func(c net.Conn, _ []posted, _ <-chan struct{}) { endless(c, unwell+"\r\n", "more and more ") }
)

func says(text string, stalls bool) manner {
	return func(c net.Conn, _ []posted, ended <-chan struct{}) {
		_, _ = io.WriteString(c, text)
		if stalls {
			<-ended
		}
	}
}

func endless(c net.Conn, head, more string) {
	_, err := io.WriteString(c, head)
	for err == nil {
		_, err = io.WriteString(c, strings.Repeat(more, 100))
	}
}

// socket is an Alertmanager that a test gives its manners.
type socket struct {
	address string
	posts   chan []posted // every one that came, whatever became of it
	ended   chan struct{}
	mu      sync.Mutex
	manner  manner
}

func newSocket(t *testing.T, m manner) *socket {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{address: "http://" + l.Addr().String(), posts: make(chan []posted, 100_000), ended: make(chan struct{}), manner: m}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() { close(s.ended); _ = l.Close(); wg.Wait() })
	return s
}

func (s *socket) serve(c net.Conn) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	var got []posted
	if json.NewDecoder(req.Body).Decode(&got) != nil {
		return
	}
	s.mu.Lock()
	m := s.manner
	s.mu.Unlock()
	s.posts <- got
	m(c, got, s.ended)
}

func (s *socket) becomes(m manner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manner = m
}

// next post, which must come.
func (s *socket) next(t *testing.T) []posted {
	t.Helper()
	select {
	case got := <-s.posts:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("nobody posts")
		return nil
	}
}

// sender tells a socket; a post may take that long.
func (s *socket) sender(t *testing.T, timeout time.Duration) *alerts.Alertmanager {
	t.Helper()
	a, err := alerts.NewAlertmanager(s.address, alerts.Links{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.SetTransport(&http.Transport{DisableKeepAlives: true})
	a.SetTimeout(timeout)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { a.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return a
}

// TestAnAlertmanagerThatHangsKeepsNoOther: the others are told meanwhile; it is told everything, as it
// is by then, when it answers again.
func TestAnAlertmanagerThatHangsKeepsNoOther(t *testing.T) {
	for name, bad := range map[string]manner{
		"never answers": neverAnswers, "closes at once": closesAtOnce, "closes in the text": closesMidBody, "stalls in the text": stallsMidBody,
		"stalls in a header": stallsAtHeader, "endless headers": endlessHeaders, "endless text": endlessBody,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hung, good := newSocket(t, bad), newSocket(t, well)
			toHung, toGood := hung.sender(t, 200*time.Millisecond), good.sender(t, time.Hour)
			a, b := firing("A", start), firing("B", start)
			for i := range 4 { // it hangs for four evaluations, in the third of which b is resolved
				at := start.Add(time.Duration(i) * alerts.ResendDelay)
				if i == 2 {
					b = resolved(b, at)
				}
				for _, s := range []*alerts.Alertmanager{toHung, toGood} {
					s.Deliver(at, []*alerts.Alert{a, b})
				}
				if got := good.next(t); len(got) != 2 {
					t.Errorf("evaluation %d: %d alerts", i, len(got))
				}
				hung.next(t)
			}
			hung.becomes(well)
			toHung.Deliver(start.Add(4*alerts.ResendDelay), []*alerts.Alert{a, b})
			got := hung.next(t)
			slices.SortFunc(got, func(x, y posted) int { return strings.Compare(x.Labels["alertname"], y.Labels["alertname"]) })
			if len(got) != 2 || !got[1].EndsAt.Equal(*b.ResolvedAt) || !got[0].EndsAt.After(start.Add(4*alerts.ResendDelay)) {
				t.Errorf("told %+v", got)
			}
		})
	}
}

// TestAnAnswerIsItsStatus: what was taken or refused is, however its text goes on.
func TestAnAnswerIsItsStatus(t *testing.T) {
	for _, status := range []string{"200 OK", "400 Bad Request"} {
		for name, rest := range map[string]manner{
			"stalls": says("HTTP/1.1 "+status+"\r\nContent-Length: 100\r\n\r\nhalf", true),
			"closes": says("HTTP/1.1 "+status+"\r\nContent-Length: 100\r\n\r\nhalf", false),
		} {
			t.Run(status+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newSocket(t, rest)
				sender := s.sender(t, time.Hour) // so no timeout of a post ends it
				sender.Deliver(start, []*alerts.Alert{firing("A", start)})
				s.next(t)
				sender.Deliver(start.Add(15*time.Second), []*alerts.Alert{firing("A", start), firing("B", start)})
				if got := s.next(t); len(got) != 1 || got[0].Labels["alertname"] != "B" {
					t.Errorf("told again: %+v", got)
				}
			})
		}
	}
}

// TestHangingAfterARefusal: a 400 has each alert told alone; if nobody answers to that, the rest is
// left to the next evaluation, which begins with what has not been tried.
func TestHangingAfterARefusal(t *testing.T) {
	s := newSocket(t, func(c net.Conn, got []posted, ended <-chan struct{}) {
		switch bad := func(p posted) bool { return p.Labels["bad"] != "" }; {
		case slices.ContainsFunc(got, bad) && len(got) > 1:
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		case slices.ContainsFunc(got, bad):
			<-ended
		default:
			well(c, got, ended)
		}
	})
	sender := s.sender(t, 200*time.Millisecond)
	all := []*alerts.Alert{firing("Bad", start, "bad", "yes")}
	for i := range 100 {
		all = append(all, firing(fmt.Sprintf("A%02d", i), start))
	}
	told, bad := map[string]bool{}, 0
	for i := 0; len(told) < 100; i++ {
		if i > 3 {
			t.Fatalf("%d told in %d evaluations", len(told), i)
		}
		sender.Deliver(start.Add(time.Duration(i)*15*time.Second), all)
		for { // until the bad one is told alone: then nobody answers
			got := s.next(t)
			for _, p := range got {
				if p.Labels["bad"] == "" && (len(got) == 1 || !slices.ContainsFunc(got, func(p posted) bool { return p.Labels["bad"] != "" })) {
					told[p.Labels["alertname"]] = true
				}
			}
			if len(got) == 1 && got[0].Labels["bad"] != "" {
				bad++
				break
			}
		}
	}
	if bad != 2 {
		t.Errorf("told of the one that hangs %d times", bad)
	}
}

// TestAHangingAlertmanagerHoldsNoMemory: of what waits only the latest is kept, and delivering it
// never waits.
func TestAHangingAlertmanagerHoldsNoMemory(t *testing.T) {
	s := newSocket(t, neverAnswers)
	sender := s.sender(t, time.Hour)
	sender.Deliver(start, []*alerts.Alert{firing("A", start)})
	s.next(t)
	before := heap()
	for i := range 2000 {
		all := make([]*alerts.Alert, 100)
		for k := range all {
			all[k] = firing(fmt.Sprintf("A%d-%d", i, k), start, "padding", strings.Repeat("x", 500))
		}
		sender.Deliver(start.Add(time.Duration(i)*15*time.Second), all)
	}
	if grown := int64(heap()) - int64(before); grown > 20<<20 {
		t.Errorf("%d MB are held", grown>>20)
	}
	if len(s.posts) > 0 {
		t.Error("posts at once")
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
