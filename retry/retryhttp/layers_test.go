package retryhttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/op"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

// once is a policy of a single attempt: all retries are those of the SDK above.
func once(o *retryhttp.Options) {
	p := fast()
	p.Attempts = 1
	o.Retry.Policy = p
}

// TestSDKRetries: the tries of an SDK are attempts of one operation, with cause sdk,
// whether the context names it, the SDK's call has an id, or the request alone tells.
func TestSDKRetries(t *testing.T) {
	stainless := func(n int) []string {
		return []string{"X-Stainless-Retry-Count", strconv.Itoa(n), "Authorization", "Bearer a"}
	}
	aws := func(n int) []string {
		return []string{"amz-sdk-invocation-id", "inv-1", "amz-sdk-request", fmt.Sprintf("ttl=20261130T120000Z; attempt=%d; max=3", n+1)}
	}
	for _, c := range []struct {
		name   string
		ctx    context.Context
		header func(int) []string
		id     string
	}{
		{"operation in the context", keyed(), stainless, "op"},
		{"stainless without an operation", context.Background(), stainless, ""},
		{"aws without an operation", context.Background(), aws, "inv-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, script(step{Status: 503}, step{Status: 503}, step{}), once)
			for n := range 3 {
				if _, _, err := r.post(c.ctx, chat, whole, c.header(n)...); err != nil {
					t.Fatal(err)
				}
			}
			records := r.m.all(t)
			for i, a := range records {
				if a.LogicalID != records[0].LogicalID || c.id != "" && a.LogicalID != c.id || a.LogicalID == "" || a.Attempt != int32(i) || (a.Cause == sdk) != (i > 0) ||
					!a.OperationStartedAt.Equal(records[0].OperationStartedAt) {
					t.Errorf("record %d: %s", i, a.AppendJSON(nil))
				}
			}
			if len(records) != 3 || records[2].Outcome != retrylens.OutcomeSuccess {
				t.Errorf("%+v", lines(records))
			}
			r.wire()
		})
	}
}

// TestLayersMultiply: our retries below those of an SDK, numbered through.
func TestLayersMultiply(t *testing.T) {
	r := start(t, script(step{Status: 503}), func(o *retryhttp.Options) {
		p := fast()
		p.Attempts = 2
		o.Retry.Policy = p
	})
	ctx := keyed()
	for n := range 2 {
		_, _, _ = r.post(ctx, chat, whole, "X-Stainless-Retry-Count", strconv.Itoa(n))
	}
	var got []string
	for _, a := range r.m.all(t) {
		got = append(got, fmt.Sprint(a.Attempt, " ", a.Cause))
	}
	if want := "0 first,1 policy,2 sdk,3 policy"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestUnknownPast: an SDK's third try whose first two were not seen here.
func TestUnknownPast(t *testing.T) {
	r := start(t, script(step{}), nil)
	_, _, _ = r.post(context.Background(), chat, whole, "X-Stainless-Retry-Count", "2")
	_, _, _ = r.post(context.Background(), chat, whole, "X-Stainless-Retry-Count", "junk")
	a := r.m.all(t)
	if len(a) != 2 || a[0].Attempt != 2 || a[0].Cause != sdk || a[1].Attempt != 0 || a[1].Cause != first || a[0].LogicalID == a[1].LogicalID {
		t.Errorf("%+v", lines(a))
	}
}

// TestRedelivery: the same operation again from outside.
func TestRedelivery(t *testing.T) {
	r := start(t, script(step{}), nil)
	_, _, _ = r.post(op.With(context.Background(), op.Operation{ID: "m", Key: "k", Deliveries: 2, StartedAt: time.Now().Add(-time.Minute)}), chat, whole)
	a := r.m.all(t)
	if len(a) != 1 || a[0].Attempt != 200 || a[0].Cause != retrylens.CauseRedelivery || a[0].StartedAt.Sub(a[0].OperationStartedAt) < time.Minute {
		t.Errorf("%s", a[0].AppendJSON(nil))
	}
}

// TestTwoCallsAtOnce share an operation by mistake: their records stay valid and apart.
func TestTwoCallsAtOnce(t *testing.T) {
	r := start(t, script(step{Delay: 50 * time.Millisecond}), nil)
	ctx, done := keyed(), make(chan struct{})
	for range 4 {
		go func() {
			_, _, _ = r.post(ctx, chat, whole)
			done <- struct{}{}
		}()
	}
	seen := map[int32]bool{}
	for range 4 {
		<-done
	}
	for _, a := range r.m.all(t) {
		if seen[a.Attempt] {
			t.Errorf("attempt %d twice", a.Attempt)
		}
		seen[a.Attempt] = true
	}
	r.wire()
}

// TestSilentResends: net/http resends a request with an Idempotency-Key on a reused
// connection that breaks. With a body we switch that off and try again ourselves.
func TestSilentResends(t *testing.T) {
	var requests atomic.Int32
	addr := rawServer(t, func(conn net.Conn, n int) bool {
		requests.Add(1)
		if n == 1 { // the second request on a connection dies
			return false
		}
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
		return err == nil
	})
	m := &memory{}
	tr, err := retryhttp.New(retryhttp.Options{Base: &http.Transport{}, Records: m, Provider: func(*http.Request) string { return "openai" },
		KeyHeaders: map[string]string{"openai": "Idempotency-Key"}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, body string) {
		t.Helper()
		var b io.Reader
		if body != "" {
			b = strings.NewReader(body)
		}
		req, _ := http.NewRequestWithContext(op.With(context.Background(), op.Operation{Key: "k"}), method, "http://"+addr+"/v1/x", b)
		resp, err := tr.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	send("POST", "{}")
	send("POST", "{}") // dies, and is tried again by the policy, on a new connection
	a := m.all(t)
	if got := lines(a); len(got) != 3 || got[1].Class != "transport_unknown" || got[1].Calls != 1 || got[2].Cause != policy {
		t.Errorf("%+v", got)
	}
	send("GET", "") // without a body Go resends by itself: one attempt, two calls
	a = m.all(t)
	if got := lines(a); len(got) != 4 || got[3].Calls != 2 || got[3].Outcome != retrylens.OutcomeSuccess {
		t.Errorf("%+v", got)
	}
	sum := 0
	for _, x := range a {
		sum += int(x.UpstreamCalls.Value)
	}
	if int(requests.Load()) != sum {
		t.Errorf("the server counted %d requests, the records %d", requests.Load(), sum)
	}
}

// rawServer answers requests on raw connections: answer is told the number of the
// request on its connection and says whether to go on.
func rawServer(t *testing.T, answer func(net.Conn, int) bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for n := 0; ; n++ {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if !answer(conn, n) {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestHTTP2Refused: a refused stream is resent by Go up to seven times behind the
// caller's back; with our body it is not, and the refusal is a pre-send failure.
func TestHTTP2Refused(t *testing.T) {
	var streams atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.EnableHTTP2 = true
	srv.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
		refuseFirst(conn, &streams)
	}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	m := &memory{}
	base, _ := srv.Client().Transport.(*http.Transport)
	tr, err := retryhttp.New(retryhttp.Options{Base: base, Records: m})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Client().Post(srv.URL+"/v1/x", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	got := lines(m.all(t))
	if len(got) != 2 || got[0].Class != "transport_presend" || got[0].Calls != 1 || got[1].Cause != policy || got[1].Outcome != retrylens.OutcomeSuccess {
		t.Errorf("%+v", got)
	}
	if n := streams.Load(); n != 2 {
		t.Errorf("%d streams on the wire, want 2", n)
	}
}

// refuseFirst is an HTTP/2 server that refuses its first stream and answers the others.
func refuseFirst(conn *tls.Conn, streams *atomic.Int32) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch v := frame.(type) {
		case *http2.SettingsFrame:
			if !v.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if streams.Add(1) == 1 {
				_ = f.WriteRSTStream(v.StreamID, http2.ErrCodeRefusedStream)
				continue
			}
			var block strings.Builder
			enc := hpack.NewEncoder(&block)
			_ = enc.WriteField(hpack.HeaderField{Name: ":status", Value: "204"})
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: v.StreamID, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: true})
		}
	}
}

const problem = "application/problem+json"

// TestGateway: key and operation go along; a key in flight is asked for again under the
// same key; which attempt of the gateway answered is kept.
func TestGateway(t *testing.T) {
	inFlight := step{Status: 409, Body: `{"title":"in flight"}`, Header: http.Header{"Content-Type": {problem}, "Retry-After": {"0"}}}
	r := start(t, script(inFlight, inFlight, step{Header: http.Header{"Retrylens-Attempt": {"3"}}}), nil)
	host := strings.TrimPrefix(r.srv.URL, "http://")
	tr, err := retryhttp.New(retryhttp.Options{Base: &http.Transport{}, Records: r.m, Gateways: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	r.tr = tr
	ctx := op.With(context.Background(), op.Operation{ID: "a;b", Key: "key"})
	if code, _, err := r.post(ctx, "/anthropic/v1/messages", whole); code != 200 || err != nil {
		t.Fatalf("%d %v", code, err)
	}
	want := delivered(2, policy)
	a := r.want(line{0, first, "in_flight", "conflict", 409, 0, none, "", -1, -1, "unknown"}, line{1, policy, "in_flight", "conflict", 409, 0, none, "", -1, -1, "unknown"}, want)
	if a[2].ServedBy.Value != 3 || !a[2].ServedBy.Set || a[2].Provider != "anthropic" || a[2].LogicalID != "a;b" {
		t.Errorf("%s", a[2].AppendJSON(nil))
	}
	for i, v := range r.srv.Served() {
		cause := "first"
		if i > 0 {
			cause = "policy"
		}
		prefix, suffix := "id=a%3Bb;started=", fmt.Sprintf(";attempt=%d;cause=%s", i, cause)
		if got := v.Header.Get("Retrylens-Operation"); !strings.HasPrefix(got, prefix) || !strings.HasSuffix(got, suffix) {
			t.Errorf("request %d: %q", i, got)
		}
		if v.Header.Get("Idempotency-Key") != "key" {
			t.Errorf("request %d went without the key", i)
		}
	}
}

// TestGatewayInFlightTooLong: the wait does not fit the deadline.
func TestGatewayInFlightTooLong(t *testing.T) {
	r := start(t, script(step{Status: 409, Body: `{}`, Header: http.Header{"Content-Type": {problem}, "Retry-After": {"3600"}}}), nil)
	p := fast()
	p.Cap, p.WallClockBudget = 20*time.Second, 5*time.Second
	r.tr, _ = retryhttp.New(retryhttp.Options{Base: &http.Transport{}, Records: r.m, Gateways: []string{"127.0.0.1"}, Retry: retry.Options{Policy: p}})
	if code, _, err := r.post(keyed(), "/openai"+chat, whole); code != 409 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	a := r.m.all(t)
	if len(a) != 1 || a[0].Outcome != retrylens.OutcomeInFlight || a[0].RetryAfterMS.Value != 3_600_000 || !a[0].Final.Value || a[0].UpstreamCalls.Value != 0 {
		t.Errorf("%s", a[0].AppendJSON(nil))
	}
}

func TestGatewayMismatch(t *testing.T) {
	r := start(t, script(step{Status: 422, Body: `{"title":"other body"}`, Header: http.Header{"Content-Type": {problem}}}), nil)
	r.tr, _ = retryhttp.New(retryhttp.Options{Base: &http.Transport{}, Records: r.m, Gateways: []string{"127.0.0.1"}})
	if code, _, err := r.post(keyed(), "/openai"+chat, whole); code != 422 || err != nil {
		t.Errorf("%d %v", code, err)
	}
	r.want(line{0, first, "key_mismatch", "invalid_request", 422, 0, none, "not_retryable", -1, -1, "unknown"})
}

// TestHedge: the copy that loses is recorded once, and its connection is freed.
func TestHedge(t *testing.T) {
	r := start(t, func(n int, _ *fakeprovider.Served) step {
		if n == 30 {
			return step{Break: fakeprovider.Hang}
		}
		return step{}
	}, func(o *retryhttp.Options) {
		l := limits()
		l.Hedging.Enabled, l.Hedging.Share = true, 1
		o.Retry.Limits = l
	})
	for i := range 31 {
		ctx := op.With(context.Background(), op.Operation{ID: strconv.Itoa(i), Key: strconv.Itoa(i), HedgeSafe: true})
		if code, _, err := r.post(ctx, chat, whole); code != 200 || err != nil {
			t.Fatalf("%d: %d %v", i, code, err)
		}
	}
	if err := r.tr.Close(context.Background()); err != nil {
		t.Error(err)
	}
	a := r.m.all(t)
	lost, hedges := 0, 0
	for _, x := range a {
		if x.Outcome == retrylens.OutcomeHedgeLost {
			lost++
		}
		if x.Cause == retrylens.CauseHedge {
			hedges++
		}
	}
	if lost == 0 || lost != hedges || len(a) != 31+lost {
		t.Errorf("%d lost, %d hedges, %d records", lost, hedges, len(a))
	}
	if n := len(r.srv.Served()); n > len(a) { // of a cancelled copy the server may have seen nothing
		t.Errorf("the server counted %d requests, the records %d", n, len(a))
	}
}

// deaf is a base that goes on after its caller has left: the request with that number is
// answered once a later one was.
type deaf struct {
	base http.RoundTripper
	late int32
	n    atomic.Int32
	next chan struct{}
}

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	n := d.n.Add(1) - 1
	if n == d.late {
		<-d.next
		<-r.Context().Done()
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	resp, err := d.base.RoundTrip(r)
	if n == d.late+1 {
		close(d.next)
	}
	return resp, err
}

// TestDurationOfTheLoser: a copy that lost lasted until it was cancelled, whether it was still waiting then
// or answers all the same.
func TestDurationOfTheLoser(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := start(t, func(n int, _ *fakeprovider.Served) step {
			if n == 30 && !late {
				return step{Break: fakeprovider.Hang}
			}
			return step{Delay: 5 * time.Millisecond}
		}, func(o *retryhttp.Options) {
			l := limits()
			l.Hedging.Enabled, l.Hedging.Share = true, 1
			o.Retry.Limits = l
			if late {
				o.Base = &deaf{base: o.Base, late: 30, next: make(chan struct{})}
			}
		})
		for i := range 31 {
			ctx := op.With(context.Background(), op.Operation{ID: strconv.Itoa(i), Key: strconv.Itoa(i), HedgeSafe: i == 30})
			if code, _, err := r.post(ctx, chat, whole); code != 200 || err != nil {
				t.Fatalf("%d: %d %v", i, code, err)
			}
		}
		if err := r.tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
		a := r.m.all(t)[30:]
		if len(a) != 2 {
			t.Fatalf("%+v", lines(a))
		}
		slices.SortFunc(a, func(x, y retrylens.Attempt) int { return int(x.Attempt - y.Attempt) })
		after := a[1].StartedAt.Sub(a[0].StartedAt).Milliseconds()
		if a[0].Outcome != retrylens.OutcomeHedgeLost || after == 0 || a[0].DurationMS.Value < after || a[1].Outcome != retrylens.OutcomeSuccess {
			t.Errorf("late %v: the copy started %d ms after\n%s\n%s", late, after, a[0].AppendJSON(nil), a[1].AppendJSON(nil))
		}
	}
}

// TestShed: an attempt that the breaker refuses is a record, and no call.
func TestShed(t *testing.T) {
	r := start(t, script(step{Status: 503}), func(o *retryhttp.Options) {
		once(o)
		l := limits()
		l.Breaker.Consecutive = 2
		o.Retry.Limits = l
	})
	for range 2 {
		_, _, _ = r.post(context.Background(), chat, whole)
	}
	_, _, err := r.post(keyed(), chat, whole)
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	a := r.m.all(t)
	if len(a) != 3 || a[2].Outcome != retrylens.OutcomeShed || a[2].StopReason != retrylens.StopBreakerOpen || a[2].UpstreamCalls.Value != 0 || a[2].Model != "gpt-5-mini" {
		t.Errorf("%+v", lines(a))
	}
	r.wire()
}

// TestGatewaysAsTheyAreWritten: however the host is written it is the same one, with and without its port.
func TestGatewaysAsTheyAreWritten(t *testing.T) {
	for _, c := range []struct {
		option, url string
		want        bool
	}{
		{"gw.example", "http://gw.example/", true}, {"gw.example", "https://GW.Example:8443/", true}, {"Gw.example:443", "https://gw.EXAMPLE/", true},
		{"gw.example:80", "http://gw.example/", true}, {"gw.example:80", "http://gw.example:80/", true}, {"gw.example", "http://gw.example./", true},
		{"gw.example.:80", "http://gw.example/", true}, {"::1", "http://[::1]:8080/", true}, {"::1", "http://[::1]/", true}, {"[::1]", "http://[::1]:8080/", true},
		{"[::1]:80", "http://[::1]/", true}, {"10.0.0.1", "http://10.0.0.1:9/", true},
		{"gw.example:443", "http://gw.example/", false}, {"gw.example:80", "https://gw.example/", false}, {"gw.example:8080", "http://gw.example/", false},
		{"gw.example", "http://evil.gw.example/", false}, {"gw.example", "http://gw.example.evil/", false}, {"gw.example", "http://gw.example@evil/", false},
		{"::1", "http://[::2]/", false}, {"[::1]:80", "http://[::1]:8080/", false},
	} {
		var sent http.Header
		tr, err := retryhttp.New(retryhttp.Options{Gateways: []string{c.option}, Base: base(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(keyed(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := sent.Get("Idempotency-Key") != ""; got != c.want {
			t.Errorf("%s at gateway %s: %v", c.url, c.option, got)
		}
	}
	for _, bad := range []string{"", ":8080", "http://gw.example", "gw.example/v1", "a@gw.example"} {
		if _, err := retryhttp.New(retryhttp.Options{Gateways: []string{bad}}); err == nil {
			t.Errorf("%q is taken for a host", bad)
		}
	}
}

type base func(*http.Request) (*http.Response, error)

func (b base) RoundTrip(r *http.Request) (*http.Response, error) { return b(r) }
