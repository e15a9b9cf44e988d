package spool

import (
	"encoding/binary"

	"github.com/retrylens/retrylens"
)

// FrameHeader is how many bytes a frame takes beside its payload.
const (
	FrameHeader = frameHeader
	HeaderSize  = headerSize
)

// Texts is how many texts a record has.
func Texts(a *retrylens.Attempt) int { return len(texts(a)) }

// Path is where a segment is.
func (s *Spool) Path(g Segment) string { return s.path(g.ID) }

// ScanBytes reads the bytes of a segment and returns how many bytes its records
// and its bad runs take.
func ScanBytes(b []byte, id uint64) (records [][]byte, good, bad int) {
	_ = scan(b, seedOf(id), func(p []byte) error {
		records = append(records, p)
		good += frameHeader + len(p)
		return nil
	}, func(run []byte) { bad += len(run) })
	return records, good, bad
}

// Frames are the bytes that records take in a segment.
func Frames(id uint64, attempts ...retrylens.Attempt) []byte {
	var b Batch
	for i := range attempts {
		b.Add(&attempts[i])
	}
	var out []byte
	for _, c := range b.chunks {
		sealFrames(*c, seedOf(id))
		out = append(out, *c...)
	}
	return out
}

// Frame is one payload in its frame.
func Frame(id uint64, payload []byte) []byte {
	f := append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), 0, 0, 0, 0)
	f = append(f, payload...)
	sealFrames(f, seedOf(id))
	return f
}
