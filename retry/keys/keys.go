package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// New returns a UUIDv7 (RFC 9562): 48 bits of the present millisecond, 74 random bits.
func New() string { return newAt(time.Now()) }

func newAt(now time.Time) string {
	var u [16]byte
	_, _ = rand.Read(u[6:]) // never fails, crypto/rand says
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(u[:], uint16(ms>>32))
	binary.BigEndian.PutUint32(u[2:], uint32(ms))
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	var out [36]byte
	hex.Encode(out[:], u[:4])
	out[8] = '-'
	hex.Encode(out[9:], u[4:6])
	out[13] = '-'
	hex.Encode(out[14:], u[6:8])
	out[18] = '-'
	hex.Encode(out[19:], u[8:10])
	out[23] = '-'
	hex.Encode(out[24:], u[10:])
	return string(out[:])
}

// Derive returns the hex SHA-256 over the parts, each behind its length in eight bytes
// (big endian), so that no two lists of parts give the same bytes. The same parts give
// the same key in every process and every version.
func Derive(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Step returns the key of the step with that index of an agent's run: Derive("step",
// runID, index in decimal).
func Step(runID string, index int) string {
	return Derive("step", runID, strconv.Itoa(index))
}
