package alerts_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens/internal/alerts"
)

// am is an Alertmanager that a test can break; it refuses alerts labelled bad.
type am struct {
	mu     sync.Mutex
	status int // answered to every post; 0 = as a real one
	posts  [][]posted
	taken  map[string]posted // by alertname
}

type posted struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

// RoundTrip answers without a network, so that time can be fake.
func (m *am) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := httptest.NewRecorder()
	if r.URL.Path != "/prefix/api/v2/alerts" || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusNotFound)
		return w.Result(), nil
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var got []posted
	if err := json.Unmarshal(b, &got); err != nil {
		return nil, err
	}
	m.posts = append(m.posts, got)
	status := m.status
	for _, p := range got {
		switch {
		case p.Labels["bad"] != "":
			status = max(status, http.StatusBadRequest)
		case m.status == 0:
			m.taken[p.Labels["alertname"]] = p
		}
	}
	w.WriteHeader(max(status, http.StatusOK))
	return w.Result(), nil
}

func (m *am) set(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

func (m *am) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.posts)
}

// delivering runs a test with an Alertmanager on fake time.
func delivering(t *testing.T, f func(t *testing.T, m *am, deliver func(...*alerts.Alert))) {
	deliveringAt(t, func(t *testing.T, m *am, deliverAt func(time.Time, ...*alerts.Alert)) {
		f(t, m, func(all ...*alerts.Alert) { deliverAt(time.Now(), all...) })
	})
}

// deliveringAt is delivering by a clock of the test's own.
func deliveringAt(t *testing.T, f func(t *testing.T, m *am, deliverAt func(time.Time, ...*alerts.Alert))) {
	synctest.Test(t, func(t *testing.T) {
		m := &am{taken: map[string]posted{}}
		sender, err := alerts.NewAlertmanager("http://user:word@am.example/prefix/", alerts.Links{External: "http://lens.example", Runbooks: "http://books.example/runbooks"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sender.SetTransport(m)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { sender.Run(ctx); close(done) }()
		f(t, m, func(at time.Time, all ...*alerts.Alert) {
			sender.Deliver(at, all)
			synctest.Wait()
		})
		cancel()
		<-done
	})
}

func firing(name string, at time.Time, labels ...string) *alerts.Alert {
	a := &alerts.Alert{
		Rule: name, Group: []string{name}, Status: alerts.Firing, ActiveAt: at.Add(-time.Minute), FiredAt: &at, Runbook: name,
		Labels: map[string]string{"alertname": name, "provider": "p q"}, Annotations: map[string]string{"summary": "s"},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		a.Labels[labels[i]] = labels[i+1]
	}
	return a
}

func resolved(a *alerts.Alert, at time.Time) *alerts.Alert {
	b := *a
	b.Status, b.ResolvedAt = alerts.Resolved, &at
	return &b
}

// TestAlertmanagerIsToldAsPrometheusDoes: at once, again every minute with an end four
// minutes ahead, and the end itself once resolved.
func TestAlertmanagerIsToldAsPrometheusDoes(t *testing.T) {
	delivering(t, func(t *testing.T, m *am, deliver func(...*alerts.Alert)) {
		began := time.Now()
		a := firing("A", began)
		for range 8 { // two minutes
			deliver(a)
			time.Sleep(15 * time.Second)
		}
		if n := m.count(); n != 2 {
			t.Errorf("%d posts in two minutes", n)
		}
		got := m.taken["A"]
		if !got.StartsAt.Equal(began) || !got.EndsAt.Equal(began.Add(time.Minute+4*time.Minute)) {
			t.Errorf("from %v to %v", got.StartsAt, got.EndsAt)
		}
		if got.GeneratorURL != "http://lens.example/?from="+ms(began.Add(-31*time.Minute))+"&provider=p+q&to=now" || got.Annotations["runbook_url"] != "http://books.example/runbooks/A.md" {
			t.Errorf("%s %s", got.GeneratorURL, got.Annotations["runbook_url"])
		}
		end := time.Now()
		deliver(resolved(a, end))
		if got := m.taken["A"]; !got.EndsAt.Equal(end) || m.count() != 3 || !strings.Contains(got.GeneratorURL, "to="+ms(end)) {
			t.Errorf("%d posts, the last ends %v, %s", m.count(), got.EndsAt, got.GeneratorURL)
		}
	})
}

// TestAClockSetBackIsTold: told again after a minute by either clock, and never with an end before the
// start, which an Alertmanager refuses.
func TestAClockSetBackIsTold(t *testing.T) {
	deliveringAt(t, func(t *testing.T, m *am, deliverAt func(time.Time, ...*alerts.Alert)) {
		deliver := func(all ...*alerts.Alert) { deliverAt(time.Now(), all...) }
		ahead := firing("A", time.Now().Add(time.Hour))
		deliver(ahead)
		if got := m.taken["A"]; got.EndsAt.Before(got.StartsAt) || !got.EndsAt.After(time.Now()) {
			t.Errorf("firing from %v to %v", got.StartsAt, got.EndsAt)
		}
		deliverAt(time.Now().Add(-time.Hour), ahead)
		if got := m.taken["A"]; m.count() != 2 || got.EndsAt.Before(got.StartsAt) {
			t.Errorf("%d posts; an hour earlier from %v to %v", m.count(), got.StartsAt, got.EndsAt)
		}
		end := time.Now()
		deliver(resolved(ahead, end))
		if got := m.taken["A"]; got.EndsAt.Before(got.StartsAt) || !got.EndsAt.Equal(end) {
			t.Errorf("resolved from %v to %v", got.StartsAt, got.EndsAt)
		}
	})
}

func ms(t time.Time) string { b, _ := json.Marshal(t.UnixMilli()); return string(b) }

// TestAlertmanagerAwayLosesNothing: what was not taken is told with the next evaluation,
// whether it fires or ended meanwhile.
func TestAlertmanagerAwayLosesNothing(t *testing.T) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusNotFound} {
		delivering(t, func(t *testing.T, m *am, deliver func(...*alerts.Alert)) {
			m.set(status)
			a, b := firing("A", time.Now()), firing("B", time.Now())
			for range 20 {
				deliver(a, b)
				time.Sleep(15 * time.Second)
			}
			if len(m.taken) > 0 || m.count() != 20 {
				t.Errorf("%d: %d posts, %d taken", status, m.count(), len(m.taken))
			}
			end := time.Now()
			m.set(0)
			deliver(a, resolved(b, end))
			if len(m.taken) != 2 || !m.taken["B"].EndsAt.Equal(end) || !m.taken["A"].EndsAt.After(end) {
				t.Errorf("%d: %+v", status, m.taken)
			}
		})
	}
}

// TestOneBadAlertKeepsNoOther: after a 400 each is told alone, and the bad one not with every
// evaluation.
func TestOneBadAlertKeepsNoOther(t *testing.T) {
	delivering(t, func(t *testing.T, m *am, deliver func(...*alerts.Alert)) {
		all := []*alerts.Alert{firing("A", time.Now()), firing("Bad", time.Now(), "bad", "yes"), firing("C", time.Now())}
		deliver(all...)
		if len(m.taken) != 2 || m.count() != 4 {
			t.Errorf("%d posts, taken %v", m.count(), m.taken)
		}
		time.Sleep(15 * time.Second)
		deliver(all...)
		if m.count() != 4 {
			t.Errorf("%d posts after the next evaluation", m.count())
		}
	})
}

// TestManyAlertsGoInBatches.
func TestManyAlertsGoInBatches(t *testing.T) {
	delivering(t, func(t *testing.T, m *am, deliver func(...*alerts.Alert)) {
		var all []*alerts.Alert
		for i := range 150 {
			all = append(all, firing("A"+ms(time.UnixMilli(int64(i))), time.Now()))
		}
		deliver(all...)
		if m.count() != 3 || len(m.taken) != 150 {
			t.Errorf("%d posts, %d taken", m.count(), len(m.taken))
		}
	})
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range []string{"", "localhost:9093", "ftp://x", "http://", "://", "http://a b"} {
		if _, err := alerts.NewAlertmanager(bad, alerts.Links{}, nil); err == nil {
			t.Errorf("Alertmanager %q", bad)
		}
		if _, err := alerts.NewWebhook(bad, alerts.Links{}); err == nil {
			t.Errorf("webhook %q", bad)
		}
	}
}

// TestWebhookAndStreamSayTheSame, and no secret of the address is in its name.
func TestWebhookAndStreamSayTheSame(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
		switch r.URL.Path {
		case "/no":
			w.WriteHeader(http.StatusForbidden)
		case "/login":
			http.Redirect(w, r, "/", http.StatusFound)
		}
	}))
	defer srv.Close()
	hook, err := alerts.NewWebhook(strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1), alerts.Links{})
	if err != nil {
		t.Fatal(err)
	}
	a := resolved(firing("A", start), start.Add(time.Hour))
	var out strings.Builder
	if err := hook.Tell(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := alerts.NewStream(&out, alerts.Links{}).Tell(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(out.String()) != got || !strings.Contains(got, `"status":"resolved"`) || !strings.Contains(got, `"ends_at":"2026-11-30T04:00:00Z"`) {
		t.Errorf("%s\n%s", got, out.String())
	}
	for _, path := range []string{"/no", "/login"} { // a redirect would become a GET that says nothing
		no, err := alerts.NewWebhook(srv.URL+path, alerts.Links{})
		if err != nil {
			t.Fatal(err)
		}
		if err := no.Tell(t.Context(), a); err == nil {
			t.Errorf("%s is no error", path)
		}
	}
}
