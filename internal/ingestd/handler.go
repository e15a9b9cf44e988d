package ingestd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
)

// Spool is where records become durable.
type Spool interface {
	Append(*spool.Batch) error // spool.ErrFull when there is no room
	Full() bool
	Stats() spool.Stats
}

// Options say how a Handler works. Fields without a default are required.
type Options struct {
	Spool        Spool
	Metrics      *Metrics
	Authenticate func(token string) (tokens.Principal, bool) // "" = no token was sent
	Limits       func() retrylens.Limits                     // the clock of validation
	StoreReady   func(context.Context) error                 // for /readyz
	TokensReady  func() error                                // for /readyz; nil = always
	Logger       *slog.Logger                                // nil = none

	Tenant        TenantLimits
	MaxLines      int   // of a body; 0 = DefaultMaxLines
	MaxBodyBytes  int64 // of a body, before and after decompression; 0 = DefaultMaxBodyBytes
	MaxRequests   int   // bodies read at the same time, of one token two thirds at most; 0 = DefaultMaxRequests
	InFlightBytes int64 // memory of all bodies together, of one token two thirds at most; 0 = DefaultInFlightBytes
	Pace          Pace  // zero fields = DefaultPace
}

// The defaults of Options; the first two are the record document's.
const (
	DefaultMaxLines      = 50_000
	DefaultMaxBodyBytes  = 32 << 20
	DefaultMaxRequests   = 256
	DefaultInFlightBytes = 96 << 20
)

// DefaultPace stops bodies that trickle.
var DefaultPace = Pace{Stall: 10 * time.Second, Grace: 30 * time.Second, MinPerSec: 16 << 10}

const (
	retrySoon  = time.Second
	retryLater = 10 * time.Second // for a spool to drain
)

// Handler answers the requests of the service. Close the spool only after the
// server is shut down.
type Handler struct {
	o       Options
	limiter *tenantLimiter
	budget  *budget

	decompressor *decompressor
	slots        *budget // of MaxRequests
	stopping     atomic.Bool
}

// New checks the options.
func New(o Options) (*Handler, error) {
	switch {
	case o.Spool == nil:
		return nil, errors.New("ingestd: Options.Spool is missing")
	case o.Metrics == nil:
		return nil, errors.New("ingestd: Options.Metrics is missing")
	case o.Authenticate == nil:
		return nil, errors.New("ingestd: Options.Authenticate is missing")
	case o.Limits == nil:
		return nil, errors.New("ingestd: Options.Limits is missing")
	case o.StoreReady == nil:
		return nil, errors.New("ingestd: Options.StoreReady is missing")
	case o.Tenant.RecordsPerSecond < 0 || o.Tenant.BytesPerSecond < 0:
		return nil, fmt.Errorf("ingestd: Options.Tenant must not be negative, got %+v", o.Tenant)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TokensReady == nil {
		o.TokensReady = func() error { return nil }
	}
	o.MaxLines = positive(o.MaxLines, DefaultMaxLines)
	o.MaxBodyBytes = positive(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.MaxRequests = positive(o.MaxRequests, DefaultMaxRequests)
	o.InFlightBytes = positive(o.InFlightBytes, DefaultInFlightBytes)
	o.Pace.Stall = positive(o.Pace.Stall, DefaultPace.Stall)
	o.Pace.Grace = positive(o.Pace.Grace, DefaultPace.Grace)
	o.Pace.MinPerSec = positive(o.Pace.MinPerSec, DefaultPace.MinPerSec)
	h := &Handler{
		o: o, limiter: newTenantLimiter(o.Tenant, o.MaxLines, o.MaxBodyBytes),
		budget: newBudget(o.InFlightBytes), slots: newBudget(int64(o.MaxRequests)), decompressor: newDecompressor(),
	}
	o.Metrics.gauge("inflight_bytes", "Memory held by bodies under way.", h.budget.inUse)
	o.Metrics.gauge("tokens_stale", "1 while the file of tokens is missing or broken and its last good contents are used.", func() float64 { return flag(h.o.TokensReady() != nil) })
	return h, nil
}

func positive[T int | int64 | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Stopping makes the service refuse new bodies: those under way are finished.
func (h *Handler) Stopping() { h.stopping.Store(true) }

// Routes are all paths of the service.
func (h *Handler) Routes() http.Handler {
	r := chi.NewRouter()
	r.Use(bounded, h.recoverPanic)
	r.NotFound(func(w http.ResponseWriter, _ *http.Request) { newProblem("not_found", "").write(w) })
	allow := map[string]string{}
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow[r.URL.Path])
		newProblem("method_not_allowed", "").write(w)
	})
	for _, route := range []struct {
		path    string
		methods []string
		handler http.Handler
	}{
		{"/v1/attempts", []string{http.MethodPost}, http.HandlerFunc(h.postAttempts)},
		{"/healthz", reading, http.HandlerFunc(h.getHealth)},
		{"/readyz", reading, http.HandlerFunc(h.getReady)},
		{"/metrics", reading, h.o.Metrics.handler()},
	} {
		allow[route.path] = strings.Join(route.methods, ", ")
		for _, method := range route.methods {
			r.Method(method, route.path, route.handler)
		}
	}
	return r
}

var reading = []string{http.MethodGet, http.MethodHead}

// recoverPanic ends the connection of a request that met a bug, and tells it.
func (h *Handler) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				h.o.Logger.Error("panic in a request", "path", r.URL.Path, "panic", fmt.Sprintf("%T", v))
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// getHealth tells that the process answers.
func (h *Handler) getHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "ok"})
}

// getReady tells whether all is well: bodies are taken and reach the store, and
// the tokens are those of their file. A store that is away, or tokens that are
// stale, are no reason to send elsewhere as long as the spool has room: a load
// balancer asks with ?require=spool.
func (h *Handler) getReady(w http.ResponseWriter, r *http.Request) {
	require := r.URL.Query().Get("require")
	if require != "" && require != "spool" {
		newProblem("bad_parameter", "require must be spool").write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	st := h.o.Spool.Stats()
	// A write that failed a while ago says nothing any more: the next one must be let try.
	spoolOK := !h.o.Spool.Full() && (st.FailedAt.IsZero() || time.Since(st.FailedAt) > failedFor)
	refuses := h.o.Metrics.StoreRefuses()
	storeOK := h.o.StoreReady(ctx) == nil && !refuses
	tokensOK := h.o.TokensReady() == nil
	answer := map[string]any{
		"spool":    map[string]any{"ok": spoolOK, "bytes": st.Bytes, "limit_bytes": st.LimitBytes, "oldest_age_ms": SpoolAge(st).Milliseconds()},
		"store":    map[string]any{"ok": storeOK, "refuses": refuses},
		"tokens":   map[string]any{"ok": tokensOK},
		"stopping": h.stopping.Load(),
	}
	status := http.StatusOK
	if !spoolOK || h.stopping.Load() || require == "" && (!storeOK || !tokensOK) {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, "application/json", answer)
}

const (
	readyTimeout = 2 * time.Second
	failedFor    = 10 * time.Second
)
