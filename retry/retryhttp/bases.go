package retryhttp

import (
	"net/http"
	"sync"
)

// bases are the transports that send: the caller's, or one for each provider.
type bases struct {
	base http.RoundTripper

	mu  sync.RWMutex
	own map[string]*http.Transport
}

func (b *bases) of(provider string) http.RoundTripper {
	if b.base != nil {
		return b.base
	}
	b.mu.RLock()
	t := b.own[provider]
	b.mu.RUnlock()
	if t != nil {
		return t
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t = b.own[provider]; t == nil {
		if b.own == nil {
			b.own = map[string]*http.Transport{}
		}
		t = newBase()
		b.own[provider] = t
	}
	return t
}

// newBase has as many idle connections to a host as it may have calls in flight: the
// bulkhead bounds these.
func newBase() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = 64, idleTimeout
	return t
}

func (b *bases) closeIdle() {
	if c, ok := b.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, t := range b.own {
		t.CloseIdleConnections()
	}
}
