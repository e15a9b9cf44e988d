package usage

import (
	"encoding/binary"
	"hash/crc32"
)

// frames is the state of reading application/vnd.amazon.eventstream: total length,
// header length and the checksum of these two, headers, payload, checksum of all. All
// big endian.
type frames struct {
	prelude  [12]byte
	nPrelude int
	headers  [512]byte // longer ones are passed over
	nHeaders int       // bytes of headers read
	heads    int
	payload  int // bytes of payload left
	tail     [4]byte
	nTail    int
	sum      uint32
}

const maxFrame = 24 << 20

func (r *Reader) frames(p []byte) {
	f := &r.frame
	for len(p) > 0 && !r.seen.bad {
		switch {
		case f.nPrelude < len(f.prelude):
			n := copy(f.prelude[f.nPrelude:], p)
			f.nPrelude += n
			r.checked(p[:n])
			p = p[n:]
			if f.nPrelude == len(f.prelude) {
				r.preludeEnds()
			}
		case f.nHeaders < f.heads:
			n := min(len(p), f.heads-f.nHeaders)
			if f.nHeaders < len(f.headers) {
				copy(f.headers[f.nHeaders:], p[:n])
			}
			f.nHeaders += n
			r.checked(p[:n])
			p = p[n:]
		case f.payload > 0:
			n := min(len(p), f.payload)
			r.payload(p[:n], n == f.payload)
			f.payload -= n
			r.checked(p[:n])
			p = p[n:]
		default:
			n := copy(f.tail[f.nTail:], p)
			f.nTail += n
			r.record(p[:n])
			p = p[n:]
			if f.nTail == len(f.tail) {
				r.frameEnds()
			}
		}
	}
}

// payload reads p, the next part of the payload, or its last.
func (r *Reader) payload(p []byte, last bool) {
	f := &r.frame
	whole := last && r.doc.state == sStart && f.heads <= len(r.tmplHeads)
	if whole && r.nTmplHeads == f.heads && string(r.tmplHeads[:f.heads]) == string(f.headers[:f.heads]) && r.match(p) == len(p) {
		return
	}
	r.gathered = leaves{}
	if whole {
		r.gathered.base = p
	}
	r.doc.write(p)
	if whole && r.doc.state == sDone && r.now.plain() {
		r.learn(len(p))
		r.nTmplHeads = copy(r.tmplHeads[:], f.headers[:f.heads])
	}
	r.gathered.base = nil
}

// checked adds p to the checksum and to what is captured.
func (r *Reader) checked(p []byte) {
	r.frame.sum = crc32.Update(r.frame.sum, crc32.IEEETable, p)
	r.record(p)
}

func (r *Reader) preludeEnds() {
	f := &r.frame
	total := binary.BigEndian.Uint32(f.prelude[:])
	heads := binary.BigEndian.Uint32(f.prelude[4:])
	if total < 16 || total > maxFrame || heads > total-16 ||
		crc32.ChecksumIEEE(f.prelude[:8]) != binary.BigEndian.Uint32(f.prelude[8:]) {
		r.seen.bad = true
		return
	}
	f.heads = int(heads)
	f.payload = int(total - heads - 16)
	r.doc.reset()
}

func (r *Reader) frameEnds() {
	f := &r.frame
	if binary.BigEndian.Uint32(f.tail[:]) != f.sum {
		r.seen.bad = true
		return
	}
	if f.heads <= len(f.headers) {
		r.frameNamed(f.headers[:f.heads])
	}
	r.eventEnds()
	r.outdated()
	*f = frames{}
}

// frameNamed reads what the headers say of the frame.
func (r *Reader) frameNamed(b []byte) {
	for len(b) > 0 {
		name, value, rest, ok := frameHeader(b)
		if !ok {
			return
		}
		b = rest
		switch string(name) {
		case ":message-type":
			if string(value) == "exception" || string(value) == "error" {
				r.failed()
			}
		case ":event-type":
			if string(value) == "messageStop" {
				r.terminal()
			}
		}
	}
}

// frameSizes are the widths of the header types with a fixed one: true, false, byte,
// short, int, long, -, -, timestamp, UUID.
var frameSizes = [10]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

func frameHeader(b []byte) (name, value, rest []byte, ok bool) {
	n := int(b[0])
	if len(b) < n+2 || int(b[1+n]) >= len(frameSizes) {
		return nil, nil, nil, false
	}
	name, size := b[1:1+n], frameSizes[b[1+n]]
	b = b[2+n:]
	if size < 0 {
		if len(b) < 2 {
			return nil, nil, nil, false
		}
		size = int(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) < size {
		return nil, nil, nil, false
	}
	return name, b[:size], b[size:], true
}

// quads decodes base64 that comes in pieces.
type quads struct {
	four [4]byte
	n    int
}

// encoded reads base64 of a nested document (InvokeModelWithResponseStream).
func (r *Reader) encoded(p []byte) {
	q := &r.base64
	for _, c := range p {
		v := base64Value(c)
		if v > 63 {
			continue // padding, or a backslash before a slash
		}
		q.four[q.n] = v
		if q.n++; q.n == 4 {
			out := [3]byte{q.four[0]<<2 | q.four[1]>>4, q.four[1]<<4 | q.four[2]>>2, q.four[2]<<6 | q.four[3]}
			r.nested.write(out[:])
			q.n = 0
		}
	}
}

func (r *Reader) nestedEnds() {
	q := &r.base64
	switch q.n {
	case 2:
		r.nested.write([]byte{q.four[0]<<2 | q.four[1]>>4})
	case 3:
		r.nested.write([]byte{q.four[0]<<2 | q.four[1]>>4, q.four[1]<<4 | q.four[2]>>2})
	}
	q.n = 0
	r.nested.reset()
}

func base64Value(c byte) byte {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A'
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26
	case c >= '0' && c <= '9':
		return c - '0' + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return 255
}
