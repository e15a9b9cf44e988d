package wire

import "encoding/binary"

// internTable keeps texts that repeat over records. It is direct-mapped: its
// memory is bounded, and a text that does not come again is soon displaced.
type internTable [1024]string

const maxInterned = 128

// intern returns b as a string, without allocating when it came before.
func (t *internTable) intern(b []byte) string {
	if len(b) == 0 || len(b) > maxInterned {
		return string(b)
	}
	slot := &t[internHash(b)%uint64(len(t))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// internHash mixes the length and the first and last 8 bytes: names differ
// there, and a collision costs an allocation only.
func internHash(b []byte) uint64 {
	const mix = 0x9e3779b97f4a7c15
	h := uint64(len(b))
	if len(b) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(b)) * mix
		h ^= binary.LittleEndian.Uint64(b[len(b)-8:])
	} else {
		for _, c := range b {
			h = h<<8 ^ uint64(c)
		}
	}
	h *= mix
	return h >> 40
}
