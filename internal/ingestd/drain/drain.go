package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingest"
	"github.com/retrylens/retrylens/internal/spool"
)

// Kind is what an error of a sink means.
type Kind string

// Kinds of errors.
const (
	Retry Kind = "retry" // it may pass: wait and send the same again
	Data  Kind = "data"  // a record in the batch is refused for what it holds: halve the batch
	Split Kind = "split" // the batch is too much at once: halve it
	Fatal Kind = "fatal" // it passes when somebody does something: report, wait longer
)

// Spool is what is drained.
type Spool interface {
	Sealed() []spool.Segment
	Changed() <-chan struct{}
	NewReader() *spool.Reader
	Delete(spool.Segment) error
}

// Options say what is drained, where to and how. Fields without a default are
// required.
type Options struct {
	Spool       Spool
	Sink        ingest.Sink      // calls overlap: it must allow that
	Classify    func(error) Kind // of an error of the sink
	DeadLetters *DeadLetters
	Observer    Observer
	Logger      *slog.Logger // nil = none

	Workers       int           // inserts at the same time; 0 = DefaultWorkers
	BatchRows     int           // most rows of an insert; 0 = DefaultBatchRows
	InsertTimeout time.Duration // 0 = DefaultInsertTimeout
	MinBackoff    time.Duration // 0 = DefaultMinBackoff
	MaxBackoff    time.Duration // 0 = DefaultMaxBackoff
}

// Observer is told what happens. Its methods are called concurrently.
type Observer interface {
	Inserted(rows int, took time.Duration, err error)
	Retried(kind string)
	Died(n int)
}

// The defaults of Options.
const (
	DefaultWorkers       = 2
	DefaultBatchRows     = 25_000
	DefaultInsertTimeout = 2 * time.Minute
	DefaultMinBackoff    = 200 * time.Millisecond
	DefaultMaxBackoff    = 15 * time.Second
)

// secondLook is how long a segment waits whose every record was refused.
const secondLook = 10 * time.Second

// newestShare: of so many segments one is the newest, the others the oldest.
const newestShare = 4

// Drainer drains.
type Drainer struct {
	o Options

	mu       sync.Mutex
	claimed  map[uint64]bool
	failures map[uint64]failure // of segments that failed
	picks    int
	pause    time.Time       // the sink is down: nobody tries before
	downs    int             // how often in a row
	stored   int             // segments
	taken    int             // records that the sink took
	buried   map[uint64]bool // segments that may have dead letters in the file
	added    map[uint64]int  // dead letters that were not counted yet
	suspects map[uint64]bool // segments whose every record was refused
	wake     chan struct{}
}

// failure is how often a segment failed while others were stored, and until when
// it waits for that: a failure that all share is the sink's.
type failure struct {
	times  int
	stored int // Drainer.stored at that time
	until  time.Time
}

// New checks the options.
func New(o Options) (*Drainer, error) {
	switch {
	case o.Spool == nil:
		return nil, errors.New("drain: Options.Spool is missing")
	case o.Sink == nil:
		return nil, errors.New("drain: Options.Sink is missing")
	case o.Classify == nil:
		return nil, errors.New("drain: Options.Classify is missing")
	case o.DeadLetters == nil:
		return nil, errors.New("drain: Options.DeadLetters is missing")
	case o.Observer == nil:
		return nil, errors.New("drain: Options.Observer is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Workers = positive(o.Workers, DefaultWorkers)
	o.BatchRows = positive(o.BatchRows, DefaultBatchRows)
	o.InsertTimeout = positive(o.InsertTimeout, DefaultInsertTimeout)
	o.MinBackoff = positive(o.MinBackoff, DefaultMinBackoff)
	o.MaxBackoff = positive(o.MaxBackoff, DefaultMaxBackoff)
	d := &Drainer{
		o: o, claimed: map[uint64]bool{}, failures: map[uint64]failure{}, buried: map[uint64]bool{},
		added: map[uint64]int{}, suspects: map[uint64]bool{}, wake: make(chan struct{}, 1),
	}
	for _, g := range o.Spool.Sealed() { // an earlier process may have tried them
		d.buried[g.ID] = true
	}
	return d, nil
}

func positive[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Run drains until ctx ends. An insert under way ends with ctx too: its segment
// stays.
func (d *Drainer) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range d.o.Workers {
		wg.Go(func() { d.work(ctx) })
	}
	wg.Wait()
}

// Flush returns when the spool is empty or ctx ends. Run must be under way.
func (d *Drainer) Flush(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(d.o.Spool.Sealed()) > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

func (d *Drainer) work(ctx context.Context) {
	w := &worker{d: d, reader: d.o.Spool.NewReader()}
	for ctx.Err() == nil {
		g, wait, ok := d.claim(time.Now())
		if !ok {
			d.rest(ctx, wait)
			continue
		}
		d.nudge() // there may be more for another worker
		err := w.drain(ctx, g)
		d.release(g, err, ctx.Err() != nil)
	}
}

// claim picks a segment that nobody works on, or tells how long there is none.
func (d *Drainer) claim(now time.Time) (g spool.Segment, wait time.Duration, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const idle = time.Hour // until woken
	if d.pause.After(now) {
		return g, d.pause.Sub(now), false
	}
	if d.downs > 0 && len(d.claimed) > 0 {
		return g, idle, false // one tries whether the sink is back
	}
	var free []spool.Segment
	wait = idle
	for _, s := range d.o.Spool.Sealed() {
		switch f := d.failures[s.ID]; {
		case d.claimed[s.ID]:
		case f.until.After(now):
			wait = min(wait, f.until.Sub(now))
		default:
			free = append(free, s)
		}
	}
	if len(free) == 0 {
		return g, wait, false
	}
	d.picks++
	g = free[0]
	if d.picks%newestShare == 0 {
		g = free[len(free)-1]
	}
	d.claimed[g.ID] = true
	return g, 0, true
}

// rest waits for new segments, a release, or wait.
func (d *Drainer) rest(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-d.o.Spool.Changed():
	case <-d.wake:
	case <-timer.C:
	}
}

func (d *Drainer) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// release ends a claim. After a failure the segment waits, and when the sink
// itself failed everybody does.
func (d *Drainer) release(g spool.Segment, err error, stopping bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.nudge()
	delete(d.claimed, g.ID)
	if err == nil {
		delete(d.failures, g.ID)
		delete(d.buried, g.ID)
		delete(d.added, g.ID)
		delete(d.suspects, g.ID)
		d.downs = 0
		d.stored++
		return
	}
	if stopping {
		return
	}
	kind := d.kind(err)
	f, again := d.failures[g.ID]
	var own *segmentError
	if mine := errors.As(err, &own); mine || again && f.stored < d.stored {
		f.times++
		f.until = time.Now().Add(d.backoff(f.times))
	}
	if errors.Is(err, errAllRefused) {
		f.until = time.Now().Add(secondLook)
	}
	if own == nil {
		d.downs++
		d.pause = time.Now().Add(d.backoff(d.downs))
	}
	f.stored = d.stored
	d.failures[g.ID] = f
	d.o.Observer.Retried(string(kind))
	level := d.o.Logger.Warn
	if kind == Fatal {
		level = d.o.Logger.Error
	}
	level("a segment waits for the store", "segment", g.ID, "kind", kind, "times", max(f.times, d.downs), "err", err)
}

// kind is what an error means: what we cannot tell may pass.
func (d *Drainer) kind(err error) Kind {
	var own *segmentError
	if errors.As(err, &own) {
		return own.kind
	}
	return d.o.Classify(err)
}

// backoff is full jitter over a doubling cap.
func (d *Drainer) backoff(times int) time.Duration {
	limit := d.o.MaxBackoff
	if times < 20 {
		limit = min(limit, d.o.MinBackoff<<(times-1))
	}
	return d.o.MinBackoff/2 + rand.N(limit) //nolint:gosec // jitter
}

// segmentError is about one segment: others may be stored meanwhile.
type segmentError struct {
	kind Kind
	err  error
}

func (e *segmentError) Error() string { return e.err.Error() }
func (e *segmentError) Unwrap() error { return e.err }

// worker drains one segment after another.
type worker struct {
	d      *Drainer
	reader *spool.Reader
	batch  []retrylens.Attempt
}

// drain stores a segment and deletes it.
func (w *worker) drain(ctx context.Context, g spool.Segment) error {
	w.batch = w.batch[:0]
	b := w.d.bisect(ctx, g)
	err := w.reader.Read(g, func(a retrylens.Attempt) error {
		w.batch = append(w.batch, a)
		if len(w.batch) < w.d.o.BatchRows {
			return nil
		}
		return w.flush(b)
	})
	if err == nil {
		err = w.flush(b)
	}
	if err == nil {
		err = b.bury()
	}
	if err != nil {
		return err
	}
	if err := w.d.o.Spool.Delete(g); err != nil {
		return &segmentError{Fatal, err}
	}
	return nil
}

func (d *Drainer) bisect(ctx context.Context, g spool.Segment) *bisection {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &bisection{d: d, ctx: ctx, segment: g, before: d.taken}
}

// flush stores the batch: the same rows every time the segment is tried.
func (w *worker) flush(b *bisection) error {
	if len(w.batch) == 0 {
		return nil
	}
	err := b.store(w.batch)
	clear(w.batch)
	w.batch = w.batch[:0]
	return err
}

// insert is one try.
func (d *Drainer) insert(ctx context.Context, rows []retrylens.Attempt) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.o.InsertTimeout, fmt.Errorf("drain: no answer to an insert within %v", d.o.InsertTimeout))
	defer cancel()
	began := time.Now()
	err := d.o.Sink.Write(ctx, rows)
	d.o.Observer.Inserted(len(rows), time.Since(began), err)
	if err == nil {
		d.mu.Lock()
		d.taken += len(rows)
		d.mu.Unlock()
	}
	return err
}
