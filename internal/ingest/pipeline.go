package ingest

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
)

// A chunk is some lines of one source on their way through the pipeline. There
// are a fixed number of chunks, which go round: that bounds the memory.
type chunk struct {
	source   string
	text     []byte // the lines one after another
	lines    []lineRef
	attempts []retrylens.Attempt
	rejects  []Reject
	err      error         // ends the import
	decoded  chan struct{} // one token when a worker is done with it
}

type lineRef struct {
	number     int
	start, end int
	reason     string // not "": refuse the line without decoding it
}

const (
	chunkBytes = 256 << 10
	chunkLines = 1024
)

// pipeline is one run: a reader fills chunks, workers decode them, the collector takes
// them in the order in which they were read and fills batches, the writer stores these.
type pipeline struct {
	opt     Options
	sources []Source
	total   int64
	read    atomic.Int64

	free    chan *chunk
	work    chan *chunk // to the workers
	ordered chan *chunk // to the collector
	batches chan []retrylens.Attempt
	spare   chan []retrylens.Attempt

	damaged []string // of the reader: sources that broke
	// Of the collector.
	accepted, rejected int64
	byReason           map[string]int64
	// Of the writer.
	stored int64
}

func newPipeline(opt Options, sources []Source) *pipeline {
	n := 2*opt.Workers + 2
	p := &pipeline{
		opt: opt, sources: sources, byReason: map[string]int64{},
		free: make(chan *chunk, n), work: make(chan *chunk, n), ordered: make(chan *chunk, n),
		batches: make(chan []retrylens.Attempt), spare: make(chan []retrylens.Attempt, 2),
	}
	for range n {
		p.free <- &chunk{decoded: make(chan struct{}, 1)}
	}
	p.spare <- nil
	p.spare <- nil
	for _, s := range sources {
		if s.Size == 0 {
			p.total = 0
			break
		}
		p.total += s.Size
	}
	return p
}

func (c *chunk) reset(source string) {
	c.source, c.err = source, nil
	c.text, c.lines, c.attempts, c.rejects = c.text[:0], c.lines[:0], c.attempts[:0], c.rejects[:0]
}

// decodeAll decodes chunks as they come.
func (p *pipeline) decodeAll(ctx context.Context) error {
	var d wire.Decoder
	for {
		select {
		case c, ok := <-p.work:
			if !ok {
				return nil
			}
			p.decode(c, &d)
			c.decoded <- struct{}{}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *pipeline) decode(c *chunk, d *wire.Decoder) {
	limits := p.opt.Limits()
	for _, l := range c.lines {
		line := c.text[l.start:l.end]
		reject := Reject{Source: c.source, Line: l.number, Reason: l.reason, Raw: line}
		if l.reason == "" {
			c.attempts = append(c.attempts, retrylens.Attempt{})
			a := &c.attempts[len(c.attempts)-1]
			err := p.decodeLine(line, a, d, limits)
			if err == nil {
				continue
			}
			c.attempts = c.attempts[:len(c.attempts)-1]
			reject.Field, reject.Reason = err.Field, err.Reason
		}
		c.rejects = append(c.rejects, reject)
	}
}

func (p *pipeline) decodeLine(line []byte, a *retrylens.Attempt, d *wire.Decoder, limits retrylens.Limits) *retrylens.FieldError {
	if err := d.Decode(line, a); err != nil {
		var fe *retrylens.FieldError
		if !errors.As(err, &fe) {
			fe = &retrylens.FieldError{Reason: err.Error()}
		}
		return fe
	}
	if a.Tenant == "" {
		a.Tenant = p.opt.DefaultTenant
	}
	a.Normalize()
	return a.Validate(limits)
}

// collectAll takes the chunks in order, reports their rejects and fills batches.
func (p *pipeline) collectAll(ctx context.Context) error {
	defer close(p.batches)
	batch, err := p.spareBatch(ctx)
	for err == nil {
		c, ok := p.nextDecoded(ctx)
		if !ok {
			break
		}
		p.report(c)
		if err = c.err; err == nil {
			batch, err = p.fill(ctx, batch, c.attempts)
		}
		p.free <- c
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && len(batch) > 0 {
		_, err = p.send(ctx, batch)
	}
	return err
}

// nextDecoded waits for the next chunk in order; false at the end or with ctx.
func (p *pipeline) nextDecoded(ctx context.Context) (*chunk, bool) {
	select {
	case c, ok := <-p.ordered:
		if !ok {
			return nil, false
		}
		select {
		case <-c.decoded:
			return c, true
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	return nil, false
}

func (p *pipeline) report(c *chunk) {
	p.accepted += int64(len(c.attempts))
	p.rejected += int64(len(c.rejects))
	for _, r := range c.rejects {
		p.byReason[r.kind()]++
		r.Raw = bytes.Clone(r.Raw) // the chunk's text is used again
		p.opt.OnReject(r)
	}
	p.opt.Progress(Progress{BytesRead: p.read.Load(), BytesTotal: p.total, Accepted: p.accepted, Rejected: p.rejected})
}

// fill appends attempts to the batch and sends it on whenever it is full.
func (p *pipeline) fill(ctx context.Context, batch, attempts []retrylens.Attempt) ([]retrylens.Attempt, error) {
	for len(attempts) > 0 {
		n := min(p.opt.BatchRows-len(batch), len(attempts))
		batch = append(batch, attempts[:n]...)
		attempts = attempts[n:]
		if len(batch) < p.opt.BatchRows {
			return batch, nil
		}
		var err error
		if batch, err = p.send(ctx, batch); err != nil {
			return nil, err
		}
	}
	return batch, nil
}

// send hands a batch to the writer and returns an empty one.
func (p *pipeline) send(ctx context.Context, batch []retrylens.Attempt) ([]retrylens.Attempt, error) {
	select {
	case p.batches <- batch:
		return p.spareBatch(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipeline) spareBatch(ctx context.Context) ([]retrylens.Attempt, error) {
	select {
	case b := <-p.spare:
		return b[:0], nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// writeAll stores the batches.
func (p *pipeline) writeAll(ctx context.Context) error {
	for batch := range p.batches {
		if err := p.opt.Sink.Write(ctx, batch); err != nil {
			return err
		}
		p.stored += int64(len(batch))
		p.spare <- batch
	}
	return nil
}
