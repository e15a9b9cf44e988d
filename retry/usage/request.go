package usage

import "bytes"

// Request is what the body of a request says of itself at its top.
type Request struct {
	Model  []byte // part of the body, at most 128 bytes; as it stands there
	Stream bool
}

// ReadRequest reads the top-level members model and stream of a JSON object; what is none
// says nothing. Of members that come twice the last one counts.
func ReadRequest(body []byte) (r Request) {
	b := bytes.TrimLeft(body, " \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return r
	}
	depth, key, isKey := 0, []byte(nil), false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; c {
		case '{', '[':
			depth++
			isKey = depth == 1
		case '}', ']':
			if depth--; depth == 0 {
				return r
			}
		case ',':
			isKey = depth == 1
		case '"':
			end := textEnd(b, i+1)
			text := b[i+1 : min(end, len(b))]
			switch {
			case isKey:
				key, isKey = text, false
			case depth == 1 && string(key) == "model":
				r.Model = text[:min(len(text), maxToken)]
			}
			i = end
		case 't', 'f':
			if depth == 1 && string(key) == "stream" {
				r.Stream = c == 't'
				key = nil
			}
		}
	}
	return r
}

// textEnd is the index of the quote that closes a string which begins at i.
func textEnd(b []byte, i int) int {
	for i < len(b) {
		n := stringEnd(b[i:])
		if i += n; i < len(b) && b[i] == '\\' {
			i += 2
			continue
		}
		return i
	}
	return len(b)
}
