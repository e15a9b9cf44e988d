package alerts_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/alerts"
)

// TestWebhookAddressesStaySecret: user, password, path and query are in no name and no error,
// not even when the receiver repeats them; two webhooks of one host have two names.
func TestWebhookAddressesStaySecret(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		user, password, _ := r.BasicAuth()
		_, _ = io.WriteString(w, strings.Join([]string{"no", r.RequestURI, r.URL.Path, r.URL.RawQuery, user, password}, " "))
	}))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	defer srv.Close()
	names := map[string]bool{}
	for _, base := range []string{srv.URL, gone.URL} {
		for _, rest := range []string{"/services/T0/s3cret", "/services/T0/s3cret-2", "/hook?token=s3cret", "/s3cret%20path", "/"} {
			hook, err := alerts.NewWebhook(strings.Replace(base, "http://", "http://us3r:hunter2@", 1)+rest, alerts.Links{})
			if err != nil {
				t.Fatal(err)
			}
			err = hook.Tell(t.Context(), firing("A", start))
			if err == nil {
				t.Fatal("a 404 and a closed port are no deliveries")
			}
			for _, secret := range []string{"s3cret", "us3r", "hunter2", "token"} {
				if strings.Contains(hook.Name(), secret) || strings.Contains(err.Error(), secret) {
					t.Errorf("%s is told: %s, %v", secret, hook.Name(), err)
				}
			}
			if names[hook.Name()] || !strings.Contains(hook.Name(), strings.TrimPrefix(base, "http://")) {
				t.Errorf("name %s", hook.Name())
			}
			names[hook.Name()] = true
		}
	}
}

// TestAResolutionIsToldHoweverLateItCanBe: a receiver that was away is told when it comes back,
// before and after the alert is shown no more, through restarts and new episodes, once; and
// not after a day.
func TestAResolutionIsToldHoweverLateItCanBe(t *testing.T) {
	for _, c := range []struct {
		away    time.Duration
		restart bool
		again   bool // the alert fires again meanwhile
		told    string
	}{
		{10 * time.Minute, false, false, "[firing p resolved p]"},
		{16 * time.Minute, false, false, "[firing p resolved p]"},
		{16 * time.Minute, true, false, "[firing p resolved p]"},
		{20 * time.Hour, false, false, "[firing p resolved p]"},
		{20 * time.Hour, true, false, "[firing p resolved p]"},
		{5 * time.Minute, false, true, "[firing p resolved p firing p]"},
		{5 * time.Minute, true, true, "[firing p resolved p firing p]"},
		{26 * time.Hour, false, false, "[firing p]"},
		{26 * time.Hour, true, false, "[firing p]"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			b := newBench(t, high)
			b.calls["p"] = 130
			b.at(t, 0)
			want(t, "fires", b.at(t, 30*time.Second), "firing p")
			b.calls["p"], b.teller.err = 100, io.ErrUnexpectedEOF
			try := func(after time.Duration) {
				b.now = start.Add(after)
				_ = b.m.Evaluate(t.Context()) // the receiver is away
			}
			resolved := 2 * time.Minute
			try(resolved)
			if c.again {
				b.calls["p"] = 130
				try(3 * time.Minute)
				try(4 * time.Minute)
			}
			for after := resolved + 5*time.Minute; after < resolved+c.away; after += 5 * time.Minute {
				try(after)
			}
			if c.restart {
				b.restart(rules(t, high))
			}
			b.teller.err = nil
			b.at(t, resolved+c.away)
			b.at(t, resolved+c.away+15*time.Second)
			want(t, "told", fmt.Sprint(b.teller.told), c.told)
		})
	}
}
