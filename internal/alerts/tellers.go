package alerts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Message is what a webhook and a stream are told of an alert: when it begins to fire, and
// when it is resolved.
type Message struct {
	Status       Status            `json:"status"` // firing or resolved
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"starts_at"`
	EndsAt       *time.Time        `json:"ends_at"`
	GeneratorURL string            `json:"generator_url,omitempty"`
}

func (l Links) message(a *Alert) Message {
	return Message{
		Status: a.Status, Labels: a.Labels, Annotations: l.annotations(a), StartsAt: *a.FiredAt, EndsAt: a.ResolvedAt, GeneratorURL: l.Generator(a),
	}
}

// Webhook posts each message as JSON.
type Webhook struct {
	url    *url.URL
	links  Links
	client *http.Client
}

// NewWebhook returns one for an http or https address.
func NewWebhook(address string, links Links) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("alerts: no address of a webhook, such as https://host/path")
	}
	return &Webhook{u, links, newClient()}, nil
}

// Name is the host and a hash of the address: paths, queries and users of webhooks are
// secrets, and must not be in a log or a store.
func (w *Webhook) Name() string {
	sum := sha256.Sum256([]byte(w.url.String()))
	return "webhook " + hostOf(w.url) + " " + hex.EncodeToString(sum[:4])
}

// hostOf is what of an address may be told.
func hostOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// Tell posts the message; anything but a 2xx is an error. An answer may repeat the address,
// the error does not.
func (w *Webhook) Tell(ctx context.Context, a *Alert) error {
	_, err := postJSON(ctx, w.client, w.url.String(), w.links.message(a))
	if err == nil {
		return nil
	}
	said := err.Error()
	password, _ := w.url.User.Password()
	for _, secret := range []string{w.url.RequestURI(), w.url.EscapedPath(), w.url.Path, w.url.RawQuery, w.url.User.Username(), password} {
		if len(secret) > 1 {
			said = strings.ReplaceAll(said, secret, "…")
		}
	}
	return errors.New(said)
}

// Stream writes each message as a line of JSON.
type Stream struct {
	links Links
	mu    sync.Mutex
	w     io.Writer
}

// NewStream returns one that writes to w.
func NewStream(w io.Writer, links Links) *Stream { return &Stream{w: w, links: links} }

// Name is always the same: there is one stream.
func (s *Stream) Name() string { return "stream" }

// Tell writes the line.
func (s *Stream) Tell(_ context.Context, a *Alert) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.NewEncoder(s.w).Encode(s.links.message(a))
}
