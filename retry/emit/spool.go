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
	"time"

	"github.com/klauspost/compress/zstd"
)

// Spool keeps batches on disk while the sink is away, one compressed file each, synced.
// What a process leaves behind is sent by the next one that opens the directory;
// several may share it, since a record that is sent twice replaces itself.
type Spool struct {
	dir      string
	maxBytes int64

	mu  sync.Mutex
	n   int // files of this process
	enc *zstd.Encoder
	dec *zstd.Decoder
}

const (
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
	s := &Spool{dir: dir, maxBytes: orDefault(maxBytes, defaultOnDisk)}
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

// held is how many bytes lie there, as other processes have left it.
func (s *Spool) held() (n int64, err error) {
	names, err := s.names()
	for _, name := range names {
		if i, err := os.Stat(filepath.Join(s.dir, name)); err == nil { // else another process has sent it
			n += i.Size()
		}
	}
	return n, err
}

// put writes a batch; its name sorts by time.
func (s *Spool) put(emitter string, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.dir, 0o700); err != nil { // somebody may have removed it
		return fmt.Errorf("emit: the spool: %w", err)
	}
	held, err := s.held()
	if err != nil {
		return fmt.Errorf("emit: the spool: %w", err)
	}
	data := s.enc.EncodeAll(lines, nil)
	if held+int64(len(data)) > s.maxBytes {
		return fmt.Errorf("emit: the spool %s is full: %d bytes of %d", s.dir, held, s.maxBytes)
	}
	name := fmt.Sprintf("%020d-%s-%06d%s", time.Now().UnixNano(), fileName(emitter), s.n, spoolSuffix)
	s.n++
	if err := writeSynced(s.dir, name, data); err != nil {
		return fmt.Errorf("emit: the spool: %w", err)
	}
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
	tmp, err := os.CreateTemp(dir, "tmp-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *Spool) names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), spoolSuffix) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// oldest returns the oldest batch that can be read, "" without one. A file that cannot
// be is set aside under another name and the error returned beside the next batch.
func (s *Spool) oldest() (name string, lines []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.names()
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed it; put makes it again
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("emit: the spool: %w", err)
	}
	for _, n := range names {
		path := filepath.Join(s.dir, n)
		data, bad := os.ReadFile(path)
		if errors.Is(bad, fs.ErrNotExist) {
			continue // another process has sent it
		}
		if bad == nil {
			if lines, bad = s.dec.DecodeAll(data, nil); bad == nil {
				return n, lines, err
			}
		}
		err = errors.Join(err, fmt.Errorf("emit: the spool file %s cannot be read and is set aside: %w", n, bad), os.Rename(path, path+".bad"))
	}
	return "", nil, err
}

func (s *Spool) remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("emit: the spool: %w", err)
	}
	return nil
}
