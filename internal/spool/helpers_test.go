package spool_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/spool"
)

// record is the nth of many different attempts.
func record(n int) retrylens.Attempt {
	at := time.Date(2026, 11, 28, 0, 0, n, 0, time.UTC)
	a := retrylens.Attempt{Tenant: "acme", LogicalID: fmt.Sprintf("op-%d", n), Provider: "openai", StartedAt: at, Outcome: retrylens.OutcomeSuccess}
	a.Normalize()
	return a
}

func batch(from, to int) *spool.Batch {
	var b spool.Batch
	for n := from; n < to; n++ {
		a := record(n)
		b.Add(&a)
	}
	return &b
}

func open(t *testing.T, o spool.Options) *spool.Spool {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := spool.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustAppend(t *testing.T, s *spool.Spool, from, to int) {
	t.Helper()
	if err := s.Append(batch(from, to)); err != nil {
		t.Fatal(err)
	}
}

// contents are the logical ids in all sealed segments, in order.
func contents(t *testing.T, s *spool.Spool) []string {
	t.Helper()
	var ids []string
	r := s.NewReader()
	for _, g := range s.Sealed() {
		err := r.Read(g, func(a retrylens.Attempt) error {
			ids = append(ids, a.LogicalID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func requireRecords(t *testing.T, got []string, from, to int) {
	t.Helper()
	ok := len(got) == to-from
	for i := range got {
		ok = ok && got[i] == fmt.Sprintf("op-%d", from+i)
	}
	if !ok {
		t.Fatalf("got %d records %.200v, want op-%d to op-%d", len(got), got, from, to-1)
	}
}

// faultyDisk is the real disk with faults. Each is used up by one operation.
type faultyDisk struct {
	spool.Disk
	mu        sync.Mutex
	writes    []error // for the next writes: half of the bytes are written first
	truncates []error
	syncs     []error
	creates   []error
	syncHook  func() // before every Sync
}

func next(mu *sync.Mutex, faults *[]error) error {
	mu.Lock()
	defer mu.Unlock()
	if len(*faults) == 0 {
		return nil
	}
	err := (*faults)[0]
	*faults = (*faults)[1:]
	return err
}

func (d *faultyDisk) set(faults *[]error, errs ...error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*faults = errs
}

func (d *faultyDisk) Create(path string) (spool.File, error) {
	if err := next(&d.mu, &d.creates); err != nil {
		return nil, err
	}
	f, err := d.Disk.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

type faultyFile struct {
	spool.File
	d *faultyDisk
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := next(&f.d.mu, &f.d.writes); err != nil {
		n, werr := f.File.Write(p[:len(p)/2])
		return n, errors.Join(err, werr)
	}
	return f.File.Write(p)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := next(&f.d.mu, &f.d.truncates); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if f.d.syncHook != nil {
		f.d.syncHook()
	}
	if err := next(&f.d.mu, &f.d.syncs); err != nil {
		return err
	}
	return f.File.Sync()
}

var (
	errDiskFull = fmt.Errorf("write: %w", syscall.ENOSPC)
	errIO       = fmt.Errorf("sync: %w", syscall.EIO)
	errShort    = io.ErrShortWrite
)
