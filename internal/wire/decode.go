package wire

import (
	"bytes"

	"github.com/retrylens/retrylens"
)

// Decoder decodes records. It keeps a bounded table of texts that repeat over
// records, so one Decoder a goroutine should live long. The zero Decoder is
// ready; it is not safe for concurrent use.
type Decoder struct {
	scan    scanner
	names   internTable
	seen    uint64 // bit i: record[i] was met
	notNull uint64 // bit i: with a value

	// after[i] is the field that followed field i last time, after[maxFields]
	// the first one. An emitter keeps its order, so most keys are one comparison.
	after [maxFields + 1]uint8
	last  uint8
}

// Decode reads the one JSON object in line into a, which it overwrites. Nothing
// of a refers to line afterwards. What was not reported, or is null, is left
// at its zero value: the tenant too. Call Normalize and Validate next.
//
// The error is a *[retrylens.FieldError] that names the JSON key, the unknown
// one included; Field is "" when the line is no JSON object. a then holds what
// was read until there.
func (d *Decoder) Decode(line []byte, a *retrylens.Attempt) error {
	if field, reason := d.decode(line, a); reason != "" {
		return &retrylens.FieldError{Field: field, Reason: reason}
	}
	return nil
}

func (d *Decoder) decode(line []byte, a *retrylens.Attempt) (field, reason string) {
	*a = retrylens.Attempt{}
	d.seen, d.notNull, d.last = 0, 0, maxFields
	d.scan.reset(line)
	if field, reason = d.object(func() (string, string) { return d.member(a) }); reason != "" {
		return field, reason
	}
	if d.scan.peek(); d.scan.i < len(line) {
		return "", "more data after the object"
	}
	if d.notNull&attemptBit == 0 {
		return "attempt", "missing"
	}
	return "", ""
}

// object reads an object, each key and value through member.
func (d *Decoder) object(member func() (field, reason string)) (field, reason string) {
	s := &d.scan
	if c := s.peek(); c != '{' {
		return "", notAnObject(s)
	}
	s.i++
	if s.peek() == '}' {
		s.i++
		return "", ""
	}
	for {
		if field, reason := member(); reason != "" {
			return field, reason
		}
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return "", ""
		default:
			return "", s.unexpected(errComma)
		}
	}
}

// member reads one key of the record and its value.
func (d *Decoder) member(a *retrylens.Attempt) (field, reason string) {
	i, unknown, reason := d.key()
	if reason != "" {
		return unknown, reason
	}
	f := &record[i]
	if d.seen&(1<<i) != 0 {
		return f.name, duplicateKey
	}
	d.seen |= 1 << i
	v, reason := d.scan.value()
	if reason != "" || v.kind == 'n' {
		return f.name, reason
	}
	d.notNull |= 1 << i
	return f.name, f.read(d, a, v)
}

// key reads a key and its colon and returns which field it is.
func (d *Decoder) key() (i uint8, unknown, reason string) {
	s := &d.scan
	s.peek()
	guess := d.after[d.last]
	if want := quoted[guess]; len(s.b)-s.i >= len(want) && string(s.b[s.i:s.i+len(want)]) == want {
		s.i += len(want)
		d.last = guess
		return guess, "", ""
	}
	name, reason := s.key()
	if reason != "" {
		return 0, "", reason
	}
	i, ok := index[string(name)]
	if !ok {
		return 0, clip(name), unknownKey
	}
	d.after[d.last], d.last = i, i
	return i, "", ""
}

const (
	maxFields    = 64 // the bits of Decoder.seen
	unknownKey   = "unknown key"
	duplicateKey = "duplicate key"
	maxKeyShown  = 64
)

var index = func() map[string]uint8 {
	m := make(map[string]uint8, len(record))
	for i := range record {
		m[record[i].name] = uint8(i)
	}
	return m
}()

// quoted are the keys as they are usually written, with their colon.
var quoted = func() (keys [len(record)]string) {
	for i := range record {
		keys[i] = `"` + record[i].name + `":`
	}
	return keys
}()

// attemptBit is the one required field whose zero value is a valid one.
var attemptBit = uint64(1) << index["attempt"]

// clip shortens a key that is not ours for an error.
func clip(key []byte) string {
	return string(bytes.ToValidUTF8(key[:min(len(key), maxKeyShown)], nil))
}

func notAnObject(s *scanner) string {
	if s.i >= len(s.b) {
		return "empty"
	}
	v, reason := s.value()
	if reason != "" {
		return "not a JSON object"
	}
	return "not a JSON object: got " + v.kindName()
}

// readAttributes reads the object of free-form texts.
func (d *Decoder) readAttributes(a *attempt, v value) string {
	if v.kind != '{' {
		return v.wrongType("an object")
	}
	_, reason := d.object(func() (string, string) {
		k, reason := d.scan.key()
		if reason != "" {
			return "", reason
		}
		key := d.names.intern(k)
		if _, dup := a.Attributes[key]; dup {
			return "", duplicateKey
		}
		if len(a.Attributes) == retrylens.MaxAttributes {
			return "", "more than 16 entries"
		}
		v, reason := d.scan.value()
		if reason != "" {
			return "", reason
		}
		if v.kind != '"' {
			return "", v.wrongType("texts")
		}
		if a.Attributes == nil {
			a.Attributes = make(map[string]string)
		}
		a.Attributes[key] = d.names.intern(v.text)
		return "", ""
	})
	return reason
}
