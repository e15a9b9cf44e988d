package spool

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/retrylens/retrylens"
)

// A Reader reads segments of a spool one after another. It is not safe for
// concurrent use.
type Reader struct {
	s   *Spool
	buf []byte
}

// NewReader returns a reader, which keeps a buffer of the size of a segment.
func (s *Spool) NewReader() *Reader { return &Reader{s: s} }

// Read calls each with every record of a sealed segment, in the order in which
// they were appended; each may keep it. Bytes that are no record are set aside
// and counted, once, and reading goes on behind them; those that cannot be set
// aside, on a full disk, stay where they are and are tried again. An error is one
// of reading the file, or each's.
func (r *Reader) Read(g Segment, each func(retrylens.Attempt) error) error {
	if err := r.load(g); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	frames, start := body(r.buf, g.ID)
	at, unkept := start, 0
	quarantine := func(run []byte) {
		if !r.s.keep(g.ID, at, run) {
			unkept++
		}
		at += len(run)
	}
	err := scan(frames, seedOf(g.ID), func(payload []byte) error {
		var a retrylens.Attempt
		if good := DecodeRecord(string(payload), &a) == nil; !good {
			quarantine(frames[at-start : at-start+frameHeader+len(payload)])
			return nil
		}
		at += frameHeader + len(payload)
		return each(a)
	}, quarantine)
	r.s.setUnkept(g.ID, unkept, err == nil)
	return err
}

// maxSegment is more than any segment takes: 16 MiB, and the group that made it
// full.
const maxSegment = 256 << 20

// load reads the file into the buffer, which it makes larger if need be.
func (r *Reader) load(g Segment) error {
	f, err := os.Open(r.s.path(g.ID))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxSegment {
		return fmt.Errorf("%s has %d bytes, which no segment has: move it away", f.Name(), info.Size())
	}
	r.buf = slices.Grow(r.buf[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, r.buf)
	return err
}
