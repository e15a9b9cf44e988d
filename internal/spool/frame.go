package spool

import (
	"encoding/binary"
	"hash/crc32"
)

// A segment file is a header and frames. A frame is the length of its payload
// (4 bytes, little endian), the CRC-32C of length and payload (4 bytes) and the
// payload. The CRC starts from that of the segment's ID: what another file left
// on the disk never looks like a frame of this one. The ID is also the name of
// the file, so frames are found without the header too.
const (
	magic       = "RLSPOOL1"
	headerSize  = len(magic) + 8 + 4 // ID, CRC-32C of what is before
	frameHeader = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeHeader(id uint64) []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	b = binary.LittleEndian.AppendUint64(b, id)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// body is what is behind the header of a segment's bytes, and where it starts:
// everything when there is no such header.
func body(data []byte, id uint64) ([]byte, int) {
	if len(data) >= headerSize && string(data[:headerSize]) == string(encodeHeader(id)) {
		return data[headerSize:], headerSize
	}
	return data, 0
}

// seedOf is where the CRC of every frame of a segment starts.
func seedOf(id uint64) uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint64(nil, id), castagnoli)
}

// sealFrames fills in the CRCs of unsealed frames, one after another in b.
func sealFrames(b []byte, seed uint32) {
	for len(b) > 0 {
		n := frameHeader + int(binary.LittleEndian.Uint32(b))
		binary.LittleEndian.PutUint32(b[4:], frameSum(b[:n], seed))
		b = b[n:]
	}
}

func frameSum(frame []byte, seed uint32) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, frame[:4]), castagnoli, frame[frameHeader:])
}

// frameAt returns the payload of the valid frame at the start of b.
func frameAt(b []byte, seed uint32) ([]byte, bool) {
	if len(b) < frameHeader {
		return nil, false
	}
	size := binary.LittleEndian.Uint32(b)
	if size == 0 || size > MaxRecord || int(size) > len(b)-frameHeader {
		return nil, false
	}
	frame := b[:frameHeader+int(size)]
	if frameSum(frame, seed) != binary.LittleEndian.Uint32(frame[4:]) {
		return nil, false
	}
	return frame[frameHeader:], true
}

// scan calls record with the payload of every valid frame of a segment's bytes
// behind its header, and bad with every run of bytes that is none, in order. It
// stops at an error of record.
func scan(b []byte, seed uint32, record func(payload []byte) error, bad func(run []byte)) error {
	for i, from := 0, 0; ; {
		payload, ok := frameAt(b[i:], seed)
		if !ok && i < len(b) {
			i++
			continue
		}
		if i > from {
			bad(b[from:i])
		}
		if i == len(b) {
			return nil
		}
		if err := record(payload); err != nil {
			return err
		}
		i += frameHeader + len(payload)
		from = i
	}
}
