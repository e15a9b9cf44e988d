package spool_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/internal/spool"
)

// failingDisk fails an operation for good, until it is mended.
type failingDisk struct {
	spool.Disk
	fails map[string]error // by operation
}

func (d *failingDisk) Create(path string) (spool.File, error) {
	if err := d.fails["create"]; err != nil {
		return nil, err
	}
	f, err := d.Disk.Create(path)
	return &failingFile{f, d}, err
}

func (d *failingDisk) Truncate(path string, size int64) error {
	if err := d.fails["truncate"]; err != nil {
		return err
	}
	return d.Disk.Truncate(path, size)
}

func (d *failingDisk) Remove(path string) error {
	if err := d.fails["remove"]; err != nil {
		return err
	}
	return d.Disk.Remove(path)
}

func (d *failingDisk) Rename(from, to string) error {
	if err := d.fails["rename"]; err != nil {
		return err
	}
	return d.Disk.Rename(from, to)
}

func (d *failingDisk) SyncDir(dir string) error {
	if err := d.fails["syncdir"]; err != nil {
		return err
	}
	return d.Disk.SyncDir(dir)
}

type failingFile struct {
	spool.File
	d *failingDisk
}

func (f *failingFile) Write(p []byte) (int, error) {
	if err := f.d.fails["write"]; err != nil {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, err
	}
	return f.File.Write(p)
}

func (f *failingFile) Sync() error {
	if err := f.d.fails["sync"]; err != nil {
		return err
	}
	return f.File.Sync()
}

var operations = []string{"create", "write", "sync", "truncate", "remove", "rename", "syncdir"}

// damages are bytes that are no record, wherever they are in the last segment.
var damages = map[string]func(sound []byte) (data []byte, records int){
	"torn end":   func(b []byte) ([]byte, int) { return append(b, lost...), 20 },
	"in between": func(b []byte) ([]byte, int) { return insert(b, spool.HeaderSize, lost), 20 },
	"both":       func(b []byte) ([]byte, int) { return append(insert(b, spool.HeaderSize, lost), lost...), 20 },
	"no record":  func([]byte) ([]byte, int) { return bytes.Clone(lost), 0 },
}

var lost = bytes.Repeat([]byte("perhaps a record "), 10)

func insert(b []byte, at int, what []byte) []byte {
	return append(append(bytes.Clone(b[:at]), what...), b[at:]...)
}

// damaged is the directory of a spool whose only segment was damaged.
func damaged(t *testing.T, damage func([]byte) ([]byte, int)) (o spool.Options, records int) {
	t.Helper()
	o = spool.Options{Dir: t.TempDir()}
	s := open(t, o)
	mustAppend(t, s, 0, 20)
	s.Seal()
	path := s.Path(s.Sealed()[0])
	s.Close()
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, records := damage(sound)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return o, records
}

// Whatever fails on a disk, a spool with a damaged segment opens, gives its
// records, and loses no byte that may have been one, also when the segment is
// deleted: then or after the disk was mended. Nothing is told to be gone that
// is there.
func TestNoByteIsLostOnAFailingDisk(t *testing.T) {
	for name, damage := range damages {
		for _, failing := range append([]string{"none", "create write sync truncate", "rename create"}, operations...) {
			for _, failure := range []error{errDiskFull, errIO} {
				t.Run(fmt.Sprint(name, " ", failing, " ", failure), func(t *testing.T) {
					o, records := damaged(t, damage)
					disk := &failingDisk{fails: map[string]error{}}
					for _, op := range strings.Fields(failing) {
						disk.fails[op] = failure
					}
					o.FS = disk
					s := open(t, o)
					requireRecords(t, contents(t, s), 0, records)
					requireKept(t, o.Dir)
					deleteAll(s)
					requireKept(t, o.Dir)
					clear(disk.fails)
					requireRecords(t, contents(t, s), 0, len(contents(t, s)))
					deleteAll(s)
					if n := len(s.Sealed()); n != 0 {
						t.Errorf("%d segments cannot be deleted on a mended disk", n)
					}
					requireKept(t, o.Dir)
					if st := s.Stats(); st.Unkept != 0 || st.Quarantined == 0 && st.TornBytes == 0 {
						t.Errorf("%+v", st)
					}
				})
			}
		}
	}
}

func deleteAll(s *spool.Spool) {
	for _, g := range s.Sealed() {
		_ = s.Delete(g) // may fail: nothing is lost then
	}
}

// requireKept: the lost bytes are in some file.
func requireKept(t *testing.T, dir string) {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".tmp") {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, lost)
		return err
	})
	if err != nil || !found {
		t.Fatalf("the bytes that are no record are gone, %v", err)
	}
}

// What is kept for want of room shows, and is set aside as soon as there is some.
func TestWhatCannotBeSetAsideShows(t *testing.T) {
	o, _ := damaged(t, damages["in between"])
	disk := &failingDisk{fails: map[string]error{"write": errDiskFull}}
	o.FS = disk
	s := open(t, o)
	requireRecords(t, contents(t, s), 0, 20)
	if st := s.Stats(); st.Unkept != 1 || st.Quarantined != 0 {
		t.Errorf("%+v", st)
	}
	clear(disk.fails)
	requireRecords(t, contents(t, s), 0, 20)
	if st := s.Stats(); st.Unkept != 0 || st.Quarantined != 1 {
		t.Errorf("%+v", st)
	}
	deleteAll(s)
	requireKept(t, o.Dir)
	if files, err := filepath.Glob(filepath.Join(o.Dir, "quarantine", "*")); err != nil || len(files) != 1 || !strings.HasSuffix(files[0], ".bin") {
		t.Errorf("%v %v", files, err)
	}
}
