package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/retrylens/retrylens"
)

// keep sets a run of bytes aside, counts it and tells whether it is safe there.
func (s *Spool) keep(id uint64, offset int, run []byte) bool {
	fresh, err := s.setAside(id, offset, run)
	s.mu.Lock()
	known := s.unkept[id] > 0
	if fresh {
		s.stats.Quarantined++
	}
	s.mu.Unlock()
	switch {
	case err != nil && !known:
		s.o.Logger.Error("spool: bytes that are no record cannot be set aside: they stay in their segment", "segment", id, "offset", offset, "bytes", len(run), "err", err)
	case fresh:
		s.o.Logger.Error("spool: set aside bytes that are no record", "segment", id, "offset", offset, "bytes", len(run))
	}
	return err == nil
}

// setUnkept remembers how many runs of a segment could not be set aside; one that
// was not read to its end may have more.
func (s *Spool) setUnkept(id uint64, n int, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !whole {
		n = max(n, s.unkept[id])
	}
	if n == 0 {
		delete(s.unkept, id)
		return
	}
	s.unkept[id] = n
}

// keepsUnkept tells whether a segment still holds bytes that are nowhere else,
// after trying once more to set them aside.
func (s *Spool) keepsUnkept(g Segment) bool {
	if !s.hasUnkept(g.ID) {
		return false
	}
	err := s.NewReader().Read(g, func(retrylens.Attempt) error { return nil })
	return err != nil || s.hasUnkept(g.ID)
}

func (s *Spool) hasUnkept(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unkept[id] > 0
}

// setAside keeps a run of bytes in the quarantine, durably; fresh is false when
// it is there already. What an earlier try left unfinished is begun anew.
func (s *Spool) setAside(id uint64, offset int, run []byte) (fresh bool, err error) {
	dir, err := s.quarantine()
	if err != nil {
		return false, err
	}
	path := filepath.Join(dir, fmt.Sprintf("%020d-%d.bin", id, offset))
	if _, err := os.Lstat(path); err == nil {
		return false, s.o.FS.SyncDir(dir)
	}
	unfinished := path + ".tmp"
	if err := s.o.FS.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if err := s.writeNew(unfinished, run); err != nil {
		return false, err
	}
	if err := s.o.FS.Rename(unfinished, path); err != nil {
		return false, errors.Join(err, s.o.FS.Remove(unfinished))
	}
	return true, s.o.FS.SyncDir(dir)
}

// writeNew makes a file and its contents durable, or leaves none.
func (s *Spool) writeNew(path string, contents []byte) error {
	f, err := s.o.FS.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.o.FS.Remove(path))
	}
	return nil
}

// setSegmentAside moves a whole segment into the quarantine, which needs no room.
func (s *Spool) setSegmentAside(g Segment) error {
	dir, err := s.quarantine()
	if err != nil {
		return err
	}
	from := s.path(g.ID)
	if err := s.o.FS.Rename(from, filepath.Join(dir, filepath.Base(from))); err != nil {
		return err
	}
	s.mu.Lock()
	s.stats.Quarantined += int64(max(1, s.unkept[g.ID]))
	s.mu.Unlock()
	s.o.Logger.Error("spool: set aside a whole segment, for bytes in it that are no record", "segment", g.ID)
	return nil
}

// quarantine is the directory, which is made when it is first needed.
func (s *Spool) quarantine() (string, error) {
	dir := filepath.Join(s.o.Dir, quarantineDir)
	return dir, makeDir(s.o.FS, dir)
}
