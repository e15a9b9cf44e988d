package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/retryhttp"
	"github.com/retrylens/retrylens/test/fakeprovider"
)

func redirect(status int, to string) fakeprovider.Step {
	return fakeprovider.Step{Status: status, Body: "moved", Header: http.Header{"Location": {to}}}
}

// TestRedirectsAreNoTries: http.Client follows redirects by calls of its own. They are one
// attempt of one operation, with and without one in the context, that counts each request.
func TestRedirectsAreNoTries(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		for hops := 1; hops <= 3; hops++ {
			t.Run(fmt.Sprintf("%d, %d times", status, hops), func(t *testing.T) {
				r := start(t, func(n int, _ *fakeprovider.Served) fakeprovider.Step {
					if n < hops {
						return redirect(status, chat+"?hop="+fmt.Sprint(n))
					}
					return fakeprovider.Step{}
				}, nil)
				if got, _, err := r.post(keyed(), chat, whole); got != 200 || err != nil {
					t.Fatal(got, err)
				}
				a := r.want(line{0, "first", "success", "", 200, uint16(hops + 1), "full", "delivered", 100, 20, "provider"})
				if a[0].LogicalID != "op" || a[0].Model != "gpt-5-mini" || a[0].Fingerprint == "" || a[0].Revision != uint8(hops) || a[0].Endpoint != chat {
					t.Errorf("%s", a[0].AppendJSON(nil))
				}
				if _, _, err := r.post(context.Background(), chat, whole); err != nil {
					t.Fatal(err)
				}
				r.wire()
			})
		}
	}
}

// TestAttemptsAfterARedirect: what fails behind a redirect is tried again there, as the same
// operation's next attempt; a redirect that is not followed is an answer.
func TestAttemptsAfterARedirect(t *testing.T) {
	r := start(t, fakeprovider.Script(redirect(307, "/moved"+chat), fakeprovider.Step{Status: 503, Body: "{}"}, fakeprovider.Step{}), nil)
	if got, _, err := r.post(keyed(), chat, whole); got != 200 || err != nil {
		t.Fatal(got, err)
	}
	a := r.want(line{0, "first", "error", "unavailable", 503, 2, "none", "", -1, -1, "unknown"}, line{1, "policy", "success", "", 200, 1, "full", "delivered", 100, 20, "provider"})
	if !a[0].OperationStartedAt.Equal(a[1].OperationStartedAt) || a[0].StartedAt.After(a[1].StartedAt) {
		t.Errorf("%v %v", a[0].OperationStartedAt, a[1].OperationStartedAt)
	}
	r.wire()
}

// TestARedirectThatIsNotFollowed is one attempt, whatever the client's reason; its request
// can be used again.
func TestARedirectThatIsNotFollowed(t *testing.T) {
	for name, check := range map[string]func(*http.Request, []*http.Request) error{
		"the last answer": func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		"refused":         func(*http.Request, []*http.Request) error { return errors.New("no") },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, fakeprovider.Script(redirect(307, chat)), nil)
			client := &http.Client{Transport: r.tr, CheckRedirect: check, Timeout: time.Minute}
			req, err := http.NewRequestWithContext(keyed(), http.MethodPost, r.srv.URL+chat, strings.NewReader(whole))
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := client.Do(req); resp != nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				_ = err
			}
			if a := r.m.all(t); len(a) != 1 || a[0].UpstreamCalls.Value != 1 || a[0].Status.Value != 307 {
				t.Errorf("%+v", lines(a))
			}
			r.wire()
		})
	}
}

// TestARedirectToARefusal: a call that a redirect leads to and that is refused is an attempt
// that was not sent; the one before keeps its count.
func TestARedirectToARefusal(t *testing.T) {
	r := start(t, fakeprovider.Script(redirect(307, chat)), func(o *retryhttp.Options) {
		o.Retry.Limits = limits()
		o.Retry.Limits.Bulkhead.Limit, o.Retry.Limits.Bulkhead.Min = 1, 1
	})
	client := r.tr.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return nil } // without end
	ctx, cancel := context.WithCancel(keyed())
	defer cancel()
	n := 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		if n++; n == 300 {
			cancel()
		}
		return nil
	}
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.srv.URL+chat, strings.NewReader(whole))
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Error("a redirect without end has ended")
	}
	a := r.m.all(t)
	if len(a) != 2 || a[0].UpstreamCalls.Value != 300 || a[1].Outcome != retrylens.OutcomeShed || a[1].UpstreamCalls.Value != 0 {
		t.Errorf("%+v", lines(a))
	}
	r.wire()
}

// TestARedirectSpendsNoAttempts: the policy bounds the attempts of the operation, wherever redirects
// lead in between.
func TestARedirectSpendsNoAttempts(t *testing.T) {
	for failures := range 4 { // before each redirect, of three attempts in all
		t.Run(fmt.Sprintf("%d failures, then a redirect", failures), func(t *testing.T) {
			r := start(t, func(n int, _ *fakeprovider.Served) fakeprovider.Step {
				if n%(failures+1) == failures {
					return redirect(307, chat+"?n="+fmt.Sprint(n))
				}
				return fakeprovider.Step{Status: 503, Body: "{}"}
			}, nil)
			_, _, _ = r.post(keyed(), chat, whole)
			want := int(fast().Attempts)
			if failures == 0 {
				want = 1
			}
			if a := r.m.all(t); len(a) != want || failures > 0 && a[want-1].StopReason != retrylens.StopMaxAttempts {
				t.Errorf("%d attempts, %+v", len(a), lines(a))
			}
			r.wire()
		})
	}
}

// elsewhere is a provider on another host, which refuses every credential.
func elsewhere(t *testing.T) *fakeprovider.Server {
	s := fakeprovider.Start(func(int, *fakeprovider.Served) fakeprovider.Step { return fakeprovider.Step{Status: 401} })
	t.Cleanup(s.Close)
	return s
}

// TestARedirectToAnotherHost: it is asked for no credential and gets the key only where one is named
// for whom it is itself.
func TestARedirectToAnotherHost(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprint("a header is named: ", named), func(t *testing.T) {
			other := elsewhere(t)
			to := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
			r := start(t, fakeprovider.Script(redirect(307, to+chat)), func(o *retryhttp.Options) {
				o.Provider = func(r *http.Request) string {
					if r.URL.Hostname() == "localhost" {
						return "other"
					}
					return "openai"
				}
				if named {
					o.KeyHeaders = map[string]string{"openai": "Idempotency-Key", "other": "X-Key"}
				}
				o.Refresh = func(_ context.Context, _ string, h http.Header) error {
					h.Set("Authorization", "Bearer new")
					return nil
				}
			})
			if code, _, err := r.post(keyed(), chat, whole, "Authorization", "Bearer old"); code != 401 || err != nil {
				t.Fatal(code, err)
			}
			served := other.Served()
			if len(served) != 1 {
				t.Fatalf("%d requests", len(served))
			}
			h := served[0].Header
			if h.Get("Authorization") != "" || h.Get("Idempotency-Key") != "" || (h.Get("X-Key") != "") != named {
				t.Errorf("the other host got %v", h)
			}
			if a := r.m.all(t); len(a) != 1 || a[0].UpstreamCalls.Value != 2 || a[0].Provider != "openai" || a[0].Status.Value != 401 {
				t.Errorf("%+v", lines(a))
			}
		})
	}
}

// TestACredentialBehindARedirect on the same host is asked for as ever.
func TestACredentialBehindARedirect(t *testing.T) {
	r := start(t, func(n int, v *fakeprovider.Served) fakeprovider.Step {
		switch {
		case n == 0:
			return redirect(307, "/moved"+chat)
		case v.Header.Get("Authorization") != "Bearer new":
			return fakeprovider.Step{Status: 401}
		}
		return fakeprovider.Step{}
	}, func(o *retryhttp.Options) {
		o.Refresh = func(_ context.Context, _ string, h http.Header) error {
			h.Set("Authorization", "Bearer new")
			return nil
		}
	})
	if code, _, err := r.post(keyed(), chat, whole, "Authorization", "Bearer old"); code != 200 || err != nil {
		t.Error(code, err)
	}
	r.wire()
}

// again is a layer between http.Client and the transport that sends what is behind a redirect so often.
type again struct {
	http.RoundTripper
	times int
}

func (l again) RoundTrip(r *http.Request) (*http.Response, error) {
	for i := 1; r.Response != nil && i < l.times; i++ {
		copied := r.Clone(r.Context())
		copied.Body, _ = r.GetBody()
		resp, err := l.RoundTripper.RoundTrip(copied)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return l.RoundTripper.RoundTrip(r)
}

// TestARequestBehindARedirectSentAgain by a layer in between is another attempt: each request is counted.
func TestARequestBehindARedirectSentAgain(t *testing.T) {
	for _, context := range []func() context.Context{keyed, context.Background} {
		for times := 1; times <= 3; times++ {
			r := start(t, fakeprovider.Script(redirect(307, chat), fakeprovider.Step{}, fakeprovider.Step{}, fakeprovider.Step{}), nil)
			req, err := http.NewRequestWithContext(context(), http.MethodPost, r.srv.URL+chat, strings.NewReader(whole))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := (&http.Client{Transport: again{r.tr, times}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			a := r.m.all(t)
			if len(a) != times {
				t.Errorf("%d attempts for %d: %+v", len(a), times, lines(a))
			}
			for i := range a {
				if a[i].LogicalID != a[0].LogicalID || i > 0 && a[i].Cause != retrylens.CauseRedelivery {
					t.Errorf("%s", a[i].AppendJSON(nil))
				}
			}
			r.wire()
		}
	}
}
