package alerts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Prometheus's figures: a firing alert is told again every ResendDelay and ends by itself
// after four of them, should nobody tell it again.
const (
	ResendDelay = time.Minute
	leaseFactor = 4
)

const (
	postTimeout = 10 * time.Second
	saidTimeout = time.Second // of the text of an answer, once its status is known
	batchAlerts = 64          // of one request
)

// Alertmanager tells one Alertmanager (API v2) of every alert, again and again as
// Prometheus does. What was not taken is told with the next evaluation.
type Alertmanager struct {
	url     string // its host, for the log
	request *url.URL
	links   Links
	client  *http.Client
	logger  *slog.Logger
	latest  chan delivery // holds at most the latest
	sent    map[string]sent
	silent  map[string]int // how often nobody answered when an alert was told, since it was last taken
}

// delivery is all alerts at one time.
type delivery struct {
	now time.Time
	all []*Alert
}

// sent is what the Alertmanager took last of an alert.
type sent struct {
	status Status
	at     time.Time
}

// NewAlertmanager returns one for an address such as http://localhost:9093; user and
// password in it are sent as basic authentication. Run must be called.
func NewAlertmanager(address string, links Links, logger *slog.Logger) (*Alertmanager, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("alerts: no address of an Alertmanager, such as http://localhost:9093")
	}
	u = u.JoinPath("api/v2/alerts")
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Alertmanager{
		url: hostOf(u), request: u, links: links, logger: logger, sent: map[string]sent{}, silent: map[string]int{},
		client: newClient(), latest: make(chan delivery, 1),
	}, nil
}

// Deliver hands over what there is to tell; older alerts that wait are forgotten, as all
// are in the latest.
func (a *Alertmanager) Deliver(now time.Time, all []*Alert) {
	for {
		select {
		case a.latest <- delivery{now, all}:
			return
		default:
		}
		select {
		case <-a.latest:
		default:
		}
	}
}

// Run tells until ctx ends.
func (a *Alertmanager) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-a.latest:
			a.tell(ctx, d)
		}
	}
}

// tell sends what is due, until nobody answers: who hangs would do so for every batch, and
// what is newer waits. What nobody answered to goes last the next time, so it keeps no other.
func (a *Alertmanager) tell(ctx context.Context, d delivery) {
	due := a.due(d)
	slices.SortStableFunc(due, func(x, y *Alert) int { return cmp.Compare(a.silent[x.Key()], a.silent[y.Key()]) })
	for batch := range slices.Chunk(due, batchAlerts) {
		if !a.batch(ctx, d.now, batch) {
			return
		}
	}
}

// due are the alerts to be told, and those that are over are forgotten.
func (a *Alertmanager) due(d delivery) (due []*Alert) {
	alive := map[string]bool{}
	for _, al := range d.all {
		alive[al.Key()] = true
		last := a.sent[al.Key()]
		if last.status != al.Status || d.now.Sub(last.at).Abs() >= ResendDelay { // clocks are set back, too
			due = append(due, al)
		}
	}
	maps.DeleteFunc(a.sent, func(key string, _ sent) bool { return !alive[key] })
	maps.DeleteFunc(a.silent, func(key string, _ int) bool { return !alive[key] })
	return due
}

// batch sends some alerts, and tells whether there was an answer. A 400 says that some of them
// are bad, not which; the others may have been taken. So each is sent alone then, and one that
// is refused alone counts as told until it is due again.
func (a *Alertmanager) batch(ctx context.Context, now time.Time, due []*Alert) (answered bool) {
	status, err := a.post(ctx, now, due)
	if status == http.StatusBadRequest && len(due) > 1 {
		for i := range due {
			if !a.batch(ctx, now, due[i:i+1]) {
				return false
			}
		}
		return true
	}
	if err != nil {
		a.logger.Warn("an Alertmanager did not take alerts", "url", a.url, "alerts", len(due), "error", err)
	}
	for _, al := range due {
		switch {
		case err == nil || status == http.StatusBadRequest:
			a.sent[al.Key()] = sent{al.Status, now}
			delete(a.silent, al.Key())
		case status == 0:
			a.silent[al.Key()]++
		}
	}
	return status != 0
}

// posted is an alert as the API wants it.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

func (a *Alertmanager) post(ctx context.Context, now time.Time, due []*Alert) (status int, err error) {
	body := make([]posted, len(due))
	for i, al := range due {
		body[i] = posted{
			Labels: al.Labels, Annotations: a.links.annotations(al), StartsAt: *al.FiredAt,
			EndsAt: now.Add(leaseFactor * ResendDelay), GeneratorURL: a.links.Generator(al),
		}
		if al.ResolvedAt != nil {
			body[i].EndsAt = *al.ResolvedAt
		}
		if body[i].EndsAt.Before(body[i].StartsAt) { // a clock was set back; an Alertmanager refuses it
			body[i].StartsAt = body[i].EndsAt
		}
	}
	return postJSON(ctx, a.client, a.request.String(), body)
}

// newClient is one that follows no redirect: a post would become a GET that says nothing,
// and be taken for told.
func newClient() *http.Client {
	return &http.Client{Timeout: postTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// postJSON posts v; any status but 2xx is an error. The status decides as soon as it is there: a
// text that never ends is not waited for.
func postJSON(ctx context.Context, client *http.Client, address string, v any) (status int, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b))
	if err != nil {
		return 0, withoutAddress(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, withoutAddress(err)
	}
	defer resp.Body.Close()
	defer time.AfterFunc(saidTimeout, cancel).Stop()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // for the log only; read to its end, the connection is used again
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	return resp.StatusCode, nil
}

// withoutAddress takes the address, which may hold a password, out of an error.
func withoutAddress(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
