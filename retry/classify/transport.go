package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/retrylens/retrylens"
	"golang.org/x/net/http2"
)

// sent tells how an error relates to the request.
type sent uint8

const (
	sentUnknown   sent = iota // nothing recognised
	sentConnect               // before the connection stood: DNS, dial, TLS
	sentCert                  // the certificate did not verify: before anything, and permanent
	sentPermanent             // the request could not even be built
	sentRefused               // the peer says that it did not process the request
	sentCancelled             // the caller gave up
	sentTimeout               // timed out, request maybe sent
	sentLost                  // reset, EOF, broken pipe: request maybe sent
)

// cause is a recognised error.
type cause struct {
	sent   sent
	reason string
}

// transport classifies the transport error of f: rules 1 and 5.
func transport(f *Failure) finding {
	c := typed(f)
	if c.sent == sentUnknown {
		c = textual(f.Err.Error(), f)
	}
	return f.settle(c)
}

// settle holds a cause against what else is known of the attempt.
func (f *Failure) settle(c cause) finding {
	answered := f.HeadersReceived || f.Status > 0 || f.ContentReceived || f.Trace.FirstByte
	unsent := f.Trace.Traced && f.Trace.Sends == 0 && !answered
	switch c.sent {
	case sentCancelled:
		d := finding{class: retrylens.ClassCancelled, reason: c.reason}
		if unsent {
			d.flags = flagPreSend
		}
		return d
	case sentCert, sentPermanent:
		if !answered && f.Trace.Sends == 0 {
			return finding{retrylens.ClassTransportPresend, c.reason, flagPreSend | flagPermanent}
		}
	case sentConnect:
		// A transport that resends by itself can fail to connect after an earlier
		// copy of the request left.
		if !answered && f.Trace.Sends == 0 {
			return finding{retrylens.ClassTransportPresend, c.reason, flagPreSend}
		}
	case sentRefused:
		if !answered && f.Trace.Sends <= 1 {
			return finding{retrylens.ClassTransportPresend, c.reason, flagPreSend}
		}
	case sentTimeout:
		if !unsent {
			return finding{class: retrylens.ClassTimeout, reason: c.reason}
		}
	}
	switch {
	case unsent:
		return finding{retrylens.ClassTransportPresend, "nothing was written", flagPreSend}
	case c.sent == sentUnknown && f.Err == nil:
		return finding{}
	case c.sent == sentLost:
		return finding{class: retrylens.ClassTransportUnknown, reason: c.reason}
	}
	return finding{class: retrylens.ClassTransportUnknown, reason: "transport error, outcome unknown"}
}

// typed recognises everything that Go gives a type or a sentinel.
func typed(f *Failure) cause {
	err := f.Err
	for _, look := range [...]func(*Failure, error) cause{typedTLS, typedHTTP2, typedConnect, typedContext, typedSyscall} {
		if c := look(f, err); c.sent != sentUnknown {
			return c
		}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return cause{sentLost, "connection closed before the answer was complete"}
	case errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return cause{sentLost, "connection closed"}
	}
	return cause{}
}

func typedTLS(_ *Failure, err error) cause {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		cert      x509.CertificateInvalidError
		roots     x509.SystemRootsError
		record    tls.RecordHeaderError
		ech       *tls.ECHRejectionError
		alert     *net.OpError
	)
	switch {
	case errors.As(err, &verify), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &cert), errors.As(err, &roots):
		return cause{sentCert, "the server's certificate does not verify"}
	case errors.As(err, &record):
		return cause{sentConnect, "the server does not speak TLS"}
	case errors.As(err, &ech):
		return cause{sentConnect, "TLS handshake failed"}
	case errors.As(err, &alert) && alert.Op == "remote error":
		return cause{sentAlert(alert.Err.Error()), "TLS alert from the server"}
	}
	return cause{}
}

// handshakeAlerts are the alerts that only a handshake can cause (RFC 8446 section
// 6.2). The type of an alert is not exported, its text is all there is.
var handshakeAlerts = []string{"handshake failure", "protocol version", "insufficient security", "unrecognized name",
	"no application protocol", "inappropriate fallback", "missing extension", "unsupported extension", "illegal parameter"}

// sentAlert: with TLS 1.3 a server judges the client's certificate when the client
// has long begun to send, so such an alert proves nothing without a trace.
func sentAlert(text string) sent {
	for _, a := range handshakeAlerts {
		if strings.Contains(text, a) {
			return sentConnect
		}
	}
	return sentLost
}

func typedHTTP2(f *Failure, err error) cause {
	var stream http2.StreamError // net/http's own unexported one converts itself
	if errors.As(err, &stream) {
		if stream.Code == http2.ErrCodeRefusedStream {
			return cause{sentRefused, "HTTP/2 REFUSED_STREAM: not processed"}
		}
		return cause{sentLost, "HTTP/2 stream reset"}
	}
	var away http2.GoAwayError //nolint:staticcheck // deprecated, and still what transports of golang.org/x/net return; only golang.org/x/net; net/http's has no exported type
	if errors.As(err, &away) {
		return goAway(f, away.LastStreamID)
	}
	if errors.Is(err, http2.ErrNoCachedConn) {
		return cause{sentConnect, "no HTTP/2 connection"}
	}
	return cause{}
}

// goAway: streams above the last id were not processed (RFC 9113 section 6.8).
func goAway(f *Failure, last uint32) cause {
	if last == 0 || f.HTTP2StreamID > last {
		return cause{sentRefused, "HTTP/2 GOAWAY below our stream: not processed"}
	}
	return cause{sentLost, "HTTP/2 GOAWAY, our stream may have been taken"}
}

func typedConnect(_ *Failure, err error) cause {
	var dns *net.DNSError
	var op *net.OpError
	caller := errors.Is(err, context.Canceled)
	switch {
	case errors.As(err, &dns) && !caller:
		return cause{sentConnect, "name does not resolve"}
	case errors.As(err, &op) && connecting(op.Op) && !caller:
		return cause{sentConnect, dialReason(err)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return cause{sentConnect, "connection refused"}
	}
	return cause{}
}

func connecting(op string) bool {
	return op == "dial" || op == "proxyconnect" || op == "socks connect"
}

func dialReason(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "dial timed out"
	}
	return "dial failed"
}

func typedContext(_ *Failure, err error) cause {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return timeoutCause(err)
	case errors.Is(err, context.Canceled):
		return cause{sentCancelled, "the caller cancelled"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return timeoutCause(err)
	}
	return cause{}
}

// timeoutCause tells the timeouts apart that Go types alike: a handshake's and the
// wait for a connection are before the request.
func timeoutCause(err error) cause {
	if c := goTimeouts(err.Error()); c.sent != sentUnknown {
		return c
	}
	return cause{sentTimeout, "timed out before the answer was complete"}
}

func typedSyscall(_ *Failure, err error) cause {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return cause{}
	}
	switch errno {
	case syscall.ECONNRESET, syscall.ECONNABORTED:
		return cause{sentLost, "connection reset"}
	case syscall.EPIPE:
		return cause{sentLost, "broken pipe"}
	case syscall.ETIMEDOUT:
		return cause{sentTimeout, "connection timed out"}
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EADDRNOTAVAIL, syscall.EHOSTDOWN:
		return cause{sentLost, "network unreachable"}
	}
	return cause{sentLost, "network error"}
}
