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
	Local Kind = "local" // not the sink's: a file of the spool or of dead letters; the drainer's own
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
	Classify    func(error) Kind // of an error of the sink; never Local
	DeadLetters *DeadLetters
	Observer    Observer
	Logger      *slog.Logger // nil = none
	// Describe is what of an error of the sink is logged beside its kind. It must
	// not hold what a record does: the whole text may, and is for the file of
	// reasons only. nil = nothing.
	Describe func(error) string

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
	DefaultBatchRows     = 20_000
	DefaultInsertTimeout = 2 * time.Minute
	DefaultMinBackoff    = 200 * time.Millisecond
	DefaultMaxBackoff    = 15 * time.Second
)

// newestShare: of so many segments one is the newest, the others the oldest.
const newestShare = 4

// Drainer drains.
type Drainer struct {
	o Options

	mu       sync.Mutex
	claimed  map[uint64]bool
	failures map[uint64]failure // of segments that failed
	picks    int
	pause    time.Time          // the sink is down: nobody tries before
	downs    int                // how often in a row
	stored   int                // segments
	known    *retrylens.Attempt // the last record that the sink took
	refusing bool               // the sink refuses everything
	bisects  int                // segments that are bisected now
	buried   map[uint64]bool    // segments that may have dead letters in the file
	added    map[uint64]int     // dead letters that were not counted yet
	suspects map[uint64]bool    // segments whose every record was refused
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
	if o.Describe == nil {
		o.Describe = func(error) string { return "" }
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
	switch {
	case d.refusing: // whichever: one that it takes tells that only others are bad
		g = free[d.picks%len(free)]
	case d.picks%newestShare == 0:
		g = free[len(free)-1]
	default:
		g = free[0]
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
		d.downs, d.refusing = 0, false
		d.stored++
		return
	}
	if stopping {
		return
	}
	d.fail(g, d.faultOf(err))
}

// fail makes a segment wait, or everybody, and tells.
func (d *Drainer) fail(g spool.Segment, f *fault) {
	now := time.Now()
	s, again := d.failures[g.ID]
	if f.alone || again && s.stored < d.stored {
		s.times++
		s.until = now.Add(d.backoff(s.times))
	}
	if f.wait > 0 {
		s.until = now.Add(f.wait)
	}
	if !f.alone {
		d.downs++
		d.pause = now.Add(d.backoff(d.downs))
		d.refusing = f.refuses
	}
	s.stored = d.stored
	d.failures[g.ID] = s
	d.o.Observer.Retried(string(f.kind))
	level := d.o.Logger.Warn
	if f.kind == Fatal || f.kind == Local {
		level = d.o.Logger.Error
	}
	level("a segment waits", "segment", g.ID, "kind", f.kind, "times", max(s.times, d.downs), "err", f.text)
}

// faultOf is what an error means: what we cannot tell is the sink's.
func (d *Drainer) faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{kind: d.o.Classify(err), text: d.o.Describe(err), err: err}
}

// backoff is full jitter over a doubling cap.
func (d *Drainer) backoff(times int) time.Duration {
	limit := d.o.MaxBackoff
	if times < 20 {
		limit = min(limit, d.o.MinBackoff<<(times-1))
	}
	return d.o.MinBackoff/2 + rand.N(limit) //nolint:gosec // jitter
}

// fault is why a segment was not stored.
type fault struct {
	kind    Kind
	alone   bool          // it is about this segment: others may be stored meanwhile
	refuses bool          // the sink refuses everything
	wait    time.Duration // until the segment is tried again; 0 = as its backoff says
	text    string        // for the log: nothing that a record holds
	err     error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.err }

// local is a fault of a file of ours.
func local(err error) *fault {
	return &fault{kind: Local, alone: true, text: err.Error(), err: err}
}

// worker drains one segment after another.
type worker struct {
	d      *Drainer
	reader *spool.Reader
	batch  []retrylens.Attempt
}

// drain stores a segment and deletes it.
func (w *worker) drain(ctx context.Context, g spool.Segment) error {
	b := &bisection{d: w.d, ctx: ctx, segment: g}
	defer b.end()
	if err := w.storeAll(b); err != nil {
		return err
	}
	if err := b.bury(); err != nil {
		return err
	}
	if err := w.d.o.Spool.Delete(g); err != nil {
		return local(err)
	}
	return nil
}

func (w *worker) storeAll(b *bisection) error {
	w.batch = w.batch[:0]
	var failed error // of the sink: any other is one of reading
	err := w.reader.Read(b.segment, func(a retrylens.Attempt) error {
		w.batch = append(w.batch, a)
		if len(w.batch) == w.d.o.BatchRows {
			failed = w.flush(b)
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return local(err)
	}
	return w.flush(b)
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
		last := rows[len(rows)-1]
		d.mu.Lock()
		d.known = &last
		d.mu.Unlock()
	}
	return err
}
