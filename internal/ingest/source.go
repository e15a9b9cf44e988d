package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is one stream of NDJSON, plain or compressed with gzip or zstd; which
// one is told by its first bytes. It is read once.
type Source struct {
	Name string // as shown in rejects
	Size int64  // bytes before decompression, 0 = not known
	open func() (io.ReadCloser, error)
}

// FileSources returns a source for each path, "-" for stdin. It fails on the first that
// is no readable file and opens none for longer than it takes to look.
func FileSources(stdin io.Reader, paths ...string) ([]Source, error) {
	sources := make([]Source, 0, len(paths))
	for _, path := range paths {
		if path == "-" {
			sources = append(sources, ReaderSource("stdin", stdin))
			continue
		}
		s, err := fileSource(path)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

func fileSource(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, fmt.Errorf("ingest: %w", err)
	}
	if info.IsDir() {
		return Source{}, fmt.Errorf("ingest: %s is a directory", path)
	}
	return Source{Name: path, Size: info.Size(), open: func() (io.ReadCloser, error) { return os.Open(path) }}, nil
}

// ReaderSource returns a source that reads r, which it does not close.
func ReaderSource(name string, r io.Reader) Source {
	return Source{Name: name, open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
}

// stream is an open source, decompressed.
type stream struct {
	io.Reader
	raw   io.ReadCloser
	close func()
}

func (s Source) stream(read *atomic.Int64) (*stream, error) {
	raw, err := s.open()
	if err != nil {
		return nil, err
	}
	plain := bufio.NewReaderSize(&countingReader{raw, read}, 256<<10)
	st := &stream{raw: raw, close: func() {}}
	if st.Reader, err = decompress(plain, &st.close); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return st, nil
}

// Close releases the decompressor and the file.
func (s *stream) Close() error {
	s.close()
	return s.raw.Close()
}

// maxWindow is what zstd may keep: its own limit for --ultra and --long=27.
const maxWindow = 128 << 20

// decompress looks at the first bytes. What is too short to tell is read as it is.
func decompress(r *bufio.Reader, closer *func()) (io.Reader, error) {
	magic, err := r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return &lazyGzip{src: r}, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		*closer = z.Close
		return z, nil
	}
	return r, nil
}

// lazyGzip reads the gzip header with the first byte, so that a file cut inside
// it is a truncated one like any other.
type lazyGzip struct {
	src io.Reader
	z   *gzip.Reader
}

func (l *lazyGzip) Read(p []byte) (int, error) {
	if l.z == nil {
		z, err := gzip.NewReader(l.src)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		l.z = z
	}
	return l.z.Read(p)
}

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// notNDJSON tells why the first line that is not blank shows that a file is JSON, but
// not one object a line; "" when it does not.
func notNDJSON(line []byte) string {
	s := strings.TrimSpace(string(line[:min(len(line), 64)]))
	switch {
	case strings.HasPrefix(s, "["):
		return "the file is a JSON array, not one object a line: convert it with jq -c '.[]'"
	case s == "{" && len(bytes.TrimSpace(line)) == 1:
		return "the file is pretty-printed JSON, not one object a line: convert it with jq -c ."
	}
	return ""
}
