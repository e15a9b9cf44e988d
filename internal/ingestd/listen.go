package ingestd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// Bounds of connections. The body's own are Pace.
const (
	maxConnections    = 1024
	easyConnections   = maxConnections * 3 / 4 // beyond, none waits for a request for long
	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = time.Minute
	drainTime         = time.Second
	certificatePoll   = 5 * time.Second
)

// TLSFiles are PEM files; they are read again when they change.
type TLSFiles struct {
	Cert, Key string // both or none
	ClientCA  string // "" = no client certificates; else every client needs one of these
}

// Listen opens the port; with certificates it speaks TLS 1.2 or later. Files that
// are bad later are logged, and the last good ones served.
func Listen(addr string, files TLSFiles, logger *slog.Logger) (net.Listener, error) {
	var config *tls.Config
	if files != (TLSFiles{}) {
		c := &certificates{files: files, logger: logger}
		if _, err := c.current(time.Now()); err != nil {
			return nil, err
		}
		config = &tls.Config{
			MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return c.current(time.Now())
			},
		}
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	l = netutil.LimitListener(l, maxConnections)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

// NewServer is an HTTP/1.1 server of a handler. HTTP/2 is not spoken: its flow
// control would buffer bodies outside of the handler's budget.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	waiting := newConnections(easyConnections)
	return &http.Server{
		Handler: h, Protocols: &protocols, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		DisableGeneralOptionsHandler: true,
		ConnState: func(conn net.Conn, state http.ConnState) {
			// What net/http answers by itself, before any handler, it drains: that must end
			// soon. bounded gives every other request its own time. ReadTimeout would be the
			// time for a TLS handshake, too.
			if state == http.StateActive {
				_ = conn.SetReadDeadline(time.Now().Add(drainTime))
			}
			waiting.changed(conn, state)
		},
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// Stop ends a server: requests under way have so long, then they are cut off
// and the reason is returned. Their senders have no answer and send again.
func Stop(server *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		_ = server.Close()
	}
	return err
}

// certificates follow their files.
type certificates struct {
	files  TLSFiles
	logger *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamps [3]time.Time
	config *tls.Config
	told   failedLoad
}

// failedLoad is a state of the files that is already logged.
type failedLoad struct {
	stamps [3]time.Time
	text   string
}

// current is the configuration of the newest good files.
func (c *certificates) current(now time.Time) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config != nil && now.Sub(c.looked) < certificatePoll {
		return c.config, nil
	}
	c.looked = now
	stamps := c.modified()
	if c.config != nil && stamps == c.stamps {
		return c.config, nil
	}
	config, err := c.files.load()
	if err != nil {
		c.tell(failedLoad{stamps, err.Error()})
		if c.config == nil {
			return nil, err
		}
		return c.config, nil
	}
	if c.config != nil {
		c.logger.Info("read the certificates again")
	}
	c.config, c.stamps, c.told = config, stamps, failedLoad{}
	return c.config, nil
}

// tell logs why newer files are not served, once for each change of theirs.
func (c *certificates) tell(failed failedLoad) {
	if c.config != nil && failed != c.told {
		c.logger.Error("the certificates stay as they were", "err", failed.text)
		c.told = failed
	}
}

func (c *certificates) modified() (stamps [3]time.Time) {
	for i, path := range []string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = info.ModTime()
		}
	}
	return stamps
}

func (f TLSFiles) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("ingestd: certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}}
	if f.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("ingestd: client CA: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("ingestd: client CA: no certificate in " + f.ClientCA)
	}
	return config, nil
}

// Loopback tells whether an address to listen on can be reached from this
// machine only.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
