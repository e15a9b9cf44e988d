package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/retrylens/retrylens/internal/wire"
)

// lineReader splits a stream into lines with a buffer of one line.
type lineReader struct {
	r    *bufio.Reader
	line int // number of the last line read
}

func newLineReader(r io.Reader) *lineReader {
	const crlf = 2
	br := bufio.NewReaderSize(r, wire.MaxLine+crlf)
	if bom, _ := br.Peek(3); string(bom) == "\ufeff" {
		_, _ = br.Discard(len(bom)) // just peeked
	}
	return &lineReader{r: br}
}

// next returns the next line without its end, valid until the next call. Of a
// line that is too long it returns the beginning and tooLong. err is io.EOF or
// what broke the stream; the line read until there is returned with it.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if len(line) > 0 || err == nil {
		l.line++
	}
	full := errors.Is(err, bufio.ErrBufferFull)
	if line = trimEnd(line); full || len(line) > wire.MaxLine {
		line = bytes.Clone(line[:min(len(line), wire.MaxLine)])
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.r.ReadSlice('\n')
		}
		return line, true, err
	}
	return line, false, err
}

func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}

// broken tells, in few different words, what ended a stream too early.
func broken(err error) string {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "truncated: the compressed data end too early, or something else follows them"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.As(err, &corrupt):
		return fmt.Sprintf("corrupt: %v", err)
	}
	return fmt.Sprintf("unreadable from here on: %v", err)
}
