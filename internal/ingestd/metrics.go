package ingestd

import (
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/spool"
)

// Metrics are the figures of one service, in a registry of its own. No label
// ever holds what a sender chose.
type Metrics struct {
	registry *prometheus.Registry

	accepted    prometheus.Counter
	rejected    *prometheus.CounterVec // by reason
	requests    *prometheus.CounterVec // by code
	inserts     prometheus.Histogram
	retries     *prometheus.CounterVec // by kind of error
	inserted    prometheus.Counter
	deadLetters prometheus.Counter

	rejectedLines, dead atomic.Uint64 // the counters, to be read
	refuses             atomic.Bool   // the last outcome of an insert
}

// NewMetrics returns the figures of a service with that spool.
func NewMetrics(stats func() spool.Stats) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		accepted: counter("accepted_total", "Records that were made durable and acknowledged."),
		rejected: prometheus.NewCounterVec(options("rejected_total", "Lines that were refused, by field and kind of reason."), []string{"reason"}),
		requests: prometheus.NewCounterVec(options("requests_total", "Requests with attempts, by answer: accepted or the code of a problem."), []string{"answer"}),
		inserts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "retrylens", Subsystem: "ingest", Name: "insert_seconds", Help: "How long inserts into the store took, failed ones included.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
		retries:     prometheus.NewCounterVec(options("insert_retries_total", "Inserts that failed and are tried again, by kind of error."), []string{"kind"}),
		inserted:    counter("inserted_total", "Records that the store acknowledged; repeats included."),
		deadLetters: counter("dead_letters_total", "Records that the store refused and that were put into the dead-letter file."),
	}
	m.registry.MustRegister(m.accepted, m.rejected, m.requests, m.inserts, m.retries, m.inserted, m.deadLetters,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.gauge("spool_bytes", "Bytes in the spool.", func() float64 { return float64(stats().Bytes) })
	m.gauge("spool_limit_bytes", "What spool_bytes may become.", func() float64 { return float64(stats().LimitBytes) })
	m.gauge("spool_segments", "Segments in the spool.", func() float64 { return float64(stats().Segments) })
	m.gauge("spool_oldest_age_seconds", "Age of the oldest record in the spool, 0 when it is empty.", func() float64 { return SpoolAge(stats()).Seconds() })
	m.gauge("store_refuses", "1 after an insert that fails until somebody does something, until the store takes one.", func() float64 { return flag(m.StoreRefuses()) })
	m.counterFunc("quarantined_total", "Runs of spool bytes that were no record and were set aside.", func() float64 { return float64(stats().Quarantined) })
	m.gauge("spool_unkept", "Runs of spool bytes that are no record and could not be set aside yet: they stay in their segments.", func() float64 { return float64(stats().Unkept) })
	m.counterFunc("spool_syncs_total", "Fsyncs of the spool.", func() float64 { return float64(stats().Syncs) })
	return m
}

// SpoolAge is the age of the oldest segment.
func SpoolAge(s spool.Stats) time.Duration {
	if s.OldestAt.IsZero() {
		return 0
	}
	return max(0, time.Since(s.OldestAt))
}

func options(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: "retrylens", Subsystem: "ingest", Name: name, Help: help}
}

func counter(name, help string) prometheus.Counter { return prometheus.NewCounter(options(name, help)) }

func (m *Metrics) gauge(name, help string, f func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts(options(name, help)), f))
}

func (m *Metrics) counterFunc(name, help string, f func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(options(name, help), f))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// handler serves the registry.
func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// reject counts refused lines.
func (m *Metrics) reject(byKind map[string]int) {
	for kind, n := range byKind {
		m.rejected.WithLabelValues(kind).Add(float64(n))
		m.rejectedLines.Add(uint64(n))
	}
}

// RejectedLines is how many lines were refused.
func (m *Metrics) RejectedLines() uint64 { return m.rejectedLines.Load() }

// DeadLetters is how many records became dead letters.
func (m *Metrics) DeadLetters() uint64 { return m.dead.Load() }

// Inserted observes an insert that the store acknowledged or not.
func (m *Metrics) Inserted(rows int, took time.Duration, err error) {
	m.inserts.Observe(took.Seconds())
	if err == nil {
		m.refuses.Store(false)
		m.inserted.Add(float64(rows))
	}
}

// Retried observes an error after which an insert is tried again.
func (m *Metrics) Retried(kind string) {
	m.retries.WithLabelValues(kind).Inc()
	if kind == string(drain.Fatal) {
		m.refuses.Store(true)
	}
}

// StoreRefuses tells whether the last insert failed for a reason that does not
// pass by itself, though the store may answer: a missing table, a right withdrawn.
func (m *Metrics) StoreRefuses() bool { return m.refuses.Load() }

// Died observes dead letters.
func (m *Metrics) Died(n int) {
	m.refuses.Store(false) // the store told it of these alone
	m.deadLetters.Add(float64(n))
	m.dead.Add(uint64(math.Max(0, float64(n))))
}
