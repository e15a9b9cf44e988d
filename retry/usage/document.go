package usage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// document reads one JSON document, fed in pieces of any size. It descends only where
// answers keep what is looked for, so that what a tool call or an echoed request
// contains is never taken for the provider's own word.
type document struct {
	state   state
	escaped bool // the byte after a backslash comes next
	isKey   bool // the string being read is a member's name
	skip    int  // nesting below a container that is passed over
	depth   int  // of stack
	stack   [maxDepth]frame
	act     action // of the value that comes next
	nested  bool   // it came as base64 inside another one
	token   [maxToken]byte
	n       int   // bytes of token kept
	start   int   // of the value in the bytes that are being written, where it began there
	long    int64 // bytes of the string in all
	to      *Reader
}

const (
	maxDepth = 24
	maxToken = 128
)

type state uint8

const (
	sStart  state = iota // before the document
	sValue               // a value or the end of a container comes next
	sKey                 // a member's name or the end of the object comes next
	sColon               // after a name
	sAfter               // after a value
	sString              // inside a string
	sBare                // inside a number or literal
	sSkip                // inside a container that is passed over
	sSkipString
	sDone // the document is complete
	sBad  // no JSON
)

// frame is a container that was descended into.
type frame struct {
	role      role
	array     bool
	tool      bool // an answer that is no text, if it is not empty
	text      bool // holds text of the answer
	reasoning bool // says that its text is reasoning
}

func (d *document) reset() {
	d.state, d.depth, d.skip, d.escaped = sStart, 0, 0, false
}

// open tells whether a document was begun and not ended.
func (d *document) open() bool { return d.state != sStart && d.state != sDone && d.state != sBad }

// write reads p up to the end of the document and returns how much that was.
func (d *document) write(p []byte) int {
	i := 0
	for i < len(p) {
		switch d.state {
		case sString, sSkipString:
			i = d.inString(p, i)
		case sSkip:
			i = d.passOver(p, i)
		case sBare:
			i = d.inBare(p, i)
		case sDone, sBad:
			return i
		case sKey:
			if i = d.members(p, i); i < len(p) {
				i = d.between(p, i)
			}
		default:
			i = d.between(p, i)
		}
	}
	return i
}

// between reads one byte between values: the frequent ones at once, the others by
// structure.
func (d *document) between(p []byte, i int) int {
	switch c := p[i]; {
	case d.state == sColon && c == ':':
		d.state = sValue
	case d.state == sKey && c == '"':
		d.begin(sString, true)
	case d.state == sValue && c == '"':
		d.begin(sString, false)
		d.start = i + 1
	case d.state == sAfter && c == ',':
		d.next()
	default:
		return d.structure(p, i)
	}
	return i + 1
}

// structure reads one byte between values.
func (d *document) structure(p []byte, i int) int {
	c := p[i]
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		return i + 1
	}
	switch d.state {
	case sStart, sValue:
		return d.value(i, c)
	case sKey:
		switch c {
		case '"':
			d.begin(sString, true)
		case '}':
			d.close(true)
		case ',':
		default:
			d.state = sBad
		}
	case sColon:
		d.state = sValue
		if c != ':' {
			d.state = sBad
		}
	default: // sAfter
		switch c {
		case ',':
			d.next()
		case '}', ']':
			d.close(false)
		default:
			d.state = sBad
		}
	}
	return i + 1
}

// next awaits the next member or element.
func (d *document) next() {
	d.state = sKey
	if f := &d.stack[d.depth-1]; f.array {
		d.state, d.act = sValue, elementAction(f.role)
	}
}

func (d *document) begin(s state, key bool) {
	d.state, d.isKey, d.n, d.long = s, key, 0, 0
}

func (d *document) value(i int, c byte) int {
	switch {
	case c == '"':
		if d.depth == 0 && d.state == sStart {
			d.state = sBad // a bare string is no answer
			return i + 1
		}
		d.begin(sString, false)
		d.start = i + 1
	case c == '{' || c == '[':
		d.enter(c == '[')
	case c == ']' && d.depth > 0 && d.stack[d.depth-1].array:
		d.close(true)
	case c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		if d.depth == 0 {
			d.state = sBad
			return i + 1
		}
		d.begin(sBare, false)
		d.start = i
		return i
	default:
		d.state = sBad
	}
	return i + 1
}

// enter a container by the action of its value.
func (d *document) enter(array bool) {
	r := rRoot
	if d.depth > 0 {
		r = d.container()
	}
	if r == rSkip || d.depth == maxDepth {
		d.skip, d.state = 1, sSkip
		return
	}
	d.stack[d.depth] = frame{role: r, array: array, tool: d.depth > 0 && d.act == aTool, reasoning: d.depth > 0 && d.act == aReasoning}
	d.depth++
	d.state = sKey
	if array {
		d.state, d.act = sValue, elementAction(r)
	}
}

// close the innermost container.
func (d *document) close(empty bool) {
	f := &d.stack[d.depth-1]
	if f.text || f.tool && !empty {
		d.to.content(!f.reasoning)
	}
	if f.role == rError && !empty {
		d.to.failed()
	}
	d.depth--
	d.closed()
}

// closed is called after each value.
func (d *document) closed() {
	d.state = sAfter
	if d.depth == 0 {
		d.state = sDone
	}
}

// inString reads on in a string; of names and short values the bytes are kept.
func (d *document) inString(p []byte, i int) int {
	for i < len(p) {
		if d.escaped {
			d.escaped = false
			d.keep(p[i : i+1])
			i++
			continue
		}
		end := stringEnd(p[i:])
		if d.long == 0 && i+end < len(p) && p[i+end] == '"' && d.state == sString && (d.isKey || d.act != aBytes) {
			d.long = int64(end) // whole and without escapes, as nearly all are
			d.stringEnds(p[i:i+min(end, maxToken)], i+end)
			return i + end + 1
		}
		d.keep(p[i : i+end])
		i += end
		if i == len(p) {
			return i
		}
		i++
		if p[i-1] == '"' {
			d.stringEnds(d.token[:d.n], i-1)
			return i
		}
		d.escaped = true
	}
	return i
}

// stringEnd is the index of the first quote or backslash, len(p) without one.
func stringEnd(p []byte) int {
	at := 0
	for ; at < inWords && at+8 <= len(p); at += 8 {
		w := binary.LittleEndian.Uint64(p[at:])
		if hit := zeroBytes(w^quotes) | zeroBytes(w^backslashes); hit != 0 {
			return at + bits.TrailingZeros64(hit)/8
		}
	}
	end := bytes.IndexByte(p[at:], '"')
	if end < 0 {
		end = len(p) - at
	}
	if back := bytes.IndexByte(p[at:at+end], '\\'); back >= 0 {
		end = back
	}
	return at + end
}

const (
	inWords     = 32 // names and most values are shorter than a look for each byte pays
	ones        = 0x0101010101010101
	quotes      = '"' * ones
	backslashes = '\\' * ones
)

// zeroBytes sets the highest bit of the first byte of w that is 0, and perhaps of later ones.
func zeroBytes(w uint64) uint64 { return (w - ones) &^ w & (0x80 * ones) }

func (d *document) keep(p []byte) {
	if d.state == sSkipString {
		return
	}
	d.long += int64(len(p))
	if !d.isKey && d.act == aBytes {
		d.to.encoded(p)
		return
	}
	d.n += copy(d.token[d.n:], p)
}

// stringEnds takes a string whose first bytes are v; end is where its closing quote is.
func (d *document) stringEnds(v []byte, end int) {
	switch {
	case d.state == sSkipString:
		d.state = sSkip
	case d.isKey:
		d.act = aNone
		if d.long <= maxToken {
			d.act = d.member(&d.stack[d.depth-1], v)
		}
		d.state = sColon
	default:
		d.to.leaf(d, d.start, end, false)
		d.to.text(d, v)
		d.closed()
	}
}

// inBare reads on in a number or literal.
func (d *document) inBare(p []byte, i int) int {
	for ; i < len(p); i++ {
		switch c := p[i]; c {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			d.to.leaf(d, d.start, i, true)
			d.to.bare(d, d.token[:d.n])
			d.closed()
			return i
		default:
			if d.n < len(d.token) {
				d.token[d.n] = c
				d.n++
			}
		}
	}
	return i
}

// passOver reads on in a container that holds nothing of interest.
func (d *document) passOver(p []byte, i int) int {
	for i < len(p) {
		c := p[i]
		i++
		switch c {
		case '"':
			d.state = sSkipString
			return i
		case '{', '[':
			d.skip++
		case '}', ']':
			if d.skip--; d.skip == 0 {
				d.closed()
				return i
			}
		}
	}
	return i
}
