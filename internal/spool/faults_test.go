package spool_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/spool"
)

// A half-written batch is not promised, not kept, and does no harm to the next.
func TestAFullDiskIsErrFull(t *testing.T) {
	disk := &faultyDisk{}
	o := spool.Options{Dir: t.TempDir(), FS: disk}
	s := open(t, o)
	mustAppend(t, s, 0, 10)
	disk.set(&disk.writes, errDiskFull)
	if err := s.Append(batch(10, 20)); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	if !s.Stats().DiskFull {
		t.Error("the full disk does not show")
	}
	mustAppend(t, s, 10, 20)
	if st := s.Stats(); st.DiskFull || st.Segments != 1 {
		t.Errorf("%+v", st)
	}
	requireReopened(t, s, o, 20)
}

func requireReopened(t *testing.T, s *spool.Spool, o spool.Options, n int) *spool.Spool {
	t.Helper()
	s.Close()
	s = open(t, o)
	requireRecords(t, contents(t, s), 0, n)
	return s
}

func TestNoRoomForANewSegment(t *testing.T) {
	disk := &faultyDisk{creates: []error{errDiskFull}}
	o := spool.Options{Dir: t.TempDir(), FS: disk}
	s := open(t, o)
	if err := s.Append(batch(0, 1)); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	disk.set(&disk.writes, errDiskFull) // the header
	if err := s.Append(batch(0, 1)); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	mustAppend(t, s, 0, 5)
	requireReopened(t, s, o, 5)
}

func TestAHalfWrittenBatchThatStays(t *testing.T) {
	disk := &faultyDisk{}
	o := spool.Options{Dir: t.TempDir(), FS: disk}
	s := open(t, o)
	mustAppend(t, s, 0, 10)
	disk.set(&disk.truncates, errIO)
	disk.set(&disk.writes, errShort)
	if err := s.Append(batch(500, 501)); err == nil || errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	mustAppend(t, s, 10, 20)
	if st := s.Stats(); st.Segments != 2 {
		t.Errorf("%+v", st)
	}
	s = requireReopened(t, s, o, 20)
	if st := s.Stats(); st.Quarantined != 1 {
		t.Errorf("%+v", st)
	}
}

// After a failed fsync the segment is closed: what it held before is there, what
// was refused may be, and it is read as it is.
func TestAFailedFsyncIsNoPromise(t *testing.T) {
	disk := &faultyDisk{}
	o := spool.Options{Dir: t.TempDir(), FS: disk}
	s := open(t, o)
	mustAppend(t, s, 0, 10)
	disk.set(&disk.syncs, errIO)
	if err := s.Append(batch(10, 11)); err == nil || errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	mustAppend(t, s, 11, 20)
	if st := s.Stats(); st.Segments != 2 {
		t.Errorf("%+v", st)
	}
	requireReopened(t, s, o, 20)
}

// Random faults and restarts: everything that was acknowledged comes back.
func TestRandomFaultsLoseNothingAcknowledged(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	disk := &faultyDisk{}
	o := spool.Options{Dir: t.TempDir(), FS: disk, SegmentRows: 20}
	acknowledged, n := map[int]bool{}, 0
	for range 15 {
		s := open(t, o)
		for range 20 {
			inject(disk, r)
			rows := 1 + r.IntN(8)
			if s.Append(batch(n, n+rows)) == nil {
				for i := range rows {
					acknowledged[n+i] = true
				}
			}
			n += rows
		}
		disk.set(&disk.truncates)
		disk.set(&disk.writes)
		disk.set(&disk.syncs)
		disk.set(&disk.creates)
		s.Close()
	}
	s := open(t, o)
	seen := map[int]bool{}
	for _, id := range contents(t, s) {
		i, err := strconv.Atoi(strings.TrimPrefix(id, "op-"))
		if err != nil || seen[i] {
			t.Errorf("seed %d: %s is there twice or made up", seed, id)
		}
		seen[i] = true
	}
	for i := range acknowledged {
		if !seen[i] {
			t.Errorf("seed %d: op-%d was acknowledged and is lost", seed, i)
		}
	}
	t.Logf("%d of %d acknowledged, %d there", len(acknowledged), n, len(seen))
}

func inject(d *faultyDisk, r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		d.set(&d.writes, errDiskFull)
	case 1:
		d.set(&d.writes, errShort)
		d.set(&d.truncates, errIO)
	case 2:
		d.set(&d.syncs, errIO)
	case 3:
		d.set(&d.creates, errDiskFull)
	}
}
