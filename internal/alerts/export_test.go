package alerts

import (
	"net/http"
	"time"
)

// SetTransport replaces the network, for fake time.
func (a *Alertmanager) SetTransport(t http.RoundTripper) { a.client.Transport = t }

// SetTimeout is of a whole post.
func (a *Alertmanager) SetTimeout(d time.Duration) { a.client.Timeout = d }
