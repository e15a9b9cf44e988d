package wire

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the JSON tokens of one line, strictly by RFC 8259 and RFC 7493:
// valid UTF-8 only, no lone surrogates. It never looks inside an array or an
// object by itself, so nesting costs nothing. docs/adr/0002 tells why it is not
// a library's.
type scanner struct {
	b       []byte
	i       int
	scratch []byte // holds the last string that had escapes
}

// value is one scalar, or the start of an array or object.
type value struct {
	kind byte   // '"', '0' (number), 't', 'f', 'n', '[', '{'; 0 = none
	text []byte // a string without its quotes and escapes, a number as written; valid until the next read
}

// Syntax errors. Each is one reason, whatever the line holds.
const (
	errEnd       = "invalid JSON: unexpected end of the line"
	errValue     = "invalid JSON: not a value"
	errNumber    = "invalid JSON: malformed number"
	errEscape    = "invalid JSON: malformed escape in a string"
	errSurrogate = "invalid JSON: lone surrogate in a string"
	errControl   = "invalid JSON: control character in a string"
	errUTF8      = "invalid JSON: not UTF-8"
	errKey       = "invalid JSON: key expected"
	errColon     = "invalid JSON: colon expected after the key"
	errComma     = "invalid JSON: comma or closing brace expected"
)

func (s *scanner) reset(b []byte) { s.b, s.i = b, 0 }

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c > ' ' || c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// value reads a scalar; of an array or object it reads nothing.
func (s *scanner) value() (value, string) {
	switch c := s.peek(); c {
	case '"':
		text, err := s.string()
		return value{'"', text}, err
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		text, err := s.number()
		return value{'0', text}, err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	case '[', '{':
		return value{kind: c}, ""
	}
	if s.i >= len(s.b) {
		return value{}, errEnd
	}
	return value{}, errValue
}

func (s *scanner) literal(want string) (value, string) {
	rest := s.b[s.i:]
	if len(rest) >= len(want) && string(rest[:len(want)]) == want {
		s.i += len(want)
		return value{kind: want[0]}, ""
	}
	if len(rest) < len(want) && string(rest) == want[:len(rest)] {
		return value{}, errEnd
	}
	return value{}, errValue
}

func (s *scanner) number() ([]byte, string) {
	start := s.i
	if s.b[s.i] == '-' {
		s.i++
	}
	zero := s.i < len(s.b) && s.b[s.i] == '0'
	n := s.digits()
	if n == 0 || zero && n > 1 {
		return nil, errNumber
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return nil, errNumber
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return nil, errNumber
		}
	}
	return s.b[start:s.i], ""
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i - start
}

// string reads the string that starts at the quote under i.
func (s *scanner) string() ([]byte, string) {
	b, start := s.b, s.i+1
	all := byte(0) // the bits of every byte: is there one beyond ASCII?
	for i := skipPlain(b, start); i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			s.i = i + 1
			if all >= utf8.RuneSelf && !utf8.Valid(b[start:i]) {
				return nil, errUTF8
			}
			return b[start:i], ""
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return nil, errControl
		default:
			all |= c
		}
	}
	return nil, errEnd
}

// skipPlain skips, 8 bytes at a time, the bytes from i that are ASCII and
// neither quote nor backslash nor control character. It may stop early only
// within 8 bytes of the end.
func skipPlain(b []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		// Of the bytes that are marked, the lowest one is marked rightly: a
		// borrow only travels upwards.
		if marked := (x | (x - ' '*ones) | (quote - ones) | (slash - ones)) & high; marked != 0 {
			return i + bits.TrailingZeros64(marked)/8
		}
	}
	return i
}

// escaped reads on from the first escape of a string, at i, into scratch.
func (s *scanner) escaped(start, i int) ([]byte, string) {
	s.scratch = append(s.scratch[:0], s.b[start:i]...)
	for s.i = i; s.i < len(s.b); {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			if !utf8.Valid(s.scratch) {
				return nil, errUTF8
			}
			return s.scratch, ""
		case c == '\\':
			if err := s.escape(); err != "" {
				return nil, err
			}
		case c < ' ':
			return nil, errControl
		default:
			s.scratch = append(s.scratch, c)
			s.i++
		}
	}
	return nil, errEnd
}

// escape appends what the escape at i stands for.
func (s *scanner) escape() string {
	if s.i+1 >= len(s.b) {
		return errEnd
	}
	c := s.b[s.i+1]
	if c == 'u' {
		return s.unicodeEscape()
	}
	plain, ok := simpleEscape(c)
	if !ok {
		return errEscape
	}
	s.scratch = append(s.scratch, plain)
	s.i += 2
	return ""
}

func simpleEscape(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// unicodeEscape appends the rune of the \uXXXX, or of the pair of them, at i.
func (s *scanner) unicodeEscape() string {
	r, err := s.hex4(s.i)
	if err != "" {
		return err
	}
	s.i += 6
	if utf16.IsSurrogate(r) {
		if s.i < len(s.b) && s.b[s.i] != '\\' {
			return errSurrogate
		}
		low, err := s.hex4(s.i)
		if err == errEnd {
			return errEnd
		}
		if r = utf16.DecodeRune(r, low); err != "" || r == utf8.RuneError {
			return errSurrogate
		}
		s.i += 6
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return ""
}

func (s *scanner) hex4(i int) (rune, string) {
	if i+6 > len(s.b) {
		return 0, errEnd
	}
	if s.b[i] != '\\' || s.b[i+1] != 'u' {
		return 0, errEscape
	}
	n, err := strconv.ParseUint(string(s.b[i+2:i+6]), 16, 16)
	if err != nil || s.b[i+2] == '+' {
		return 0, errEscape
	}
	return rune(n), ""
}

// key reads a key and its colon.
func (s *scanner) key() ([]byte, string) {
	if s.peek() != '"' {
		return nil, s.unexpected(errKey)
	}
	key, reason := s.string()
	if reason != "" {
		return nil, reason
	}
	if s.peek() != ':' {
		return nil, s.unexpected(errColon)
	}
	s.i++
	return key, ""
}

func (s *scanner) unexpected(reason string) string {
	if s.i >= len(s.b) {
		return errEnd
	}
	return reason
}
