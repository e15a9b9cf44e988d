package emit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/keys"
)

// Recorder takes attempt records. Implementations are safe for concurrent use.
type Recorder interface {
	// Emit takes a copy of a and sets its Emitter and Seq, unless it has a Seq already:
	// a revision repeats that of the record it replaces. late completes the record
	// later, outside of the call; nil = nothing to complete.
	Emit(a *retrylens.Attempt, late Late)
}

// Late is the part of a record whose making takes time, such as the fingerprint of a
// body.
type Late interface {
	// Size is the memory that is held until Complete was called, in bytes.
	Size() int
	// Complete fills in a. It is called at most once per record, from one goroutine.
	Complete(a *retrylens.Attempt)
}

// Options of an emitter. Zero values are the defaults.
type Options struct {
	Sink Sink // required: where batches go

	Tenant  string // of records without one; empty = the ingest token tells
	Emitter string // names this process start; default host, process id and a random part

	MaxRecords int           // held in memory; default 16,384. Further ones are dropped
	MaxBytes   int           // held by their late parts; default 32 MiB. Further ones go without
	BatchSize  int           // records; default 1,000
	FlushEvery time.Duration // default 1 s; a full batch goes at once

	Spool *Spool // where batches wait on disk for a sink that is away; nil = in memory alone

	Backoff func(failures int) time.Duration // after so many failures in a row; default full jitter, 500 ms to 30 s
	// OnError is told of each failure of the sink and of records that it refused, from the
	// emitter's goroutine; nil = see Stats.
	OnError func(error)
	Clock   clock.Clock // default the operating system's
}

// Stats counts records since the emitter began.
type Stats struct {
	Emitted  int64 // given to Emit, dropped ones included
	Sent     int64 // taken by the sink
	Dropped  int64 // lost for want of room; a gap of seq each
	Rejected int64 // refused by the sink or not encodable; a gap each
	Bare     int64 // sent without their late part, for want of room
	Queued   int64 // in memory now
	Spooled  int64 // put on disk; not all of them need be there still
	LastErr  string
}

// Emitter is a Recorder that sends to a Sink. It is safe for concurrent use; Close must
// be called once.
type Emitter struct {
	o     Options
	clock clock.Clock

	mu    sync.Mutex
	queue []*chunk // never grows beyond its capacity
	free  []*chunk // the same
	seq   int64
	ended bool

	wake    chan struct{} // capacity 1
	closing chan struct{}
	done    chan struct{}
	ctx     context.Context // of the sink's calls
	cancel  context.CancelFunc

	failures int       // of the sink, in a row
	retryAt  time.Time // with a spool: the sink is left alone until then

	bytes                                          atomic.Int64 // held by late parts
	underway                                       atomic.Int64 // records that the sink has now
	sent, dropped, rejected, bare, queued, spooled atomic.Int64
	lastErr                                        atomic.Pointer[string]
}

type record struct {
	a    retrylens.Attempt
	late Late
}

// chunk is a piece of the queue, small so that making one costs a call little.
type chunk struct {
	records [chunkSize]record
	n       int
}

const chunkSize = 32

// chunks that hold so many records, the first and the last of them in part.
func chunks(records int) int { return records/chunkSize + 2 }

const (
	defaultRecords = 16 << 10
	defaultBytes   = 32 << 20
	defaultBatch   = 1000
	defaultFlush   = time.Second
	maxBatch       = 50_000 // lines a request, docs/record.md
	minBackoff     = 500 * time.Millisecond
	maxBackoff     = 30 * time.Second
)

// New starts an emitter, or returns an error that names an option that is out of range.
func New(o Options) (*Emitter, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.defaults()
	n := chunks(o.MaxRecords)
	e := &Emitter{o: o, clock: o.Clock, wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		queue: make([]*chunk, 0, n), free: make([]*chunk, 0, n)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	go e.run()
	return e, nil
}

func (o *Options) check() error {
	switch {
	case o.Sink == nil:
		return errors.New("emit: Options.Sink is missing; use HTTP, File or Writer")
	case o.MaxRecords < 0 || o.MaxBytes < 0 || o.FlushEvery < 0:
		return errors.New("emit: Options.MaxRecords, MaxBytes and FlushEvery must not be negative")
	case o.BatchSize < 0 || o.BatchSize > maxBatch:
		return fmt.Errorf("emit: Options.BatchSize must be within 0..%d, got %d", maxBatch, o.BatchSize)
	}
	return nil
}

func (o *Options) defaults() {
	o.MaxRecords = orDefault(o.MaxRecords, defaultRecords)
	o.MaxBytes = orDefault(o.MaxBytes, defaultBytes)
	o.BatchSize = min(orDefault(o.BatchSize, defaultBatch), o.MaxRecords)
	o.FlushEvery = orDefault(o.FlushEvery, defaultFlush)
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Backoff == nil {
		o.Backoff = fullJitter
	}
	if o.Emitter == "" {
		o.Emitter = processName()
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// processName is unique per process start: host, process id, a random part.
func processName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return clip(host, 64) + "-" + strconv.Itoa(os.Getpid()) + "-" + keys.New()[24:]
}

// fullJitter is uniform(0, min(30 s, 500 ms·2^n)).
func fullJitter(failures int) time.Duration {
	limit := minBackoff << min(failures-1, 10)
	return time.Duration(rand.Int64N(int64(min(limit, maxBackoff)) + 1))
}

// Emit as in [Recorder]. It takes about a microsecond and waits for nothing but other
// calls of Emit. After Close a record is dropped and counted.
func (e *Emitter) Emit(a *retrylens.Attempt, late Late) {
	size := int64(0)
	if late != nil {
		size = int64(late.Size())
	}
	e.mu.Lock()
	a.Emitter = e.o.Emitter
	if !a.Seq.Set {
		a.Seq = retrylens.Some(e.seq)
		e.seq++
	}
	if e.ended || e.queued.Load() >= int64(e.o.MaxRecords) {
		e.mu.Unlock()
		e.dropped.Add(1)
		return
	}
	if late != nil && e.bytes.Add(size) > int64(e.o.MaxBytes) {
		e.bytes.Add(-size)
		late = nil
		e.bare.Add(1)
	}
	c := e.last()
	c.records[c.n].a, c.records[c.n].late = *a, late
	c.n++
	n := e.queued.Add(1)
	e.mu.Unlock()
	if n == 1 || n == int64(e.o.BatchSize) {
		e.ping()
	}
}

// last is the chunk with room, called with the lock held.
func (e *Emitter) last() *chunk {
	if n := len(e.queue); n > 0 && e.queue[n-1].n < chunkSize {
		return e.queue[n-1]
	}
	var c *chunk
	if n := len(e.free); n > 0 {
		c, e.free = e.free[n-1], e.free[:n-1]
	} else {
		c = new(chunk)
	}
	e.queue = append(e.queue, c)
	return c
}

func (e *Emitter) ping() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Stats of this moment.
func (e *Emitter) Stats() Stats {
	e.mu.Lock()
	emitted := e.seq
	e.mu.Unlock()
	s := Stats{Emitted: emitted, Sent: e.sent.Load(), Dropped: e.dropped.Load(), Rejected: e.rejected.Load(),
		Bare: e.bare.Load(), Queued: e.queued.Load(), Spooled: e.spooled.Load()}
	if p := e.lastErr.Load(); p != nil {
		s.LastErr = *p
	}
	return s
}

// Name is the emitter field of its records.
func (e *Emitter) Name() string { return e.o.Emitter }

// Close sends what is held and ends. When ctx ends first, what is left goes to the spool
// if there is one and is dropped and counted otherwise; the error tells how much. Without an
// end of ctx Close waits for a sink that is away. A sink that does not return from Send, such as a
// Writer to a pipe that nobody reads, is left behind a second after ctx has ended.
func (e *Emitter) Close(ctx context.Context) error {
	e.mu.Lock()
	again := e.ended
	e.ended = true
	e.mu.Unlock()
	stop := context.AfterFunc(ctx, e.cancel)
	defer stop()
	if !again {
		close(e.closing)
	}
	if !e.ends(ctx) {
		return fmt.Errorf("emit: the sink does not end with its context: %d records are left behind", e.underway.Load()+e.queued.Load())
	}
	if again {
		return nil
	}
	e.cancel()
	err := e.o.Sink.Close()
	if s := e.Stats(); s.Dropped+s.Rejected > 0 {
		err = errors.Join(err, fmt.Errorf("emit: %d of %d records were lost: %d dropped for want of room or time, %d refused (%s)",
			s.Dropped+s.Rejected, s.Emitted, s.Dropped, s.Rejected, s.LastErr))
	}
	return err
}

// ends waits for the emitter's goroutine, a while longer than ctx.
func (e *Emitter) ends(ctx context.Context) bool {
	select {
	case <-e.done:
		return true
	case <-ctx.Done():
	}
	timer := e.clock.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-e.done:
		return true
	case <-timer.C():
		return false
	}
}

const endGrace = time.Second
