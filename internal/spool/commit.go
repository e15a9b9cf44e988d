package spool

import (
	"errors"
	"fmt"
	"time"
)

const (
	queued       = 256      // appends that wait for the committer without blocking each other
	groupBytes   = 8 << 20  // a group is committed when it has so many
	maxUnwritten = 64 << 20 // that memory durability may hold
)

// request is an append on its way; done gets its verdict.
type request struct {
	batch *Batch
	done  chan error
}

// segmentFile is the segment being written. size is how much of it is sound:
// the file may be longer after a failed write.
type segmentFile struct {
	File
	id      uint64
	seed    uint32
	size    int64
	rows    int
	broken  bool // something is behind size
	beganAt time.Time
}

// commitAll is the committer: it alone writes. While it syncs a group the next
// one gathers, so all who wait share an fsync, and nobody waits for more than
// two.
func (s *Spool) commitAll() {
	defer close(s.done)
	age := time.NewTimer(0)
	defer age.Stop()
	for {
		var due <-chan time.Time
		if s.file != nil {
			age.Reset(s.untilSealed())
			due = age.C
		}
		select {
		case r, ok := <-s.requests:
			if !ok {
				s.seal()
				return
			}
			s.commit(s.gather(r))
		case sealed := <-s.seals:
			s.seal()
			close(sealed)
		case <-due:
			if s.untilSealed() <= 0 {
				s.seal()
			}
		}
	}
}

// untilSealed is how long the open segment may go on.
func (s *Spool) untilSealed() time.Duration {
	age, allowed := time.Since(s.file.beganAt), s.o.SegmentAge
	s.mu.Lock()
	backlog := len(s.sealed) > backlogSegments
	s.mu.Unlock()
	if !backlog {
		return allowed - age
	}
	// Look again every SegmentAge: the backlog may be gone.
	return min(backlogFactor*allowed-age, allowed)
}

// gather takes the appends that wait behind r.
func (s *Spool) gather(r *request) []*request {
	group, size := []*request{r}, r.batch.bytes
	for size < groupBytes {
		select {
		case next, ok := <-s.requests:
			if !ok {
				return group // the channel stays closed: commitAll sees it
			}
			group = append(group, next)
			size += next.batch.bytes
		default:
			return group
		}
	}
	return group
}

// commit writes a group, syncs it once and answers everybody in it.
func (s *Spool) commit(group []*request) {
	written := group[:0]
	for _, r := range group {
		err := s.write(r.batch)
		if err == nil {
			written = append(written, r)
			continue
		}
		if s.file != nil && s.file.broken {
			s.finish(written)
			written = written[:0]
			s.seal()
		}
		s.answer(r, err)
	}
	s.finish(written)
	if s.file != nil && (s.file.rows >= s.o.SegmentRows || s.file.size >= s.o.SegmentBytes) {
		s.seal()
	}
}

// finish makes what was written to the open segment durable and answers.
func (s *Spool) finish(written []*request) {
	if len(written) == 0 {
		return
	}
	err := s.sync()
	for _, r := range written {
		s.answer(r, err)
	}
}

func (s *Spool) answer(r *request, err error) {
	s.mu.Lock()
	s.pending -= r.batch.bytes
	s.mu.Unlock()
	if err != nil && !errors.Is(err, ErrFull) {
		s.o.Logger.Error("spool: append failed", "records", r.batch.rows, "err", err)
	}
	r.done <- err
}

// write appends a batch to the open segment, or opens one. After an error the
// segment is as it was before.
func (s *Spool) write(b *Batch) error {
	if s.file == nil {
		if err := s.begin(); err != nil {
			return s.failed(err)
		}
	}
	f, n := s.file, int64(0)
	for _, c := range b.chunks {
		sealFrames(*c, f.seed)
		if _, err := f.Write(*c); err != nil {
			s.cutBack()
			return s.failed(err)
		}
		n += int64(len(*c))
	}
	f.size += n
	f.rows += b.rows
	s.mu.Lock()
	s.active.Bytes = f.size
	s.stats.DiskFull, s.stats.FailedAt = false, time.Time{}
	s.mu.Unlock()
	return nil
}

// failed turns an error of writing into the spool's own.
func (s *Spool) failed(err error) error {
	full := isFull(err)
	s.mu.Lock()
	s.stats.DiskFull, s.stats.FailedAt = s.stats.DiskFull || full, time.Now()
	s.mu.Unlock()
	if !full {
		return fmt.Errorf("spool: %w", err)
	}
	return fmt.Errorf("%w: %w", ErrFull, err)
}

// begin opens a segment. It is in its directory for good before a record is in
// it.
func (s *Spool) begin() error {
	if err := holds(s.lock, s.o.Dir); err != nil {
		return err
	}
	id := s.newID()
	file, err := s.o.FS.Create(s.path(id))
	if err != nil {
		return err
	}
	_, err = file.Write(encodeHeader(id))
	if err == nil && s.o.Durability == FSync {
		err = s.o.FS.SyncDir(s.o.Dir)
	}
	if err != nil {
		return errors.Join(err, file.Close(), s.o.FS.Remove(s.path(id)))
	}
	s.file = &segmentFile{File: file, id: id, seed: seedOf(id), size: int64(headerSize), beganAt: time.Now()}
	s.mu.Lock()
	s.active = Segment{ID: id, Bytes: s.file.size, CreatedAt: createdAt(id)}
	s.mu.Unlock()
	return nil
}

// cutBack takes a half-written batch away. When it cannot, the segment must be
// sealed: its reader skips what is no record.
func (s *Spool) cutBack() {
	if err := s.file.Truncate(s.file.size); err != nil {
		s.file.broken = true
		s.o.Logger.Error("spool: cannot cut off a half-written batch; the segment is closed", "segment", s.file.id, "err", err)
	}
}

// sync makes what was written durable. After a failed fsync nobody knows what is
// on disk, and a second one would not tell: the segment is closed.
func (s *Spool) sync() error {
	if s.o.Durability != FSync {
		return nil
	}
	err := s.file.Sync()
	s.mu.Lock()
	s.stats.Syncs++
	s.mu.Unlock()
	if err != nil {
		s.seal()
		return s.failed(fmt.Errorf("fsync: %w", err))
	}
	return nil
}

// seal closes the open segment, if there is one, and shows it to the drainer.
func (s *Spool) seal() {
	if s.file == nil {
		return
	}
	if err := s.file.Close(); err != nil {
		s.o.Logger.Error("spool: close a segment", "segment", s.file.id, "err", err)
	}
	empty := s.file.rows == 0
	s.file = nil
	s.mu.Lock()
	g := s.active
	s.active = Segment{}
	s.sealed = append(s.sealed, g)
	s.mu.Unlock()
	if empty {
		if err := s.Delete(g); err != nil {
			s.o.Logger.Error("spool: remove an empty segment", "segment", g.ID, "err", err)
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
