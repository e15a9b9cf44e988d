package classify

import (
	"encoding/binary"
	"hash/crc32"
)

// A frame of application/vnd.amazon.eventstream: total length, header length, CRC
// of these two, headers, payload, CRC of everything before it. All big endian.
const (
	preludeLen = 12
	frameMin   = preludeLen + 4
	frameMax   = 24 << 20
)

// isFrame tells an event stream by the checksum of its first prelude.
func isFrame(b []byte) bool {
	if len(b) < preludeLen {
		return false
	}
	total := binary.BigEndian.Uint32(b)
	return total >= frameMin && total <= frameMax && crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:])
}

// frames reads the frames of a Bedrock stream. A frame with a bad checksum ends the
// reading; one that is cut is read as far as it goes.
func (a *analysis) frames(b []byte) {
	for isFrame(b) {
		total := int(binary.BigEndian.Uint32(b))
		heads := int(binary.BigEndian.Uint32(b[4:]))
		whole := total <= len(b)
		end := min(total, len(b))
		if whole {
			end -= 4
			if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
				return
			}
		}
		if heads < 0 || heads > end-preludeLen {
			return
		}
		a.frame(b[preludeLen:preludeLen+heads], b[preludeLen+heads:end])
		if !whole {
			return
		}
		b = b[total:]
	}
}

type frameHeaders struct{ kind, event, exception, code, message []byte }

func (a *analysis) frame(heads, payload []byte) {
	h := readHeaders(heads)
	switch string(h.kind) {
	case "exception":
		a.inBand = true
		a.codeText(h.exception)
		a.document(payload, true)
	case "error":
		a.inBand = true
		a.codeText(h.code)
		a.message(h.message)
		if len(payload) > 0 && payload[0] == '{' {
			a.document(payload, true)
		}
	default:
		if string(h.event) == "messageStop" || string(h.event) == "metadata" {
			a.terminal = true
		}
		a.document(payload, false)
	}
}

// valueSizes are the widths of the header types with a fixed one: true, false, byte,
// short, int, long, -, -, timestamp, UUID.
var valueSizes = [10]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

// readHeaders picks the string headers that tell events from errors.
func readHeaders(b []byte) (h frameHeaders) {
	for len(b) > 2 {
		n := int(b[0])
		if len(b) < n+2 {
			return h
		}
		name, kind := b[1:1+n], b[1+n]
		b = b[2+n:]
		if int(kind) >= len(valueSizes) {
			return h
		}
		size := valueSizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return h
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return h
		}
		h.keep(name, b[:size])
		b = b[size:]
	}
	return h
}

func (h *frameHeaders) keep(name, value []byte) {
	switch string(name) {
	case ":message-type":
		h.kind = value
	case ":event-type":
		h.event = value
	case ":exception-type":
		h.exception = value
	case ":error-code":
		h.code = value
	case ":error-message":
		h.message = value
	}
}
