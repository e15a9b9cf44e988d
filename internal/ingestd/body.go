package ingestd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

var (
	errTooLarge     = errors.New("too large")
	errTooManyLines = errors.New("too many lines")
	errBusy         = errors.New("no memory left for the body")
)

const (
	// gzipMemory is what a gzip reader holds, zstdMemory what a zstd reader holds
	// beside its window.
	gzipMemory = 64 << 10
	zstdMemory = 512 << 10
	maxWindow  = 8 << 20 // what RFC 8878 asks a decoder to support

	smallWindow    = 1 << 20
	largeWindows   = 4 // decoders
	readAhead      = 1 << 20
	windowPatience = 5 * time.Second
)

// wireReader reads a body as it comes from the network: not for ever, and not
// more than limit. It remembers what broke it.
type wireReader struct {
	r        io.Reader
	control  *http.ResponseController
	began    time.Time
	pace     Pace
	n, limit int64
	err      error
}

// Pace is how fast a body must come.
type Pace struct {
	Stall     time.Duration // the longest time without a byte
	Grace     time.Duration // a body may take as long, and
	MinPerSec int64         // a second more for so many bytes
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if err := w.control.SetReadDeadline(w.deadline()); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := w.r.Read(p)
	if w.n += int64(n); w.n > w.limit {
		err = errTooLarge
	}
	if err != nil {
		w.err = err
	}
	if errors.Is(err, io.EOF) {
		// Nothing more is read, but for noticing that the sender goes away.
		_ = w.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (w *wireReader) deadline() time.Time {
	stall := time.Now().Add(w.pace.Stall)
	total := w.began.Add(w.pace.Grace + time.Duration(float64(w.n)/float64(w.pace.MinPerSec)*float64(time.Second)))
	if total.Before(stall) {
		return total
	}
	return stall
}

// broke tells whether the network or a limit ended the body, not its contents.
func (w *wireReader) broke() bool { return w.err != nil && !errors.Is(w.err, io.EOF) }

// plainReader bounds what comes out of a decompressor.
type plainReader struct {
	r io.Reader
	n int64 // left
}

func (p *plainReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if p.n -= int64(n); p.n < 0 {
		return 0, errTooLarge
	}
	return n, err
}

var gzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// decompressor opens compressed bodies. Decoders are kept: those of large zstd
// windows are few, and who needs one waits a moment.
type decompressor struct {
	small sync.Pool
	large chan *zstd.Decoder // nil = not made yet
}

func newDecompressor() *decompressor {
	d := &decompressor{large: make(chan *zstd.Decoder, largeWindows)}
	for range largeWindows {
		d.large <- nil
	}
	return d
}

// open returns the plain body and what to call at its end. What it needs is
// taken from the lease. size is that of the body as it comes, -1 = not known.
func (d *decompressor) open(r io.Reader, encoding string, size int64, l *lease) (io.Reader, func(), error) {
	switch encoding {
	case "gzip":
		if !l.hold(l.held + gzipMemory) {
			return nil, nil, errBusy
		}
		z := gzips.Get().(*gzip.Reader)
		return z, func() { gzips.Put(z) }, z.Reset(r)
	case "zstd":
		return d.openZstd(r, size, l)
	}
	return r, func() {}, nil
}

// openZstd looks at the first frame's header: its window is the memory that the
// body needs, and all that later frames may need. A small body is read before
// its turn at a large window comes, so that no slow sender keeps one.
func (d *decompressor) openZstd(r io.Reader, size int64, l *lease) (io.Reader, func(), error) {
	if size >= 0 && size <= readAhead {
		if !l.hold(l.held + size) {
			return nil, nil, errBusy
		}
		body, err := io.ReadAll(io.LimitReader(r, size))
		if err != nil {
			return nil, nil, err
		}
		r = bytes.NewReader(body)
	}
	in := bufio.NewReaderSize(r, 4<<10)
	window, err := windowOf(in)
	if err != nil {
		return nil, nil, err
	}
	if window <= smallWindow {
		return d.openSmall(in, l)
	}
	return d.openLarge(in)
}

func (d *decompressor) openSmall(in io.Reader, l *lease) (io.Reader, func(), error) {
	if !l.hold(l.held + zstdMemory + smallWindow) {
		return nil, nil, errBusy
	}
	z, _ := d.small.Get().(*zstd.Decoder)
	z, err := reset(z, in, smallWindow)
	if err != nil {
		return nil, nil, err
	}
	return z, func() { d.small.Put(z) }, nil
}

func (d *decompressor) openLarge(in io.Reader) (io.Reader, func(), error) {
	timer := time.NewTimer(windowPatience)
	defer timer.Stop()
	select {
	case z := <-d.large:
		z, err := reset(z, in, maxWindow)
		if err != nil {
			d.large <- nil
			return nil, nil, err
		}
		return z, func() { d.large <- z }, nil
	case <-timer.C:
		return nil, nil, errBusy
	}
}

// reset makes z, or a new decoder, read in.
func reset(z *zstd.Decoder, in io.Reader, window uint64) (*zstd.Decoder, error) {
	if z == nil {
		return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	}
	return z, z.Reset(in)
}

// windowError is a zstd frame that needs more memory than one request may have.
type windowError struct{ window uint64 }

func (e *windowError) Error() string {
	return fmt.Sprintf("its zstd window is %d bytes, at most %d are supported: compress without --long, up to level 19", e.window, maxWindow)
}

func windowOf(in *bufio.Reader) (uint64, error) {
	first, err := in.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(first); err != nil {
		return 0, fmt.Errorf("zstd: %w", err)
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = min(h.FrameContentSize, maxWindow) // streamed, so the rest of it is not held
	}
	if window > maxWindow {
		return 0, &windowError{window}
	}
	return max(window, zstd.MinWindowSize), nil
}

// bodyProblem turns what ended a body too early into its answer.
func bodyProblem(err error, w *wireReader) *problem {
	var window *windowError
	switch {
	case errors.As(err, &window):
		return newProblem("unreadable", window.Error()+"; nothing of it was kept")
	case errors.Is(err, errTooLarge):
		return newProblem("too_large", fmt.Sprintf("at most %d bytes, before and after decompression; nothing of it was kept", w.limit))
	case errors.Is(err, errTooManyLines):
		return newProblem("too_large", "it has too many lines; nothing of it was kept")
	case errors.Is(err, errBusy):
		return newProblem("busy", "").after(retrySoon)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(w.err, os.ErrDeadlineExceeded):
		return newProblem("too_slow", "nothing of it was kept")
	case w.broke():
		return newProblem("unreadable", "the body ended too early; nothing of it was kept")
	}
	return newProblem("unreadable", "it cannot be decompressed; nothing of it was kept")
}
