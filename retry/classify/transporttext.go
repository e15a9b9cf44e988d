package classify

import (
	"strings"
)

// phrase is one spelling of a transport error; all of its parts must occur, in lower
// case. Of the list the first match wins, so what is provable comes first.
type phrase struct {
	sent   sent
	reason string
	parts  []string
}

// goTimeouts tells the timeouts that net/http leaves to text.
func goTimeouts(s string) cause {
	switch s = strings.ToLower(s); {
	case strings.Contains(s, "tls handshake timeout"), strings.Contains(s, "handshake operation timed out"):
		return cause{sentConnect, "TLS handshake timed out"}
	case strings.Contains(s, "while waiting for connection"):
		return cause{sentConnect, "timed out before a connection was free"}
	}
	return cause{}
}

// textual recognises what has no type: a few errors of net/http, and the errors of
// other languages that arrive as text (imports, proxies, log lines).
func textual(s string, f *Failure) cause {
	if c, ok := textGoAway(s, f); ok {
		return c
	}
	low := strings.ToLower(s)
	for i := range phrases {
		if p := &phrases[i]; p.in(low) {
			return cause{p.sent, p.reason}
		}
	}
	return cause{}
}

func (p *phrase) in(low string) bool {
	for _, part := range p.parts {
		if !strings.Contains(low, part) {
			return false
		}
	}
	return true
}

// textGoAway reads net/http's own GOAWAY error, whose type is not exported.
func textGoAway(s string, f *Failure) (cause, bool) {
	if !strings.Contains(s, "GOAWAY") {
		return cause{}, false
	}
	_, after, ok := strings.Cut(s, "LastStreamID=")
	if !ok {
		return cause{}, false
	}
	d := digits10(after)
	if d == "" {
		return cause{}, false
	}
	last := uint64(0)
	for i := range len(d) {
		last = last*10 + uint64(d[i]-'0')
	}
	return goAway(f, uint32(min(last, 1<<31-1))), true
}

func digits10(s string) string {
	n := 0
	for n < len(s) && n < 10 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n]
}

func phrasesOf(sent sent, reason string, spellings ...string) []phrase {
	out := make([]phrase, len(spellings))
	for i, s := range spellings {
		out[i] = phrase{sent, reason, strings.Split(s, " & ")}
	}
	return out
}

var phrases = joinPhrases(
	// Certificates: permanent.
	phrasesOf(sentCert, "the server's certificate does not verify",
		"x509:", "certificate_verify_failed", "certificate verify failed", "certverificationerror", "failed to verify certificate",
		"self signed certificate", "self-signed certificate", "unable to get local issuer", "unable_to_get_issuer_cert",
		"unable_to_verify_leaf_signature", "unable to verify the first certificate", "depth_zero_self_signed", "cert_has_expired",
		"certificate has expired", "err_tls_cert_altname_invalid", "does not match certificate", "hostname/ip does not match",
		"pkix path", "certpathvalidatorexception", "invalid peer certificate", "remote certificate is invalid",
		"remote certificate was rejected", "ssl certificate problem", "certificate is not trusted", "no alternative certificate subject",
		"certificateexception", "unknownissuer", "certnotvalidforname", "curl: (60)", "clientconnectorcertificateerror",
		"certificate subject name", "certificate is not valid", "sslcertverificationerror", "hostname mismatch, certificate"),
	// The peer says that it did nothing.
	phrasesOf(sentRefused, "HTTP/2 REFUSED_STREAM: not processed",
		"refused_stream", "refused stream", "stream refused", "unprocessed stream", "err_http2_refused_stream"),
	phrasesOf(sentRefused, "HTTP/2 GOAWAY below our stream: not processed",
		"received server's graceful shutdown goaway", "transport received goaway from server errcode"),
	// Never sent, and never will be.
	phrasesOf(sentPermanent, "the request could not be built",
		"unsupported protocol scheme", "no host in request url", "missing protocol scheme", "invalid url", "net/http: invalid",
		"unsupportedprotocol", "invalid header field", "missing schema", "invalidschema", "localprotocolerror", "illegal header value",
		"err_invalid_url", "only absolute urls are supported"),
	phrasesOf(sentCancelled, "the caller cancelled", "dial & operation was canceled", "lookup & operation was canceled"),
	// Waits for a connection.
	phrasesOf(sentConnect, "timed out before a connection was free",
		"while waiting for connection", "pooltimeout", "connection pool is full", "timeout waiting for connection from pool",
		"timed out waiting for a connection", "acquire operation took longer"),
	// Names.
	phrasesOf(sentConnect, "name does not resolve",
		"no such host", "enotfound", "eai_again", "eai_noname", "getaddrinfo", "name or service not known", "nodename nor servname",
		"name resolution", "nameresolutionerror", "could not resolve host", "couldn't resolve host", "unknownhostexception",
		"name does not resolve", "failed to lookup address", "dns error", "dns lookup", "no address associated with hostname",
		"server misbehaving", "host not found", "no such host is known", "curl: (6)", "err_name_not_resolved", "unresolvedaddress",
		"dial tcp: lookup", "lookup & no answer from dns"),
	// TLS.
	phrasesOf(sentConnect, "TLS handshake failed",
		"tls handshake timeout", "tls: handshake failure", "handshake operation timed out", "sslhandshakeexception", "ssl handshake",
		"handshake failure", "handshake_failure", "wrong_version_number", "wrong version number", "http response to https client",
		"first record does not look like a tls handshake", "protocol_version", "unsupported protocol version", "tlsv1_alert", "tlsv1 alert",
		"before secure tls connection was established", "ssl connection could not be established", "curl: (35)", "ssl_connect", "tls connect error",
		"err_ssl_", "tls: no application protocol", "ssl: unexpected_eof_while_reading & handshake", "unsupported or unrecognized ssl message",
		"no_shared_cipher", "sslv3_alert", "sslv3 alert", "tls handshake eof", "handshake terminated", "remote host terminated the handshake",
		"handshake timed out", "tls: protocol version not supported", "received fatal alert"),
	// Connecting.
	phrasesOf(sentConnect, "connection refused",
		"connection refused", "econnrefused", "actively refused", "err_connection_refused", "errno 111]", "errno 61]", "os error 111", "connection was refused"),
	phrasesOf(sentConnect, "connect timed out",
		"connecttimeout", "connect timeout", "connect etimedout", "connecting timed out", "connection timeout & connect", "dial & i/o timeout",
		"connect timed out", "und_err_connect_timeout", "httpconnecttimeout", "timed out while connecting", "timeout while connecting",
		"connect call failed", "failed to connect", "couldn't connect to server", "cannot connect to host", "connection timed out & connect",
		"failed to establish a new connection", "newconnectionerror", "connecttimeouterror", "client.timeout & dial", "sock_connect", "connectionstartuperror",
		"connect error & timed out", "tcp connect error", "error trying to connect", "error connecting to", "could not connect to", "curl: (7)", "unable to connect"),
	phrasesOf(sentConnect, "dial failed",
		"dial tcp", "dial udp", "proxyconnect", "connectex:", "err_tunnel", "tunnel connection failed", "connect ehostunreach", "connect enetunreach",
		"ehostunreach", "enetunreach", "no route to host", "network is unreachable", "noroutetohost", "httpx.connecterror", "connect eaddrnotavail",
		"cannot assign requested address", "proxyerror", "error while dialing", "connectexception", "clientconnectorerror", "connection error: desc = \"transport: authentication handshake failed",
		"client conn not usable", "no cached connection", "httpcore.connecterror", "network unreachable", "no connection could be made", "socks connect",
		"connecterror", "proxy authentication required", "host is down", "socks5"),
	// Timeouts after the connection stood, before cancels: some clients cancel to time out.
	phrasesOf(sentTimeout, "timed out before the answer was complete",
		"client.timeout", "deadline exceeded", "deadlineexceeded", "deadline_exceeded", "i/o timeout", "timeout awaiting response headers", "readtimeout",
		"read timed out", "read operation timed out", "write operation timed out", "writetimeout", "request timed out", "timed out", "timedout",
		"timeouterror", "timeoutexception", "apitimeouterror", "headers timeout", "und_err_headers_timeout", "und_err_body_timeout", "body timeout",
		"etimedout", "esockettimedout", "socket timeout", "aborted due to timeout", "httpclient.timeout", "err_timed_out", "time-out", "curl: (28)",
		"timeout exceeded", "timeout of ", "timeout was reached", "asyncio.timeout", "sockettimeout", "timeout error", "request timeout", "timeout: ",
		"idle timeout", "timeout after", "timed-out"),
	// Cancels.
	phrasesOf(sentCancelled, "the caller cancelled",
		"context canceled", "context cancelled", "operation was canceled", "aborterror", "operation was aborted", "user aborted", "request was aborted",
		"request canceled", "request cancelled", "cancellederror", "canceledexception", "cancellationexception", "request was canceled", "request was cancelled",
		"task was canceled", "taskcanceledexception", "operation was cancelled", "operationcanceledexception", "err_canceled", "apiuseraborterror", "code = canceled",
		"cancelled by the caller", "canceled by caller", "keyboardinterrupt", "err_aborted", "cancelerror", "canceled by user", "cancelled by user"),
	// Lost connections.
	phrasesOf(sentLost, "connection lost, outcome unknown",
		"eof", "connection reset", "econnreset", "reset by peer", "broken pipe", "epipe", "socket hang up", "other side closed", "und_err_socket",
		"premature close", "premature_close", "closed prematurely", "response ended prematurely", "server disconnected", "serverdisconnected",
		"remotedisconnected", "remote end closed", "closed connection", "connection closed", "connectionclosed", "closed idle connection",
		"incomplete", "chunkedencodingerror", "remoteprotocolerror", "connection aborted", "connectionabortederror", "econnaborted",
		"forcibly closed", "connection broken", "connection lost", "stream error", "goaway", "go_away", "http2", "http/2", "protocol_error",
		"internal_error", "connection was closed", "empty reply", "recv failure", "send failure", "curl: (52)", "curl: (56)", "curl: (92)", "curl: (18)",
		"no bytes", "payload is not completed", "clientpayloaderror", "clientoserror", "err_connection", "network error", "network changed", "fetch failed", "failed to fetch",
		"terminated", "malformed http", "malformed chunk", "protocol error", "connection error", "connectionerror", "transport is closing",
		"code = unavailable", "readerror", "writeerror", "error reading", "use of closed", "response body closed", "err_http2", "bad record mac",
		"unexpected message", "message too long", "transfer closed", "sendrequest", "socketexception", "ioexception", "connection error.", "apiconnectionerror"),
)

func joinPhrases(lists ...[]phrase) (out []phrase) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}
