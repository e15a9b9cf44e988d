package spool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/spool"
)

// What is named like a segment and is none, or cannot be read, keeps neither the
// spool from opening nor the other segments from being read; new segments do not
// collide with it.
func TestStrangeFilesInTheDirectory(t *testing.T) {
	past, future := fmt.Sprintf("%020d.seg", 7), fmt.Sprintf("%020d.seg", uint64(1)<<61)
	for name, put := range map[string]func(path string) error{
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"symlink":       func(p string) error { return os.Symlink("/etc/passwd", p) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		"empty file":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"huge file":     func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<40)) },
	} {
		for _, file := range []string{past, future, fmt.Sprintf("%020d.seg", uint64(1)<<63), "seg.seg", "00000000000000000000x.seg"} {
			t.Run(name+" "+file, func(t *testing.T) {
				o := spool.Options{Dir: t.TempDir()}
				s := open(t, o)
				mustAppend(t, s, 0, 10)
				s.Close()
				if err := put(filepath.Join(o.Dir, file)); err != nil {
					t.Fatal(err)
				}
				s = open(t, o)
				mustAppend(t, s, 10, 20)
				s.Close()
				s = open(t, o)
				requireRecords(t, readable(s), 0, 20)
			})
		}
	}
}

// readable are the logical ids of all segments that can be read.
func readable(s *spool.Spool) (ids []string) {
	r := s.NewReader()
	for _, g := range s.Sealed() {
		_ = r.Read(g, func(a retrylens.Attempt) error { ids = append(ids, a.LogicalID); return nil })
	}
	return ids
}

// A number that is in the quarantine is not used again, whatever the clock says.
func TestNumbersOfTheQuarantineAreTaken(t *testing.T) {
	o := spool.Options{Dir: t.TempDir()}
	open(t, o).Close()
	later := uint64(1) << 61
	if err := os.WriteFile(filepath.Join(o.Dir, "quarantine", fmt.Sprintf("%020d-20.bin", later)), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, o)
	mustAppend(t, s, 0, 1)
	s.Seal()
	if g := s.Sealed()[0]; g.ID <= later {
		t.Errorf("segment %d, want one after %d", g.ID, later)
	}
}

// A batch that is more than the whole spool is told apart from a full one: it
// never fits.
func TestABatchLargerThanTheSpool(t *testing.T) {
	s := open(t, spool.Options{LimitBytes: 1000})
	if err := s.Append(batch(0, 100)); !errors.Is(err, spool.ErrTooLarge) || errors.Is(err, spool.ErrFull) {
		t.Errorf("got %v", err)
	}
	mustAppend(t, s, 0, 1)
	if st := s.Stats(); st.Bytes > 200 {
		t.Errorf("%+v", st)
	}
}

// recordingDisk remembers which directories were made durable.
type recordingDisk struct {
	spool.Disk
	synced map[string]bool
}

func (d *recordingDisk) SyncDir(dir string) error {
	d.synced[dir] = true
	return d.Disk.SyncDir(dir)
}

// The names of new directories are durable before the first record is.
func TestNewDirectoriesAreDurable(t *testing.T) {
	top := t.TempDir()
	disk := &recordingDisk{synced: map[string]bool{}}
	open(t, spool.Options{Dir: filepath.Join(top, "a", "b"), FS: disk})
	for _, dir := range []string{top, filepath.Join(top, "a"), filepath.Join(top, "a", "b")} {
		if !disk.synced[dir] {
			t.Errorf("%s was not synced", dir)
		}
	}
}
