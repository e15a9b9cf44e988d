package spool

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentExt    = ".seg"
	quarantineDir = "quarantine"
	idDigits      = 20
	maxID         = 1 << 62 // microseconds: no clock shows that
)

// recover finds the segments of an earlier process. What bears the name of one
// and is no file is left alone, but no new segment gets its number, nor that of
// anything in the quarantine.
func (s *Spool) recover() error {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	aside, err := os.ReadDir(filepath.Join(s.o.Dir, quarantineDir))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range aside {
		if id, ok := leadingID(e.Name()); ok {
			s.lastID = max(s.lastID, id)
		}
	}
	for _, e := range entries {
		s.recoverEntry(e)
	}
	if n := len(s.sealed); n > 0 {
		s.changed <- struct{}{}
		s.recoverLast(&s.sealed[n-1])
	}
	return nil
}

func (s *Spool) recoverEntry(e os.DirEntry) {
	id, ok := segmentID(e.Name())
	if !ok {
		return
	}
	s.lastID = max(s.lastID, id)
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSegment {
		s.o.Logger.Error("spool: this is no segment, though it is named like one; it is left alone", "name", e.Name(), "err", err)
		return
	}
	s.sealed = append(s.sealed, Segment{ID: id, Bytes: info.Size(), CreatedAt: createdAt(id)})
}

func segmentID(name string) (uint64, bool) {
	if digits, ok := strings.CutSuffix(name, segmentExt); !ok || len(digits) != idDigits {
		return 0, false
	}
	return leadingID(name)
}

// leadingID is the number that a file's name begins with.
func leadingID(name string) (uint64, bool) {
	if len(name) < idDigits {
		return 0, false
	}
	id, err := strconv.ParseUint(name[:idDigits], 10, 64)
	return id, err == nil && id < maxID
}

// recoverLast cuts off the segment that was open what is no record at its end,
// and keeps it in the quarantine: it may have been one. What does not work, on a
// full disk or with a file that cannot be read, is left to the reader.
func (s *Spool) recoverLast(g *Segment) {
	r := s.NewReader()
	if err := r.load(*g); err != nil {
		s.o.Logger.Error("spool: the last segment cannot be read", "segment", g.ID, "err", err)
		return
	}
	end := soundEnd(r.buf, g.ID)
	if err := s.cutTail(g, r.buf, end); err != nil {
		s.o.Logger.Error("spool: an unfinished end stays where it is", "segment", g.ID, "bytes", len(r.buf)-end, "err", err)
	}
}

// soundEnd is where the last record of a segment ends, 0 without any.
func soundEnd(data []byte, id uint64) (end int) {
	frames, at := body(data, id)
	_ = scan(frames, seedOf(id), func(payload []byte) error {
		at += frameHeader + len(payload)
		end = at
		return nil
	}, func(run []byte) { at += len(run) })
	return end
}

func (s *Spool) cutTail(g *Segment, data []byte, end int) error {
	tail := data[end:]
	switch {
	case len(tail) == 0 && end > 0:
		return nil
	case end > 0:
		if _, err := s.setAside(g.ID, end, tail); err != nil {
			return err
		}
		s.stats.TornBytes += int64(len(tail))
		if err := s.o.FS.Truncate(s.path(g.ID), int64(end)); err != nil {
			return err
		}
		g.Bytes = int64(end)
	case len(tail) > headerSize:
		if err := s.setSegmentAside(*g); err != nil {
			return err
		}
		s.stats.TornBytes += int64(len(tail))
		s.forgetLast()
	default: // a header, or a part of one: nothing was ever in it
		err := s.o.FS.Remove(s.path(g.ID))
		s.forgetLast()
		return err
	}
	s.o.Logger.Warn("spool: cut off an unfinished end", "segment", g.ID, "bytes", len(tail))
	return nil
}

func (s *Spool) forgetLast() { s.sealed = slices.Delete(s.sealed, len(s.sealed)-1, len(s.sealed)) }
