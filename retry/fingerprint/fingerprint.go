package fingerprint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Prefix of every fingerprint.
const Prefix = "sha256:"

// Body returns "sha256:" and the hex digest of the body in the canonical form of RFC
// 8785, so that two bodies which differ in spacing, order of members or spelling of
// numbers only are the same. A body that is not I-JSON (RFC 7493: duplicate members,
// invalid UTF-8, integers beyond ±(2^53-1), numbers out of a double's range) counts byte by byte: what
// canonical form would blur must stay apart. An empty body gives "". body is not changed.
func Body(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(Canonical(body))
	var out [len(Prefix) + 2*sha256.Size]byte
	copy(out[:], Prefix)
	hex.Encode(out[len(Prefix):], sum[:])
	return string(out[:])
}

// Canonical returns the bytes that [Body] hashes: the canonical form, or body itself.
func Canonical(body []byte) []byte {
	if !exactNumbers(body) {
		return body
	}
	v := jsontext.Value(bytes.Clone(body))
	if v.Canonicalize() != nil {
		return body
	}
	return v
}

// exactNumbers tells whether every number of a JSON text is one of I-JSON.
func exactNumbers(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			i = stringEnd(b, i+1)
		case c == '-' || c >= '0' && c <= '9':
			n := numberEnd(b, i)
			if n-i > 15 && !exact(b[i:n]) || n-i <= 15 && bytes.ContainsAny(b[i:n], "eE") && !exact(b[i:n]) {
				return false
			}
			i = n - 1
		}
	}
	return true
}

func stringEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return i
}

func numberEnd(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return i
}

const maxExact = 1 << 53

func exact(text []byte) bool {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(v, 0) {
		return false
	}
	return bytes.ContainsAny(text, ".eE") || math.Abs(v) < maxExact
}
