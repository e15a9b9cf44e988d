package classify

// identity hashes the decoded body of a 500 without what changes from one answer to
// the next: values of id and time members, and every word with a digit in it (ids,
// counters, dates). 0 means that the body says nothing.
func (a *analysis) identity() uint64 {
	if a.shape == shapeEmpty || a.shape == shapeHTML {
		return 0
	}
	h := hash64(fnv64)
	b := a.body
	for i := 0; i < len(b); {
		if !inIdentity(b[i]) {
			i++
			continue
		}
		start, hasDigit := i, false
		for i < len(b) && (inIdentity(b[i]) || joins(b, i)) {
			hasDigit = hasDigit || b[i] >= '0' && b[i] <= '9'
			i++
		}
		if hasDigit {
			continue
		}
		h.add(b[start:i])
		if changing(b[start:i]) {
			i = pastValue(b, i)
		}
	}
	h.add([]byte(a.errorType()))
	if h == 0 {
		return 1
	}
	return uint64(h)
}

func inIdentity(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}

// joins: '-', '.', ':' and '+' hold an id or a time together when a letter or digit follows.
func joins(b []byte, i int) bool {
	switch b[i] {
	case '-', '.', ':', '+':
		return i+1 < len(b) && inIdentity(b[i+1])
	}
	return false
}

// changingNames are members whose value is another one every time.
var changingNames = newWordMap(map[string]bool{
	"requestid": true, "id": true, "traceid": true, "timestamp": true, "time": true, "created": true, "date": true, "xrequestid": true,
	"correlationid": true, "requestuuid": true, "uuid": true, "ref": true, "eventid": true, "rayid": true, "spanid": true,
	"createdat": true, "errorid": true, "reqid": true, "logid": true, "activityid": true, "invocationid": true,
})

func changing(w []byte) bool {
	var buf [24]byte
	ok, _ := changingNames.get(squash(buf[:], w))
	return ok
}

// pastValue passes over `": "value"` after the name of a member. In prose there is
// no colon right after the word, and nothing is passed over.
func pastValue(b []byte, i int) int {
	j := i
	for j < len(b) && (b[j] == '"' || b[j] == '\'' || b[j] == '\\' || b[j] == ' ') {
		j++
	}
	if j >= len(b) || b[j] != ':' {
		return i
	}
	for j++; j < len(b) && b[j] == ' '; j++ {
	}
	for j < len(b) && (b[j] == '"' || b[j] == '\\' || b[j] == '\'') {
		j++
	}
	for j < len(b) && b[j] != '"' && b[j] != '\\' && b[j] != ',' && b[j] != '}' && b[j] != '\'' && b[j] != '\n' {
		j++
	}
	return j
}

type hash64 uint64

const (
	fnv64      = 14695981039346656037
	fnv64Prime = 1099511628211
)

// add hashes a word in lower case and its end.
func (h *hash64) add(w []byte) {
	x := uint64(*h)
	for _, c := range w {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		x = (x ^ uint64(c)) * fnv64Prime
	}
	*h = hash64((x ^ ' ') * fnv64Prime)
}
