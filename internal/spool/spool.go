package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Segment is a sealed file. CreatedAt is when it was begun: no record in it is
// older.
type Segment struct {
	ID        uint64 // rises with CreatedAt
	Bytes     int64
	CreatedAt time.Time
}

// Stats are figures of a spool. Counts are since Open.
type Stats struct {
	Bytes       int64     // of all segments, appends under way included
	LimitBytes  int64     // what Bytes may become
	Segments    int       // the one being written included
	OldestAt    time.Time // when the oldest segment was begun; zero = empty
	Syncs       int64     // fsyncs of records
	TornBytes   int64     // cut off the end of the last segment by Open
	Quarantined int64     // runs of bytes that were set aside
	Unkept      int64     // runs that could not be: they stay in their segments
	DiskFull    bool      // the last write met a full disk
	FailedAt    time.Time // when a write last failed, for whatever reason; zero = the last one succeeded
}

// Spool is an open spool. It is safe for concurrent use.
type Spool struct {
	o    Options
	lock *os.File

	requests  chan *request
	seals     chan chan struct{}
	appenders sync.WaitGroup
	done      chan struct{} // the committer has ended
	changed   chan struct{} // one token: there is a new sealed segment

	mu      sync.Mutex
	closed  bool
	sealed  []Segment      // by ID
	active  Segment        // zero when there is none
	pending int64          // bytes of appends under way
	stats   Stats          // the counts
	unkept  map[uint64]int // runs of segments that could not be set aside
	lastID  uint64

	file *segmentFile // of the committer
}

// Open opens the spool in a directory, which it makes if need be. Segments that
// are there are sealed; what a crash left unfinished at the end of the last one
// is cut off. A full disk, or a segment that cannot be read, does not keep it from
// opening.
func Open(o Options) (*Spool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := makeDir(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s := &Spool{
		o: o, requests: make(chan *request, queued), seals: make(chan chan struct{}), done: make(chan struct{}), changed: make(chan struct{}, 1),
		unkept: map[uint64]int{},
	}
	if s.lock, err = lock(o.Dir); err != nil {
		return nil, err
	}
	if _, err := s.quarantine(); err != nil {
		o.Logger.Error("spool: the quarantine cannot be made now", "err", err)
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: open %s: %w", o.Dir, err), s.lock.Close())
	}
	go s.commitAll()
	return s, nil
}

// Close waits for appends under way, seals what is open and lets the directory
// go. Later appends are ErrClosed.
func (s *Spool) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		<-s.done
		return nil
	}
	s.appenders.Wait()
	close(s.requests)
	<-s.done
	return s.lock.Close()
}

// Append adds the records of b and returns when they are as durable as
// configured. On an error none of them is promised, though some may be drained
// later. b is the caller's again when Append returns.
func (s *Spool) Append(b *Batch) error {
	if b.rows == 0 {
		return nil
	}
	if err := s.reserve(b.bytes); err != nil {
		return err
	}
	defer s.appenders.Done()
	r := &request{batch: b, done: make(chan error, 1)}
	if s.o.Durability == Memory {
		r.batch = b.clone()
		s.requests <- r
		return nil
	}
	s.requests <- r
	return <-r.done
}

// Seal seals the open segment, so that everything appended so far can be drained.
func (s *Spool) Seal() {
	sealed := make(chan struct{})
	select {
	case s.seals <- sealed:
		<-sealed
	case <-s.done:
	}
}

// reserve takes room for an append.
func (s *Spool) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if n+int64(headerSize) > s.o.LimitBytes {
		return fmt.Errorf("%w: %d of %d bytes", ErrTooLarge, n, s.o.LimitBytes)
	}
	if s.bytes()+n > s.o.LimitBytes || s.o.Durability == Memory && s.pending > maxUnwritten {
		return fmt.Errorf("%w: %d of %d bytes", ErrFull, s.bytes(), s.o.LimitBytes)
	}
	s.pending += n
	s.appenders.Add(1)
	return nil
}

// bytes is what counts towards the limit.
func (s *Spool) bytes() int64 {
	n := s.pending + s.active.Bytes
	for _, g := range s.sealed {
		n += g.Bytes
	}
	return n
}

// Sealed returns the sealed segments, oldest first.
func (s *Spool) Sealed() []Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sealed)
}

// Changed receives after segments were sealed. It is for one drainer.
func (s *Spool) Changed() <-chan struct{} { return s.changed }

// Delete ends a sealed segment, whose records are safe elsewhere. One that holds
// bytes which could not be set aside becomes part of the quarantine as a whole.
func (s *Spool) Delete(g Segment) error {
	end := s.o.FS.Remove
	if s.keepsUnkept(g) {
		end = func(string) error { return s.setSegmentAside(g) }
	}
	if err := end(s.path(g.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unkept, g.ID)
	s.sealed = slices.DeleteFunc(s.sealed, func(h Segment) bool { return h.ID == g.ID })
	return nil
}

// Stats are the figures of now.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	for _, n := range s.unkept {
		st.Unkept += int64(n)
	}
	st.Bytes, st.LimitBytes, st.Segments = s.bytes(), s.o.LimitBytes, len(s.sealed)
	if len(s.sealed) > 0 {
		st.OldestAt = s.sealed[0].CreatedAt
	}
	if s.active.ID != 0 {
		st.Segments++
		if st.OldestAt.IsZero() {
			st.OldestAt = s.active.CreatedAt
		}
	}
	return st
}

// Full tells whether an append has no chance at the moment.
func (s *Spool) Full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes() >= s.o.LimitBytes
}

func (s *Spool) path(id uint64) string {
	return filepath.Join(s.o.Dir, fmt.Sprintf("%020d%s", id, segmentExt))
}

// newID is the time in microseconds, or the number after the last one.
func (s *Spool) newID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID = max(s.lastID+1, uint64(time.Now().UnixMicro()))
	return s.lastID
}

func createdAt(id uint64) time.Time { return time.UnixMicro(int64(id)) }
