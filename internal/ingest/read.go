package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// readAll fills chunks until the sources are read or ctx ends.
func (p *pipeline) readAll(ctx context.Context) {
	defer close(p.ordered)
	defer close(p.work)
	for _, s := range p.sources {
		f := &filler{p: p, ctx: ctx, source: s.Name}
		if err := p.readSource(s, f); err != nil {
			f.fail(err)
			return
		}
	}
}

func (p *pipeline) readSource(s Source, f *filler) error {
	st, err := s.stream(&p.read)
	if err != nil {
		return err
	}
	defer st.Close()
	lines := newLineReader(st)
	for first, more := true, true; more; {
		line, tooLong, err := lines.next()
		blank := len(bytes.TrimSpace(line)) == 0
		reason := ""
		if first && !blank {
			reason, first = notNDJSON(line), false
		}
		if tooLong && reason == "" {
			reason = "longer than 65536 bytes"
		}
		if blank && !tooLong {
			line = nil
		}
		more = f.take(lines.line, line, reason, err)
	}
	return f.flush()
}

// take passes a line on, and what broke the stream after it, and tells whether
// there may be more. Of a broken stream the last line is decoded only if it looks whole.
func (f *filler) take(number int, line []byte, reason string, err error) bool {
	broke := err != nil && !errors.Is(err, io.EOF)
	if broke {
		f.p.damaged = append(f.p.damaged, f.source)
	}
	if broke && reason == "" && len(line) > 0 && line[len(line)-1] != '}' {
		f.add(number, line, broken(err))
		return false
	}
	if (len(line) > 0 || reason != "") && !f.add(number, line, reason) {
		return false
	}
	if broke {
		f.add(number+1, nil, broken(err))
	}
	return err == nil
}

// filler packs the lines of one source into chunks.
type filler struct {
	p      *pipeline
	ctx    context.Context
	source string
	c      *chunk
}

// add copies a line into the chunk; false when ctx has ended.
func (f *filler) add(number int, line []byte, reason string) bool {
	if !f.room() {
		return false
	}
	start := len(f.c.text)
	f.c.text = append(f.c.text, line...)
	f.c.lines = append(f.c.lines, lineRef{number, start, len(f.c.text), reason})
	if len(f.c.text) >= chunkBytes || len(f.c.lines) >= chunkLines {
		return f.flush() == nil
	}
	return true
}

func (f *filler) room() bool {
	if f.c != nil {
		return true
	}
	select {
	case f.c = <-f.p.free:
		f.c.reset(f.source)
		return true
	case <-f.ctx.Done():
		return false
	}
}

// flush sends the chunk on. The channels hold every chunk there is, so it never
// blocks.
func (f *filler) flush() error {
	if f.c != nil {
		f.p.work <- f.c
		f.p.ordered <- f.c
		f.c = nil
	}
	return f.ctx.Err()
}

// fail lets the collector meet the error after all lines before it.
func (f *filler) fail(err error) {
	if f.room() {
		f.c.err = err
		f.flush()
	}
}
