package spool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/spool"
)

func TestWhatIsAppendedComesBackInOrder(t *testing.T) {
	for _, d := range []spool.Durability{spool.FSync, spool.OS, spool.Memory} {
		t.Run(string(d), func(t *testing.T) {
			o := spool.Options{Dir: t.TempDir(), Durability: d, SegmentRows: 100}
			s := open(t, o)
			for n := 0; n < 1000; n += 40 {
				mustAppend(t, s, n, n+40)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Append(batch(0, 1)); !errors.Is(err, spool.ErrClosed) {
				t.Errorf("append after Close: %v", err)
			}
			s = open(t, o)
			requireRecords(t, contents(t, s), 0, 1000)
			if st := s.Stats(); st.TornBytes != 0 || st.Quarantined != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestDeletedSegmentsMakeRoom(t *testing.T) {
	s := open(t, spool.Options{LimitBytes: 20_000, SegmentRows: 50})
	n := 0
	for s.Append(batch(n, n+10)) == nil {
		n += 10
	}
	if err := s.Append(batch(n, n+10)); !errors.Is(err, spool.ErrFull) {
		t.Fatalf("got %v", err)
	}
	if st := s.Stats(); st.Bytes > st.LimitBytes || st.Bytes < st.LimitBytes*8/10 {
		t.Errorf("full at %d of %d bytes", st.Bytes, st.LimitBytes)
	}
	for _, g := range s.Sealed() {
		if err := s.Delete(g); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, s, n, n+10)
}

func TestOneProcessADirectory(t *testing.T) {
	o := spool.Options{Dir: t.TempDir()}
	s := open(t, o)
	if _, err := spool.Open(o); !errors.Is(err, spool.ErrLocked) {
		t.Fatalf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, o)
}

func TestSealShowsEverythingAtOnce(t *testing.T) {
	s := open(t, spool.Options{})
	s.Seal() // nothing to seal
	mustAppend(t, s, 0, 10)
	s.Seal()
	requireRecords(t, contents(t, s), 0, 10)
	s.Close()
	s.Seal()
}

func TestSegmentsAreSealedByAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := spool.Open(spool.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const many = 6
		for i := range many { // nothing drains: more than 4 wait, then they get older
			mustAppend(t, s, i, i+1)
			time.Sleep(999 * time.Millisecond)
			synctest.Wait()
			if n := len(s.Sealed()); i < 5 && n != i {
				t.Fatalf("%d sealed before its age, at %d", n, i)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		if n := len(s.Sealed()); n != 5 {
			t.Fatalf("%d sealed", n)
		}
		if got := time.Since(s.Stats().OldestAt); got != many*time.Second {
			t.Errorf("oldest is %v old", got)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		requireRecords(t, contents(t, s), 0, many)
	})
}

// A gate keeps the first fsync waiting until all others have come.
func TestWaitingAppendersShareAnFsync(t *testing.T) {
	const others = 50
	size := batch(0, 1).Bytes()
	begun, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk := &faultyDisk{syncHook: func() { once.Do(func() { close(begun); <-release }) }}
	s := open(t, spool.Options{FS: disk})
	var wg sync.WaitGroup
	send := func(n int) {
		wg.Go(func() {
			if err := s.Append(batch(n, n+1)); err != nil {
				t.Error(err)
			}
		})
	}
	send(0)
	<-begun
	for n := range others {
		send(n + 1)
	}
	for s.Stats().Bytes < others*size { // until all are queued
		time.Sleep(time.Millisecond) //nolint // polls the real disk's goroutines
	}
	close(release)
	wg.Wait()
	if got := s.Stats().Syncs; got > 3 {
		t.Errorf("%d fsyncs for %d appends", got, others+1)
	}
}

// Whatever of a segment's end is missing after a crash: what is before it comes
// back, the file is sound again, and nothing is made up.
func TestATornTailIsCutOff(t *testing.T) {
	o := spool.Options{Dir: t.TempDir()}
	s := open(t, o)
	mustAppend(t, s, 0, 6)
	s.Close()
	s = open(t, o)
	g := s.Sealed()[0]
	path := s.Path(g)
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	frames := boundaries(whole, g.ID)
	for cut := range whole {
		for _, tail := range [][]byte{nil, make([]byte, 37)} { // and zeroes, as ext4 leaves them
			os.RemoveAll(filepath.Join(o.Dir, "quarantine"))
			if err := os.WriteFile(path, append(whole[:cut:cut], tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			requireRecovered(t, o, frames, cut)
		}
	}
}

// boundaries are the offsets at which records end.
func boundaries(whole []byte, id uint64) []int {
	records, _, _ := spool.ScanBytes(whole[spool.HeaderSize:], id)
	at := spool.HeaderSize
	var ends []int
	for _, r := range records {
		at += spool.FrameHeader + len(r)
		ends = append(ends, at)
	}
	return ends
}

func requireRecovered(t *testing.T, o spool.Options, ends []int, cut int) {
	t.Helper()
	want := 0
	for _, end := range ends {
		if end <= cut {
			want++
		}
	}
	s, err := spool.Open(o)
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	defer s.Close()
	requireRecords(t, contents(t, s), 0, want)
	if want > 0 {
		if st := s.Stats(); st.Bytes != int64(ends[want-1]) || st.Quarantined != 0 {
			t.Fatalf("cut at %d: %+v", cut, st)
		}
	}
}

// Bytes that rot in the middle cost at most the records they touch; these go to
// the quarantine, once.
func TestCorruptBytesAreSetAside(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for range 60 {
		o := spool.Options{Dir: t.TempDir(), SegmentRows: 30}
		s := open(t, o)
		mustAppend(t, s, 0, 30)
		mustAppend(t, s, 30, 60) // the last segment is another one
		s.Close()
		s = open(t, o)
		g := s.Sealed()[0]
		touched := rot(t, s.Path(g), g.ID, r)
		want := []string{}
		for n := range 60 {
			if !touched[n] {
				want = append(want, fmt.Sprintf("op-%d", n))
			}
		}
		for range 2 { // a segment that was not deleted is read again
			if got := contents(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d: got %v\nwant %v", seed, got, want)
			}
			if q := s.Stats().Quarantined; (q > 0) != (len(touched) > 0) || int(q) > len(touched) {
				t.Fatalf("seed %d: %d runs set aside, %d records touched", seed, q, len(touched))
			}
		}
		s.Close()
	}
}

// rot changes a few bytes anywhere and tells which records that touched; the header is -1.
func rot(t *testing.T, path string, id uint64, r *rand.Rand) map[int]bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends, touched := boundaries(data, id), map[int]bool{}
	for range 1 + r.IntN(3) {
		at := r.IntN(len(data))
		data[at] ^= byte(1 + r.IntN(255))
		n := 0
		for n < len(ends) && ends[n] <= at {
			n++
		}
		if at < spool.HeaderSize {
			n = -1
		}
		touched[n] = true
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return touched
}

func TestARecordOfAnotherVersionIsSetAside(t *testing.T) {
	o := spool.Options{Dir: t.TempDir()}
	s := open(t, o)
	mustAppend(t, s, 0, 1)
	s.Close()
	s = open(t, o)
	g := s.Sealed()[0]
	a := record(7)
	newer := spool.AppendRecord(nil, &a)
	newer[0]++
	var data []byte
	for _, part := range [][]byte{header(t, s.Path(g)), spool.Frames(g.ID, record(0)), spool.Frame(g.ID, newer), spool.Frames(g.ID, record(1))} {
		data = append(data, part...)
	}
	if err := os.WriteFile(s.Path(g), data, 0o600); err != nil {
		t.Fatal(err)
	}
	requireRecords(t, contents(t, s), 0, 2)
	if st := s.Stats(); st.Quarantined != 1 {
		t.Errorf("%+v", st)
	}
}

func header(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data[:spool.HeaderSize:spool.HeaderSize]
}

func FuzzScan(f *testing.F) {
	var all []retrylens.Attempt
	for n := range 5 {
		all = append(all, record(n))
	}
	f.Add(spool.Frames(7, all...), uint64(7))
	f.Add([]byte("RLSPOOL1"), uint64(0))
	f.Add(make([]byte, 100), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, id uint64) {
		_, good, bad := spool.ScanBytes(b, id)
		if good+bad != len(b) {
			t.Fatalf("%d bytes of records and %d others, of %d", good, bad, len(b))
		}
		// Whatever stands around them, sound records are found.
		both := append(append([]byte{}, b...), spool.Frames(id, all...)...)
		if records, _, _ := spool.ScanBytes(both, id); len(records) < len(all) {
			t.Fatalf("%d of %d records found behind %x", len(records), len(all), b)
		}
	})
}
