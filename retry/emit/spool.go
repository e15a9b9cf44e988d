package emit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens/retry/keys"
)

// Spool keeps batches on disk while the sink is away, one compressed file each, synced.
// What a process leaves behind is sent by the next one that opens the directory;
// several may share it, since a record that is sent twice replaces itself.
type Spool struct {
	dir      string
	maxBytes int64
	own      string // in the names of its files, so that no two processes use the same

	mu       sync.Mutex
	n        int       // files of this process
	listings int       // of the directory
	listed   []string  // batches to be read, oldest first; more may have come
	held     int64     // bytes on disk as of measured, and what this process has changed since
	measured time.Time // zero = not yet
	enc      *zstd.Encoder
	dec      *zstd.Decoder
}

const (
	tmpPrefix     = "tmp-"
	orphanAge     = 10 * time.Minute // of a file that was being written: its writer is gone
	measureEvery  = time.Second      // what others put there meanwhile may exceed the bound
	spoolSuffix   = ".ndjson.zst"
	maxSpoolFile  = 64 << 20 // of one file, uncompressed
	defaultOnDisk = 1 << 30
)

// OpenSpool opens or makes the directory. maxBytes bounds what lies there; 0 = 1 GiB.
// Beyond it batches stay in memory, where the emitter's own bounds hold.
func OpenSpool(dir string, maxBytes int64) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("emit: the spool: %w", err)
	}
	s := &Spool{dir: dir, maxBytes: orDefault(maxBytes, defaultOnDisk), own: keys.New()[24:]}
	var err error
	if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	if s.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxSpoolFile)); err != nil {
		return nil, err
	}
	if _, err := s.names(); err != nil {
		return nil, fmt.Errorf("emit: the spool: %w", err)
	}
	return s, nil
}

// fits tells whether n bytes more may lie there. It measures again what other processes
// have left there if that was long ago, and before it says no.
func (s *Spool) fits(n int64) (bool, error) {
	now := time.Now()
	if age := now.Sub(s.measured); s.measured.IsZero() || age < 0 || age > measureEvery || s.held+n > s.maxBytes {
		names, err := s.names()
		if err != nil {
			return false, err
		}
		s.held, s.measured = 0, now
		for _, name := range names {
			s.held += s.size(name)
		}
	}
	return s.held+n <= s.maxBytes, nil
}

// size of a file, 0 of one that is gone.
func (s *Spool) size(name string) int64 {
	if i, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
		return i.Size()
	}
	return 0
}

// put writes a batch; its name sorts by time.
func (s *Spool) put(emitter string, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil { // somebody may have removed it
		return fmt.Errorf("emit: the spool: %w", err)
	}
	data := s.enc.EncodeAll(lines, nil)
	ok, err := s.fits(int64(len(data)))
	if err != nil {
		return fmt.Errorf("emit: the spool: %w", err)
	}
	if !ok {
		return fmt.Errorf("emit: the spool %s is full: %d bytes of %d", s.dir, s.held, s.maxBytes)
	}
	name := fmt.Sprintf("%020d-%s-%s-%06d%s", time.Now().UnixNano(), fileName(emitter), s.own, s.n, spoolSuffix)
	s.n++
	if err := writeSynced(s.dir, name, data); err != nil {
		return fmt.Errorf("emit: the spool: %w", err)
	}
	s.held += int64(len(data))
	return nil
}

func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

func writeSynced(dir, name string, data []byte) error {
	tmp, err := os.CreateTemp(dir, tmpPrefix+"*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, toDisk(tmp), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(toDisk(d), d.Close())
}

// names of the batches, oldest first. What a process that died left unfinished is cleared
// away: those records were in its memory alone.
func (s *Spool) names() ([]string, error) {
	s.listings++
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch {
		case strings.HasSuffix(e.Name(), spoolSuffix):
			names = append(names, e.Name())
		case strings.HasPrefix(e.Name(), tmpPrefix):
			s.clear(e)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (s *Spool) clear(e fs.DirEntry) {
	if i, err := e.Info(); err == nil && i.Mode().IsRegular() && time.Since(i.ModTime()) > orphanAge {
		_ = os.Remove(filepath.Join(s.dir, e.Name())) // the next look tries again
	}
}

// oldest returns the oldest batch that can be read, "" without one. A file that cannot
// be is set aside under another name and the error returned beside the next batch. The
// directory is listed once for all that it holds; what comes later is younger.
func (s *Spool) oldest() (name string, lines []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for again := true; ; {
		for len(s.listed) > 0 {
			name = s.listed[0]
			if lines, bad := s.read(name); bad == nil {
				return name, lines, err
			} else if !errors.Is(bad, fs.ErrNotExist) { // else another process has sent it
				err = errors.Join(err, bad)
			}
			s.listed = s.listed[1:]
		}
		if !again {
			return "", nil, err
		}
		again = false
		var bad error
		if s.listed, bad = s.names(); bad != nil && !errors.Is(bad, fs.ErrNotExist) { // else somebody has removed it; put makes it again
			return "", nil, errors.Join(err, fmt.Errorf("emit: the spool: %w", bad))
		}
	}
}

// read a batch, or set it aside.
func (s *Spool) read(name string) ([]byte, error) {
	path := filepath.Join(s.dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) {
		return nil, fmt.Errorf("emit: the spool: %w", err) // not the file's fault: it stays for the next time
	}
	var lines []byte
	if err == nil {
		if lines, err = s.dec.DecodeAll(data, nil); err == nil {
			return lines, nil
		}
	}
	if aside := os.Rename(path, path+".bad"); !errors.Is(aside, fs.ErrNotExist) { // else another process was faster
		err = errors.Join(err, aside)
	}
	return nil, fmt.Errorf("emit: the spool file %s cannot be read and is set aside: %w", name, err)
}

// remove a batch that was sent.
func (s *Spool) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.listed) > 0 && s.listed[0] == name {
		s.listed = s.listed[1:]
	}
	size := s.size(name)
	err := os.Remove(filepath.Join(s.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("emit: the spool: %w", err)
	}
	s.held = max(0, s.held-size)
	return nil
}
