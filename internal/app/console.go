package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/gauges"
	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/web"
)

// The defaults of ConsoleOptions.
const (
	DefaultConsoleListen = "127.0.0.1:8481"
	DefaultTopSeries     = gauges.DefaultTop
	consoleGrace         = 10 * time.Second
	releaseTimeout       = 2 * time.Second
	maxHeaderBytes       = 64 << 10
	readTimeout          = 10 * time.Second
	idleTimeout          = 2 * time.Minute
	writeTimeout         = 5 * time.Minute // a large export to a slow reader
)

// ConsoleOptions say how analyze serve runs.
type ConsoleOptions struct {
	Store      StoreOptions
	Listen     string // "" = DefaultConsoleListen
	Insecure   bool   // may listen elsewhere than on loopback, for everybody who can reach it
	Auth       string // file of the tokens of those who may read; "" = everybody who can reach it
	NoFinalise bool   // leave the rollups to others
	TopSeries  int    // of /metrics, a window; 0 = DefaultTopSeries
	Alerts     AlertOptions
	Reload     <-chan os.Signal // reads the rules again
	JSONLogs   bool
	Verbose    bool
	Version    string
	Streams    Streams
	Listening  func(net.Addr) // told once it listens; nil = nobody
}

// Console serves the API and /metrics, and keeps the rollups up to date.
type Console struct {
	o       ConsoleOptions
	logger  *slog.Logger
	viewers *viewers
}

// NewConsole checks the options.
func NewConsole(o ConsoleOptions) (*Console, error) {
	if o.Listen == "" {
		o.Listen = DefaultConsoleListen
	}
	if _, err := ParseAddress(o.Store.Address); err != nil {
		return nil, err
	}
	switch {
	case o.TopSeries < 0:
		return nil, usagef("--top-series must be positive, got %d", o.TopSeries)
	case !o.Insecure && o.Auth == "" && !ingestd.Loopback(o.Listen):
		return nil, usagef("--listen %.60s is not a loopback address: add --insecure if everybody who can reach it may read, or --auth FILE for those who have a token", o.Listen)
	}
	if err := o.Alerts.check(); err != nil {
		return nil, err
	}
	c := &Console{o: o, logger: newLogger(o.Streams, o.JSONLogs, o.Verbose)}
	var err error
	if c.viewers, err = openViewers(o.Auth, c.logger); err != nil {
		return nil, err
	}
	c.o.Store.Logger, c.o.Store.MustExist = c.logger, true
	return c, nil
}

// Run serves until ctx ends. The store may be away when it starts, and come and go.
func (c *Console) Run(ctx context.Context) (err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.o.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	store := newLateStore(c.o.Store, false)
	defer func() { err = errors.Join(err, store.close()) }()
	source := &consoleSource{store: store, version: c.o.Version, began: time.Now()}
	if source.watcher, err = newWatcher(source, c.logger); err != nil {
		return err
	}
	if source.alerting, err = newAlerting(c.o.Alerts, source, &source.watcher.verdicts, c.o.Streams.Out, c.logger); err != nil {
		return err
	}
	source.watcher.leads = func() bool { return source.alerting.Last().Leading }
	g := gauges.New(gauges.Options{Source: source, Lag: source.lag, States: source.watcher.verdicts.States, Top: c.o.TopSeries, Logger: c.logger})

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer func() { stop(); wg.Wait() }()
	wg.Go(func() { _ = g.Run(background, nil) }) // ends with its context
	if !c.o.NoFinalise {
		wg.Go(func() { c.finalise(background, store) })
	}
	if c.viewers != nil {
		wg.Go(func() { c.viewers.watch(background) })
	}
	wg.Go(func() { source.watcher.run(background) })
	c.watch(background, &wg, source.alerting)
	server := c.server(source, g)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	c.logger.Info("listening", "addr", listener.Addr().String())
	if c.o.Listening != nil {
		c.o.Listening(listener.Addr())
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	c.logger.Info("stopping")
	return ingestd.Stop(server, consoleGrace)
}

// watch evaluates the rules and tells the Alertmanagers until ctx ends, and gives the
// lease to another then.
func (c *Console) watch(ctx context.Context, wg *sync.WaitGroup, w *alerting) {
	for _, am := range w.managers {
		wg.Go(func() { am.Run(ctx) })
	}
	wg.Go(func() {
		_ = w.Run(ctx) // ends with its context
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := w.lease.release(last); err != nil {
			c.logger.Debug("the lease stays until it ends by itself", "error", err)
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.o.Reload:
				w.reload()
			}
		}
	})
}

// finalise runs the finaliser as soon as there is a store.
func (c *Console) finalise(ctx context.Context, late *lateStore) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		store, err := late.get(ctx)
		if err == nil {
			_ = clickhouse.NewFinaliser(store.Store, clickhouse.FinaliserOptions{Logger: c.logger}).Run(ctx) // ends with its context
			return
		}
		if ctx.Err() != nil {
			return
		}
		c.logger.Warn("the store cannot be opened and will be tried again", "error", err, "after", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (c *Console) server(source *consoleSource, g *gauges.Gauges) *http.Server {
	return &http.Server{
		Handler: c.routes(source, g), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(c.logger.Handler(), slog.LevelDebug),
	}
}

func (c *Console) routes(source *consoleSource, g *gauges.Gauges) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(g, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r := chi.NewRouter()
	r.Use(middleware.GetHead, c.sameHost, secured, c.viewers.admit)
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	r.Get("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := source.store.ready(r.Context()); err != nil {
			c.logger.Debug("not ready", "error", err)
			plain(w, http.StatusServiceUnavailable, "the store is not ready; the log of the service says why")
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(c.logger.Handler(), slog.LevelError)}))
	api.Mount(r, api.Options{Source: source, Version: c.o.Version, Logger: c.logger})
	web.Mount(r, web.Options{Source: source, Together: clickhouse.Together, Detector: &source.watcher.verdicts, Version: c.o.Version, RunbookURL: c.o.Alerts.RunbookURL, Logger: c.logger})
	return r
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// secured sets the headers that every answer has.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

// sameHost refuses requests for another host than a loopback one: a page from
// elsewhere whose name was made to point here (DNS rebinding) must read nothing. Where
// everybody may read there is nothing to keep; where tokens are asked for, such a page has none.
func (c *Console) sameHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !c.o.Insecure && c.viewers == nil && !ingestd.Loopback(net.JoinHostPort(host, "0")) {
			plain(w, http.StatusMisdirectedRequest, "this service answers for loopback addresses only; start it with --auth FILE, or with --insecure to let everybody read")
			return
		}
		next.ServeHTTP(w, r)
	})
}
