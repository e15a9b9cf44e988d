package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/retrylens/retrylens"
)

const (
	segmentExt    = ".seg"
	quarantineDir = "quarantine"
)

// recover finds the segments of an earlier process.
func (s *Spool) recover() error {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, ok := segmentID(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		s.sealed = append(s.sealed, Segment{ID: id, Bytes: info.Size(), CreatedAt: createdAt(id)})
		s.lastID = max(s.lastID, id)
	}
	if n := len(s.sealed); n > 0 {
		s.changed <- struct{}{}
		return s.recoverLast(&s.sealed[n-1])
	}
	return nil
}

func segmentID(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentExt)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	return id, err == nil
}

// recoverLast cuts off the segment that was open what is no record at its end,
// and keeps it in the quarantine: it may have been one.
func (s *Spool) recoverLast(g *Segment) error {
	data, err := os.ReadFile(s.path(g.ID))
	if err != nil {
		return err
	}
	frames, start := body(data, g.ID)
	end := start
	at := start
	err = scan(frames, seedOf(g.ID), func(payload []byte) error {
		at += frameHeader + len(payload)
		end = at
		return nil
	}, func(run []byte) error {
		at += len(run)
		return nil
	})
	if err != nil {
		return err
	}
	if end == start {
		end = 0 // no record at all
	}
	return s.cutTail(g, data, end)
}

func (s *Spool) cutTail(g *Segment, data []byte, end int) error {
	if tail := data[end:]; len(tail) > 0 && end > 0 {
		if _, err := s.setAside(g.ID, end, tail); err != nil {
			return err
		}
		s.stats.TornBytes += int64(len(tail))
		s.o.Logger.Warn("spool: cut off an unfinished end", "segment", g.ID, "bytes", len(tail))
		if err := s.o.FS.Truncate(s.path(g.ID), int64(end)); err != nil {
			return err
		}
	}
	g.Bytes = int64(end)
	if end > 0 {
		return nil
	}
	if len(data) > headerSize {
		if _, err := s.setAside(g.ID, 0, data); err != nil {
			return err
		}
		s.stats.TornBytes += int64(len(data))
	}
	path := s.path(g.ID)
	s.sealed = slices.Delete(s.sealed, len(s.sealed)-1, len(s.sealed))
	return s.o.FS.Remove(path)
}

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
// and counted, once, and reading goes on behind them.
func (r *Reader) Read(g Segment, each func(retrylens.Attempt) error) error {
	if err := r.load(g); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	frames, start := body(r.buf, g.ID)
	at := start
	quarantine := func(run []byte) error {
		fresh, err := r.s.setAside(g.ID, at, run)
		if fresh {
			r.s.mu.Lock()
			r.s.stats.Quarantined++
			r.s.mu.Unlock()
			r.s.o.Logger.Error("spool: set aside bytes that are no record", "segment", g.ID, "offset", at, "bytes", len(run))
		}
		at += len(run)
		return err
	}
	return scan(frames, seedOf(g.ID), func(payload []byte) error {
		var a retrylens.Attempt
		if err := DecodeRecord(string(payload), &a); err != nil {
			return quarantine(frames[at-start : at-start+frameHeader+len(payload)])
		}
		at += frameHeader + len(payload)
		return each(a)
	}, quarantine)
}

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
	r.buf = slices.Grow(r.buf[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, r.buf)
	return err
}

// setAside keeps a run of bytes in the quarantine; fresh is false when it is
// there already.
func (s *Spool) setAside(id uint64, offset int, run []byte) (fresh bool, err error) {
	path := filepath.Join(s.o.Dir, quarantineDir, fmt.Sprintf("%020d-%d.bin", id, offset))
	f, err := s.o.FS.Create(path)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(run)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, errors.Join(err, s.o.FS.Remove(path))
	}
	return true, nil
}
