package alerts

import "net/http"

// SetTransport replaces the network, for fake time.
func (a *Alertmanager) SetTransport(t http.RoundTripper) { a.client.Transport = t }
