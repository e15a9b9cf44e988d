package classify

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON as providers really send it: cut anywhere, with text after
// the document, Python's quotes and literals, unknown nesting. It never fails; at
// the end of the bytes everything that is open is closed.
type scanner struct {
	b     []byte
	i     int
	arena *[]byte // unescaped strings live here until the analysis is released
	quote bool    // single quotes count as quotes: Python's repr
}

const maxDepth = 48

// kind of a JSON value.
type kind uint8

const (
	kindString kind = iota
	kindNumber
	kindTrue
	kindFalse
	kindNull
	kindObject
	kindArray
	kindNone // nothing that looks like a value
)

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// peek tells the kind of the value ahead without reading it.
func (s *scanner) peek() kind {
	s.space()
	if s.i >= len(s.b) {
		return kindNone
	}
	switch c := s.b[s.i]; {
	case c == '{':
		return kindObject
	case c == '[':
		return kindArray
	case c == '"' || c == '\'' && s.quote:
		return kindString
	case c == '-' || c >= '0' && c <= '9':
		return kindNumber
	case c == 't' || c == 'T':
		return kindTrue
	case c == 'f' || c == 'F':
		return kindFalse
	case c == 'n' || c == 'N':
		return kindNull
	}
	return kindNone
}

// str reads a string, s.i at its opening quote. The result is valid until the
// arena is released.
func (s *scanner) str() []byte {
	q := s.b[s.i]
	s.i++
	start := s.i
	rest := s.b[start:]
	end := bytes.IndexByte(rest, q)
	if end < 0 {
		end = len(rest)
	}
	if back := bytes.IndexByte(rest[:end], '\\'); back >= 0 {
		s.i = start + back
		return s.escaped(start, q)
	}
	s.i = min(start+end+1, len(s.b))
	return rest[:end]
}

// escaped goes on with a string that has a backslash at s.i.
func (s *scanner) escaped(start int, q byte) []byte {
	at := len(*s.arena)
	out := append(*s.arena, s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		if c == q {
			break
		}
		if c != '\\' {
			out = append(out, c)
			continue
		}
		out = s.escape(out)
	}
	*s.arena = out
	return out[at:len(out):len(out)]
}

func (s *scanner) escape(out []byte) []byte {
	if s.i >= len(s.b) {
		return out
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case 'n':
		return append(out, '\n')
	case 't':
		return append(out, '\t')
	case 'r':
		return append(out, '\r')
	case 'b', 'f':
		return append(out, ' ')
	case 'u':
		return utf8.AppendRune(out, s.rune())
	}
	return append(out, c)
}

func (s *scanner) rune() rune {
	r := s.hex4()
	if utf16.IsSurrogate(r) && s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
		back := s.i
		s.i += 2
		if full := utf16.DecodeRune(r, s.hex4()); full != utf8.RuneError {
			return full
		}
		s.i = back
	}
	return r
}

func (s *scanner) hex4() rune {
	var r rune
	for n := 0; n < 4 && s.i < len(s.b); n++ {
		c := s.b[s.i]
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError
		}
		s.i++
	}
	return r
}

// bare reads a number or a literal: everything up to a delimiter.
func (s *scanner) bare() []byte {
	start := s.i
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return s.b[start:s.i]
		}
		s.i++
	}
	return s.b[start:s.i]
}

// next moves to the next member of an object or array that closes with end and
// tells whether there is one.
func (s *scanner) next(end byte) bool {
	b, i := s.b, s.i
	for i < len(b) && (b[i] <= ' ' || b[i] == ',') {
		i++
	}
	s.i = i
	switch {
	case i == len(b):
		return false
	case b[i] == end:
		s.i++
		return false
	}
	return b[i] != '}' && b[i] != ']' // a mismatched one is left to the parent
}

// key reads a member's name and the colon; a name that is none is skipped.
func (s *scanner) key() []byte {
	var k []byte
	if c := s.b[s.i]; c == '"' || c == '\'' && s.quote {
		k = s.str()
	} else {
		at := s.i
		k = s.bare()
		if s.i == at {
			s.i++
		}
	}
	s.space()
	if s.i < len(s.b) && s.b[s.i] == ':' {
		s.i++
	}
	return k
}

// skip passes over the value ahead.
func (s *scanner) skip() {
	depth := 0
	for {
		s.space()
		if s.i >= len(s.b) {
			return
		}
		switch c := s.b[s.i]; {
		case c == '{' || c == '[':
			depth++
			s.i++
		case c == '}' || c == ']':
			if depth == 0 {
				return
			}
			depth--
			s.i++
		case c == ',' || c == ':':
			if depth == 0 {
				return
			}
			s.i++
			continue
		case c == '"' || c == '\'' && s.quote:
			s.pass(c)
		default:
			at := s.i
			s.bare()
			if s.i == at {
				s.i++
			}
		}
		if depth == 0 {
			return
		}
	}
}

// pass passes over a string without unescaping it.
func (s *scanner) pass(q byte) {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case q:
			s.i++
			return
		}
	}
	s.i = min(s.i, len(s.b))
}
