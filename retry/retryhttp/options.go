package retryhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/emit"
)

// Options make a Transport. The zero value is a usable one that keeps no records.
type Options struct {
	// Base sends; nil = an http.Transport of its own for each provider, so that one
	// provider's stalled connections take nothing from another. It should be an
	// http.Transport or wrap one: what does not report to httptrace cannot prove that
	// nothing was sent.
	Base http.RoundTripper

	Retry   retry.Options // policy, limits, clock of the engine; its Observer is called after the record is made
	Records emit.Recorder // where records go; nil = nowhere

	Service, Environment, Tenant string // of records whose operation has none

	// Provider names the provider of a request, lower case; nil = [ProviderOf].
	Provider func(*http.Request) string

	// Gateways are the hosts ("gateway:8080", "gw.example", "[::1]:8080") of Retrylens gateways,
	// without a port any of the host's. They get key and operation in headers, are asked again
	// while a key is in flight, and are believed which attempt of theirs an answer is of (served_by).
	Gateways []string

	// KeyHeaders names, by provider, the header in which the idempotency key goes to it.
	// A provider without one gets no key, and calls to it count as unkeyed: their outcome
	// unknown, they are not tried again. Naming a header for a provider that ignores it
	// accepts that a retry may execute twice.
	KeyHeaders map[string]string

	// Refresh puts another credential into h after a 401; the try is repeated once if that
	// changed anything. nil = never. Where a redirect has led to another host it is not called.
	Refresh func(ctx context.Context, provider string, h http.Header) error

	// Prices of attempts that do not tell their cost; nil = none. See package price.
	Prices interface {
		Cost(*retrylens.Attempt) (retrylens.Money, bool)
	}

	// Hold is how many bytes of an answer that is no stream are awaited before it is
	// handed over, so that one which breaks is tried again. 0 = none: bodies pass through.
	Hold int

	// MaxBody is how large a request body is kept for further tries and the fingerprint;
	// default 16 MiB. A larger one is sent once, or again by the request's GetBody.
	MaxBody int64

	Classifier  *classify.Classifier // nil = classify.New()
	NoEstimates bool                 // leave tokens that no provider reported unknown
}

const defaultMaxBody = 16 << 20

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	o        Options
	gateways []*url.URL // of which host and port count
	engine   *retry.Engine
	clock    clock.Clock
	classify *classify.Classifier
	bases    bases
	layers   layers
	models   names
	watches  watchPool
	open     answers
}

// New returns a transport, or an error that names an option that is out of range.
func New(o Options) (*Transport, error) {
	if o.MaxBody < 0 || o.Hold < 0 {
		return nil, errors.New("retryhttp: Options.MaxBody and Options.Hold must not be negative")
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Provider == nil {
		o.Provider = ProviderOf
	}
	gateways, err := hostsOf(o.Gateways)
	if err != nil {
		return nil, err
	}
	t := &Transport{o: o, classify: o.Classifier, bases: bases{base: o.Base}, gateways: gateways}
	if t.classify == nil {
		t.classify = classify.New()
	}
	t.clock = clock.Real()
	if o.Retry.Clock != nil {
		full, ok := o.Retry.Clock.(clock.Clock)
		if !ok {
			return nil, errors.New("retryhttp: Options.Retry.Clock must be a clock.Clock")
		}
		t.clock = full
	}
	eo := o.Retry
	eo.Observer = retry.ObserverFunc(t.observe)
	engine, err := retry.New(eo)
	if err != nil {
		return nil, err
	}
	t.engine = engine
	t.watches.clock = t.clock
	return t, nil
}

// Engine decides for this transport, for its state.
func (t *Transport) Engine() *retry.Engine { return t.engine }

// Client returns an http.Client over t without a timeout of its own: the policy has them.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// CloseIdleConnections of what it sends with.
func (t *Transport) CloseIdleConnections() { t.bases.closeIdle() }

// Close waits until the losers of hedges have ended and closes idle connections. It is
// called after the last answer was read, before the emitter's Close. An answer whose body
// was neither read to its end nor closed is closed, so that its record is not lost.
func (t *Transport) Close(ctx context.Context) error {
	err := t.engine.Close(ctx)
	for x := t.open.any(); x != nil; x = t.open.any() {
		x.finish(errClosed)
	}
	t.CloseIdleConnections()
	return err
}

// isGateway tells whether u is at one of Options.Gateways.
func (t *Transport) isGateway(u *url.URL) bool {
	for _, g := range t.gateways {
		if sameName(g.Hostname(), u.Hostname()) && (g.Port() == "" || g.Port() == port(u)) {
			return true
		}
	}
	return false
}

// hostsOf reads Options.Gateways.
func hostsOf(gateways []string) (all []*url.URL, err error) {
	for _, g := range gateways {
		u := &url.URL{Host: g}
		if ip := net.ParseIP(g); ip != nil && strings.Contains(g, ":") {
			u.Host = "[" + g + "]"
		}
		if u.Hostname() == "" || strings.ContainsAny(g, "/@?# ") {
			return nil, fmt.Errorf("retryhttp: Options.Gateways must be hosts such as gateway:8080, without scheme and path, got %q", g)
		}
		all = append(all, u)
	}
	return all, nil
}

// sameName tells whether two names are of one host, written with its final dot or without.
func sameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "."), strings.TrimSuffix(b, "."))
}

// port of u, the scheme's where it names none.
func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

const idleTimeout = 90 * time.Second
