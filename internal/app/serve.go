package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
)

// The defaults of ServeOptions.
const (
	DefaultListen     = "127.0.0.1:8480"
	DefaultServeGrace = 15 * time.Second
)

// serveMemory is what the Go runtime keeps to unless GOMEMLIMIT says otherwise.
const serveMemory = 192 << 20

const (
	tokensPoll  = 2 * time.Second
	statusEvery = 30 * time.Second
	// requestShare: the part of the grace that requests under way may take; the
	// drain has what is left.
	requestShare = 2
)

// ServeOptions say how the ingest service runs.
type ServeOptions struct {
	Store      StoreOptions
	Migrate    bool   // also a store that is not embedded
	Listen     string // "" = DefaultListen
	SpoolDir   string
	SpoolLimit int64  // bytes; 0 = spool.DefaultLimitBytes
	Durability string // "" = fsync
	TokensFile string
	Insecure   bool   // no tokens, on loopback only
	Tenant     string // with Insecure: of records that name none
	TLS        ingestd.TLSFiles
	Limits     ingestd.TenantLimits
	Grace      time.Duration // for draining at the end; 0 = DefaultServeGrace
	Reload     <-chan os.Signal
	JSONLogs   bool
	Verbose    bool
	Streams    Streams
}

// Serve runs the ingest service until ctx ends.
type Serve struct {
	o      ServeOptions
	logger *slog.Logger
}

// NewServe checks the options.
func NewServe(o ServeOptions) (*Serve, error) {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.Grace == 0 {
		o.Grace = DefaultServeGrace
	}
	if o.Durability == "" {
		o.Durability = string(spool.FSync)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Serve{o: o, logger: newLogger(o.Streams, o.JSONLogs, o.Verbose)}
	s.o.Store.Logger = s.logger
	return s, nil
}

func (o ServeOptions) check() error {
	if _, err := ParseAddress(o.Store.Address); err != nil {
		return err
	}
	if _, err := spool.ParseDurability(o.Durability); err != nil {
		return usagef("--durability must be memory, os or fsync, got %.40q", o.Durability)
	}
	switch {
	case o.SpoolDir == "":
		return usagef("--spool DIR must be given: where records wait for the store")
	case o.SpoolLimit < 0:
		return usagef("--spool-limit must be positive")
	case o.TokensFile == "" && !o.Insecure:
		return usagef("--tokens FILE must be given, or --insecure on a loopback address")
	case o.TokensFile != "" && o.Insecure:
		return usagef("--tokens and --insecure exclude each other")
	case o.Insecure && !ingestd.Loopback(o.Listen):
		return usagef("--insecure needs a loopback address to --listen on, got %.60q", o.Listen)
	case o.Tenant != "" && !o.Insecure:
		return usagef("--tenant is for --insecure: with --tokens it comes from the token")
	case (o.TLS.Cert == "") != (o.TLS.Key == ""):
		return usagef("--tls-cert and --tls-key go together")
	case o.TLS.ClientCA != "" && o.TLS.Cert == "":
		return usagef("--client-ca needs --tls-cert and --tls-key")
	case o.Limits.RecordsPerSecond < 0 || o.Limits.BytesPerSecond < 0:
		return usagef("a tenant's limits must not be negative")
	case o.Grace < 0:
		return usagef("--grace must not be negative, got %v", o.Grace)
	}
	return nil
}

// serving is the parts of a service that runs, in the order in which they start.
type serving struct {
	*Serve
	listener net.Listener
	spool    *spool.Spool
	store    *lateStore
	metrics  *ingestd.Metrics
	handler  *ingestd.Handler
	drainer  *drain.Drainer
	tokens   *tokens.File // nil = insecure
	began    time.Time
}

// Run serves until ctx ends, then finishes what is under way, drains what the
// store takes within the grace period and leaves the rest in the spool. The store
// may be away when it starts.
func (s *Serve) Run(ctx context.Context) (err error) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(serveMemory)
	}
	r := &serving{Serve: s, began: time.Now()}
	var teardown []func() error
	defer func() {
		for i := len(teardown) - 1; i >= 0; i-- {
			err = errors.Join(err, teardown[i]())
		}
	}()
	if r.spool, err = spool.Open(spool.Options{Dir: s.o.SpoolDir, LimitBytes: s.o.SpoolLimit, Durability: spool.Durability(s.o.Durability), Logger: s.logger}); err != nil {
		return err
	}
	teardown = append(teardown, r.spool.Close)
	r.store = newLateStore(s.o.Store, s.o.Migrate)
	teardown = append(teardown, r.store.close)
	if err := r.prepare(); err != nil {
		return err
	}
	if r.listener, err = ingestd.Listen(s.o.Listen, s.o.TLS, s.logger); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return r.run(ctx)
}

func (r *serving) prepare() error {
	r.metrics = ingestd.NewMetrics(r.spool.Stats)
	if err := r.openTokens(); err != nil {
		return err
	}
	var err error
	r.handler, err = ingestd.New(ingestd.Options{
		Spool: r.spool, Metrics: r.metrics, Authenticate: r.authenticate, Logger: r.logger, Tenant: r.o.Limits,
		Limits:     func() retrylens.Limits { return retrylens.Limits{Now: time.Now(), Retention: r.store.retention()} },
		StoreReady: r.store.ready, TokensReady: r.tokensReady,
	})
	if err != nil {
		return err
	}
	r.drainer, err = drain.New(drain.Options{
		Spool: r.spool, Sink: r.store, Observer: r.metrics, Logger: r.logger,
		Classify:    func(err error) drain.Kind { return drainKinds[clickhouse.Classify(err)] },
		Describe:    describe,
		DeadLetters: drain.NewDeadLetters(r.o.SpoolDir),
	})
	return err
}

// drainKinds are the store's kinds of errors in the drainer's words.
var drainKinds = map[clickhouse.Kind]drain.Kind{
	clickhouse.KindRetry: drain.Retry, clickhouse.KindData: drain.Data, clickhouse.KindSplit: drain.Split, clickhouse.KindFatal: drain.Fatal,
}

func (r *serving) openTokens() (err error) {
	if r.o.Insecure {
		r.logger.Warn("no tokens are asked for: everybody on this machine may send for every tenant")
		return nil
	}
	r.tokens, err = tokens.Open(r.o.TokensFile, r.logger)
	return err
}

func (r *serving) authenticate(token string) (tokens.Principal, bool) {
	if r.tokens == nil {
		return tokens.Principal{Tenants: []string{tokens.AnyTenant}, Default: r.o.Tenant}, true
	}
	return r.tokens.Find(token)
}

func (r *serving) tokensReady() error {
	if r.tokens == nil {
		return nil
	}
	return r.tokens.Err()
}

func (r *serving) run(ctx context.Context) error {
	// What runs besides the server ends after it.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer func() { stop(); wg.Wait() }()
	wg.Go(func() { r.drainer.Run(background) })
	wg.Go(func() { r.reportStatus(background) })
	if r.tokens != nil {
		wg.Go(func() { r.tokens.Watch(background, tokensPoll, r.o.Reload) })
	}
	server := ingestd.NewServer(r.handler.Routes(), r.logger)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(r.listener) }()
	st := r.spool.Stats()
	r.logger.Info("listening", "addr", r.listener.Addr().String(), "tls", r.o.TLS.Cert != "", "spool_bytes", st.Bytes, "spool_segments", st.Segments)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return r.finish(server, background)
}

// finish ends the server and drains.
func (r *serving) finish(server *http.Server, background context.Context) error {
	r.logger.Info("stopping", "grace", r.o.Grace.String())
	r.handler.Stopping()
	grace, cancel := context.WithTimeout(background, r.o.Grace)
	defer cancel()
	if err := ingestd.Stop(server, r.o.Grace/requestShare); err != nil {
		r.logger.Warn("requests under way are cut off", "err", err)
	}
	r.spool.Seal()
	if err := r.drainer.Flush(grace); err != nil {
		st := r.spool.Stats()
		r.logger.Warn("records stay in the spool until the next start", "bytes", st.Bytes, "segments", st.Segments)
	}
	r.writeStatus(grace)
	return nil
}

// reportStatus tells the store how the service is, at once and then regularly.
func (r *serving) reportStatus(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		r.writeStatus(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *serving) writeStatus(ctx context.Context) {
	st := r.spool.Stats()
	node, err := os.Hostname()
	if err == nil {
		err = r.store.writeStatus(ctx, clickhouse.IngestStatus{
			Node: node, StartedAt: r.began, At: time.Now(), RejectedLines: r.metrics.RejectedLines(), DeadLetters: r.metrics.DeadLetters(),
			SpoolBytes: uint64(st.Bytes), SpoolAgeMS: uint64(ingestd.SpoolAge(st).Milliseconds()),
		})
	}
	if err != nil {
		r.logger.Debug("the status is not told to the store", "err", err)
	}
}
