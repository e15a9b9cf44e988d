package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens"
)

// DefaultBatchRows is how many records are handed to the sink at a time.
const DefaultBatchRows = 50_000

// Options say where an [Importer] writes and what it takes.
type Options struct {
	Sink          Sink                    // required
	Limits        func() retrylens.Limits // required: the clock of validation
	DefaultTenant string                  // for records without one; "" leaves them to be refused
	BatchRows     int                     // 0 = DefaultBatchRows
	Workers       int                     // goroutines that decode; 0 = one a core
	OnReject      func(Reject)            // every refused line, in order; not concurrent; may be nil
	Progress      func(Progress)          // from time to time; not concurrent; may be nil
}

// Progress is how far an import has come.
type Progress struct {
	BytesRead  int64 // before decompression, over all sources
	BytesTotal int64 // 0 = not known
	Accepted   int64 // decoded and valid; stored only with their batch
	Rejected   int64
}

// Summary is what an import came to.
type Summary struct {
	Accepted         int64            `json:"accepted"` // stored
	Rejected         int64            `json:"rejected"`
	RejectedByReason map[string]int64 `json:"rejected_by_reason"` // "field: kind of reason", without values

	// Damaged are the sources that ended too early or could not be read to their
	// end: what else was in them nobody knows.
	Damaged []string `json:"-"`
}

// Importer runs imports.
type Importer struct{ opt Options }

// New checks the options.
func New(opt Options) (*Importer, error) {
	switch {
	case opt.Sink == nil:
		return nil, errors.New("ingest: Options.Sink is missing")
	case opt.Limits == nil:
		return nil, errors.New("ingest: Options.Limits is missing")
	case opt.BatchRows < 0:
		return nil, fmt.Errorf("ingest: Options.BatchRows must not be negative, got %d", opt.BatchRows)
	case opt.Workers < 0:
		return nil, fmt.Errorf("ingest: Options.Workers must not be negative, got %d", opt.Workers)
	}
	if opt.BatchRows == 0 {
		opt.BatchRows = DefaultBatchRows
	}
	if opt.Workers == 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.OnReject == nil {
		opt.OnReject = func(Reject) {}
	}
	if opt.Progress == nil {
		opt.Progress = func(Progress) {}
	}
	return &Importer{opt}, nil
}

// Run reads the sources one after another and stores every good record. A bad
// line, also the end of a truncated file, is a reject and no error. An error (a
// source that cannot be opened, a failing sink, a cancelled context) ends the import; it
// tells how many records were stored, and so does Summary.Accepted. Running the import again is safe.
//
// When ctx ends while a source blocks in Read, Run returns and leaves that one
// Read behind.
func (im *Importer) Run(ctx context.Context, sources ...Source) (Summary, error) {
	p := newPipeline(im.opt, sources)
	g, ctx := errgroup.WithContext(ctx)
	go p.readAll(ctx)
	for range im.opt.Workers {
		g.Go(func() error { return p.decodeAll(ctx) })
	}
	g.Go(func() error { return p.collectAll(ctx) })
	g.Go(func() error { return p.writeAll(ctx) })
	err := g.Wait()
	sum := Summary{Accepted: p.stored, Rejected: p.rejected, RejectedByReason: p.byReason, Damaged: p.damaged}
	if err != nil {
		return sum, fmt.Errorf("ingest: at least %d records were stored, then (importing again is safe): %w", sum.Accepted, err)
	}
	return sum, nil
}
