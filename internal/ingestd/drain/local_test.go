package drain_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/spool"
)

// A segment that cannot be read keeps none of the others waiting, whatever is
// wrong with it, and is stored when it can be read again.
func TestAFaultOfOneFileIsLocal(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"a directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a link":      func(p string) error { return os.Symlink("nowhere", p) },
		"a loop":      func(p string) error { return os.Symlink(filepath.Base(p), p) },
		"gone":        func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.store.failWith(func([]retrylens.Attempt) error { return errDown })
				r.segment(10)
				path := filepath.Join(r.dir, fmt.Sprintf("%020d.seg", r.spool.Sealed()[0].ID))
				if err := errors.Join(os.Rename(path, path+".away"), harm(path)); err != nil {
					r.t.Error(err)
				}
				r.store.failWith(nil)
				time.Sleep(20 * time.Second)
				tries := r.store.count()
				for range 30 {
					r.segment(10)
				}
				r.requireStored(300)
				if n := r.store.count() - tries; n != 30 || r.seen.retried["local"] == 0 || len(r.spool.Sealed()) != 1 {
					r.t.Errorf("%d inserts for 30 segments, %+v", n, r.seen)
				}
				_ = os.Remove(path)
				if err := os.Rename(path+".away", path); err != nil {
					r.t.Error(err)
				}
				r.flush(time.Minute)
				r.requireStored(310)
			})
		})
	}
}

// failingLetters is a disk on which the files of dead letters fail at one
// operation, so many times.
type failingLetters struct {
	spool.Disk
	op    string
	times int
	err   error
}

func (d *failingLetters) fails(op string) error {
	if op != d.op || d.times == 0 {
		return nil
	}
	d.times--
	return d.err
}

func (d *failingLetters) Append(path string) (spool.File, error) {
	if err := d.fails("append"); err != nil {
		return nil, err
	}
	f, err := d.Disk.Append(path)
	return &failingLettersFile{f, d}, err
}

func (d *failingLetters) SyncDir(dir string) error {
	return errors.Join(d.fails("syncdir"), d.Disk.SyncDir(dir))
}

type failingLettersFile struct {
	spool.File
	d *failingLetters
}

// Write writes a half before it fails; "write truncate" cannot take it back.
func (f *failingLettersFile) Write(p []byte) (int, error) {
	for _, op := range []string{"write", "truncate"} {
		if f.d.op == op && f.d.times > 0 {
			n, err := f.File.Write(p[:len(p)/2])
			return n, errors.Join(f.d.fails("write"), f.d.err, err)
		}
	}
	return f.File.Write(p)
}

func (f *failingLettersFile) Truncate(size int64) error {
	if err := f.d.fails("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *failingLettersFile) Sync() error {
	return errors.Join(f.File.Sync(), f.d.fails("sync"))
}

func (f *failingLettersFile) Close() error {
	return errors.Join(f.File.Close(), f.d.fails("close"))
}

// Wherever the writing of dead letters fails, and however often: every letter is
// there once in the end, with its reason, and no segment is deleted before. Others
// are stored meanwhile.
func TestDeadLettersOnAFailingDisk(t *testing.T) {
	bad := func(n int) bool { return n%10 == 0 && n < 200 }
	for _, op := range []string{"append", "write", "truncate", "sync", "close", "syncdir"} {
		for _, times := range []int{1, 2, 3, 5} {
			for _, failure := range []error{syscall.ENOSPC, syscall.EIO} {
				t.Run(fmt.Sprint(op, " ", times, " ", failure), func(t *testing.T) {
					inBubble(t, nil, func(r *rig) {
						r.dead.SetFS(&failingLetters{op: op, times: times, err: failure})
						r.store.failWith(refuse(bad, each))
						r.segment(100)
						r.segment(100)
						if len(r.spool.Sealed()) == 0 || r.seen.retried["local"] == 0 {
							r.t.Errorf("nothing failed: %+v", r.seen)
						}
						r.segment(100) // none of it bad
						if n := len(r.store.rows); n < 180+100 {
							r.t.Errorf("%d stored meanwhile", n)
						}
						r.flush(time.Hour)
						torn := r.requireLetters(bad)
						if torn > 0 && op != "truncate" {
							r.t.Errorf("%d torn lines", torn)
						}
					})
				})
			}
		}
	}
}

// What a record holds is never logged, whatever the store says of it.
func TestNoValueOfARecordIsLogged(t *testing.T) {
	for name, kind := range map[string]error{"data": errBad, "split": errMuch, "fatal": errFatal, "retry": errDown} {
		for _, takesFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(name, takesFirst), func(t *testing.T) {
				var log bytes.Buffer
				options := func(o *drain.Options) {
					o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
					o.Describe = func(error) string { return "code 4711" }
				}
				inBubble(t, options, func(r *rig) {
					if takesFirst {
						r.segment(1)
					}
					r.store.failWith(func(rows []retrylens.Attempt) error {
						for _, a := range rows {
							if takesFirst && number(a.LogicalID) == 0 {
								return nil
							}
							return fmt.Errorf("%w: in %s", kind, a.AppendJSON(nil))
						}
						return nil
					})
					r.segment(100)
					r.segment(100)
					time.Sleep(time.Minute)
					synctest.Wait()
				})
				text := log.String()
				for _, value := range []string{"op-0", "acme", "success", "logical_id"} {
					if strings.Contains(text, value) {
						t.Errorf("%q is in the log: %.300s", value, text)
					}
				}
				if !strings.Contains(text, "level=") || !strings.Contains(text, "code 4711") && takesFirst {
					t.Errorf("the error is not told: %.300s", text)
				}
			})
		}
	}
}
