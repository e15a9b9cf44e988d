package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// TestCallerLeaves in each phase, with and without a cause of its own: it is never the
// provider's failure.
func TestCallerLeaves(t *testing.T) {
	stop := errors.New("the user pressed stop")
	for _, cause := range []error{nil, stop} {
		for _, c := range []struct {
			name, body string
			step       step
			want       line
		}{
			{"before headers", whole, step{Break: fakeprovider.Hang}, line{0, first, retrylens.OutcomeAbandoned, "cancelled", 0, 1, none, "caller_gone", -1, -1, "unknown"}},
			{"inside a stream", stream, step{Chunks: 2, ChunkDelay: time.Hour}, line{0, first, retrylens.OutcomeAbandoned, "cancelled", 200, 1, part, "caller_gone", -1, 2, "estimated"}},
		} {
			r := start(t, script(c.step), nil)
			ctx, cancel := context.WithCancelCause(keyed())
			time.AfterFunc(150*time.Millisecond, func() { cancel(cause) })
			_, _, err := r.post(ctx, chat, c.body)
			if cause == nil && !errors.Is(err, context.Canceled) || cause != nil && !errors.Is(err, cause) {
				t.Errorf("%s, cause %v: %v", c.name, cause, err)
			}
			r.want(c.want)
		}
	}
}

// TestNeverClosed: an answer that nobody reads or closes has its record once the transport is closed.
func TestNeverClosed(t *testing.T) {
	r := start(t, nil, nil)
	for range 3 {
		if _, err := r.do(context.Background(), chat, whole); err != nil { //nolint:bodyclose // what is tested
			t.Fatal(err)
		}
	}
	if err := r.tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := line{0, first, retrylens.OutcomeAbandoned, "cancelled", 200, 1, none, "caller_gone", -1, -1, "unknown"}
	r.want(left, left, left)
}

// TestReadsWhileClosed: one goroutine may close what another one reads.
func TestReadsWhileClosed(t *testing.T) {
	r := start(t, script(step{Chunks: 20}), nil)
	for range 100 {
		resp, err := r.do(keyed(), chat, stream)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		wg.Go(func() { _ = resp.Body.Close() })
		wg.Wait()
	}
	if n := len(r.m.all(t)); n != 100 {
		t.Errorf("%d records", n)
	}
	r.wire()
}

// TestCallersHooks: hooks of one call are not called for another.
func TestCallersHooks(t *testing.T) {
	r := start(t, nil, nil)
	var calls atomic.Int32
	hooked := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{WroteHeaders: func() { calls.Add(1) }})
	for _, ctx := range []context.Context{hooked, context.Background()} {
		for range 20 {
			if _, _, err := r.post(ctx, chat, whole); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := calls.Load(); n != 20 {
		t.Errorf("called %d times for 20 calls", n)
	}
	r.wire()
}

// TestRequestUsedAgain: a request is the caller's again once its answer has ended, though
// its record is completed later.
func TestRequestUsedAgain(t *testing.T) {
	s := &kept{}
	records, err := emit.New(emit.Options{Sink: s, FlushEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, nil, func(o *retryhttp.Options) { o.Records = records })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.srv.URL, strings.NewReader(`{"contents":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"one", "two", "three"} {
		req.URL.Path = "/v1beta/models/" + model + ":generateContent"
		if req.Body, err = req.GetBody(); err != nil {
			t.Fatal(err)
		}
		resp, err := r.tr.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err := records.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, model := range []string{"one", "two", "three"} {
		if want := `"model":"` + model + `",`; !strings.Contains(strings.Split(s.String(), "\n")[i], want) {
			t.Errorf("record %d lacks %s:\n%s", i, want, s)
		}
	}
}

// kept is a sink that keeps what it is given.
type kept struct{ strings.Builder }

func (k *kept) Send(_ context.Context, lines []byte, _ int) (emit.Result, error) {
	k.Write(lines)
	return emit.Result{}, nil
}

func (k *kept) Close() error { return nil }

// TestSwitchingProtocols: the connection after a 101 can be written to.
func TestSwitchingProtocols(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		said, _ := buf.ReadString('\n')
		_, _ = io.WriteString(conn, "echo "+said)
	}))
	defer srv.Close()
	r := start(t, nil, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/realtime", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := r.tr.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("%T cannot be written to", resp.Body)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if said, err := io.ReadAll(conn); err != nil || string(said) != "echo hello\n" {
		t.Errorf("%q %v", said, err)
	}
	conn.Close()
	r.want(line{0, first, retrylens.OutcomeSuccess, "", 101, 1, retrylens.DeliveryFull, "delivered", -1, -1, "unknown"})
}
