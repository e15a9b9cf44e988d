package ingestd

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/retrylens/retrylens/internal/ingest"
	"github.com/retrylens/retrylens/internal/wire"
)

// splitter cuts a body into records. Next returns one, valid until the next
// call, with its number from 1; reason is not empty when it is refused as it is.
// At the end it returns io.EOF and nothing else.
type splitter interface {
	next() (record []byte, number int, reason string, err error)
}

const tooLong = "longer than 65536 bytes"

// ndjson is one object a line. Lines without any are skipped: they have a number,
// but are no records.
type ndjson struct {
	lines *ingest.LineReader
	err   error
}

func newNDJSON(r io.Reader) *ndjson { return &ndjson{lines: ingest.NewLineReader(r)} }

func (s *ndjson) next() ([]byte, int, string, error) {
	for s.err == nil {
		var line []byte
		var number int
		var long bool
		line, number, long, s.err = s.lines.Next()
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			break
		}
		if long {
			return nil, number, tooLong, nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return line, number, "", nil
		}
	}
	return nil, 0, "", s.err
}

// document is one JSON text: an object, or an array of which the elements are
// counted. It looks at braces and strings only; what an element is, is for its
// decoder to tell. A byte order mark before it is skipped, as before NDJSON.
type document struct {
	r       *bufio.Reader
	buf     []byte
	number  int
	array   bool
	started bool
	ended   bool // nothing but white space may follow
}

func newDocument(r io.Reader) *document {
	br := bufio.NewReaderSize(r, 16<<10)
	if bom, _ := br.Peek(3); string(bom) == "\ufeff" {
		_, _ = br.Discard(len(bom)) // just peeked
	}
	return &document{r: br}
}

func (d *document) next() ([]byte, int, string, error) {
	c, err := d.peek()
	if err == nil && !d.started {
		d.started = true
		if d.array = c == '['; d.array {
			return d.first()
		}
	}
	switch {
	case errors.Is(err, io.EOF) && d.array && !d.ended:
		d.ended = true
		return nil, d.number + 1, "invalid JSON: the array is not closed", nil
	case err != nil:
		return nil, 0, "", err
	case d.ended:
		return d.rest("invalid JSON: more data after the value")
	case !d.array:
		d.ended = true
		return d.element()
	}
	return d.following(c)
}

// first is what follows the opening bracket.
func (d *document) first() ([]byte, int, string, error) {
	d.skip()
	c, err := d.peek()
	switch {
	case err != nil:
		return d.next()
	case c == ']':
		d.skip()
		d.ended = true
		return d.next()
	}
	return d.element()
}

// following is what follows an element.
func (d *document) following(c byte) ([]byte, int, string, error) {
	switch c {
	case ']':
		d.skip()
		d.ended = true
		return d.next()
	case ',':
		d.skip()
		switch c, err := d.peek(); {
		case err != nil:
			return d.next()
		case c == ']':
			d.skip()
			d.ended = true
			d.number++
			return nil, d.number, "invalid JSON: a comma before the closing bracket", nil
		}
		return d.element()
	}
	return d.rest("invalid JSON: comma or closing bracket expected")
}

// rest refuses all that follows as one more element.
func (d *document) rest(reason string) ([]byte, int, string, error) {
	d.ended = true
	for {
		if _, err := d.r.Discard(d.r.Size()); err != nil {
			if err == io.EOF {
				return nil, d.number + 1, reason, nil
			}
			return nil, 0, "", err
		}
	}
}

// peek skips white space.
func (d *document) peek() (byte, error) {
	for {
		c, err := d.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, d.r.UnreadByte()
		}
	}
}

func (d *document) skip() { _, _ = d.r.ReadByte() }

// element reads one value: to its closing brace, or to what cannot be in it.
func (d *document) element() ([]byte, int, string, error) {
	d.number++
	d.buf = d.buf[:0]
	size, depth, inString, escaped := 0, 0, false, false
	for {
		c, err := d.r.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, "", err
		}
		if depth == 0 && !inString && size > 0 && d.array && (c == ',' || c == ']') {
			_ = d.r.UnreadByte()
			break
		}
		if size++; len(d.buf) < wire.MaxLine {
			d.buf = append(d.buf, c)
		}
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !inString && (c == '}' || c == ']') {
			break
		}
	}
	if size > wire.MaxLine {
		return nil, d.number, tooLong, nil
	}
	return d.buf, d.number, "", nil
}
