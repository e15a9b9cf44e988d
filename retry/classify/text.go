package classify

import (
	"bytes"
	"encoding/binary"
	"time"
	"unicode/utf8"
)

// reader goes over one message word by word and gathers what it says.
type reader struct {
	a     *analysis
	b     []byte
	i     int
	n     int // running number of the word
	ideas concept
	prev  pairing
	// anchor is the number of the last word that a wait may follow ("again").
	anchor int
}

// pairing is what a word makes of the word after it.
type pairing uint8

const (
	pairNone   pairing = iota
	pairPer            // per day
	pairBad            // invalid request, unknown model
	pairStatus         // status 429
	pairOut            // out of credits
)

// Of a long text without a document in it only the head and the tail are read: a
// dump of a request or a trace of a stack says nothing.
const (
	proseHead = 3 << 10
	proseTail = 1 << 10
)

// message reads one text of the error. It may name codes, carry waits, and hold a
// whole error of an upstream as JSON or as Python's repr of it.
func (a *analysis) message(b []byte) {
	if len(b) == 0 {
		return
	}
	r := reader{a: a, b: b, anchor: -9}
	if len(b) > proseHead+proseTail && bytes.IndexByte(b, '{') < 0 {
		r.b = b[:proseHead]
		r.run()
		r.b, r.i = b[len(b)-proseTail:], 0
	}
	r.run()
	t := tell(r.ideas)
	if r.ideas&cDay != 0 {
		a.day = true
	}
	if r.ideas&cMinute != 0 {
		a.minute = true
	}
	a.server = a.server || r.ideas&cServer != 0
	a.model = a.model || r.ideas&cModel != 0 && r.ideas&(cSuspended|cBilling|cSpend|cCredit) == 0
	a.failing = a.failing || r.ideas&cFail != 0
	if r.ideas&(cLock|cRetry) != 0 {
		a.lock = true
	}
	if !isASCII(b) {
		for i := range foreign {
			if bytes.Contains(b, []byte(foreign[i].text)) {
				t |= foreign[i].t
			}
		}
	}
	a.told |= t
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (r *reader) run() {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; starts[c] {
		case startWord:
			r.word()
		case startNumber:
			r.number()
		case startNested:
			r.nested()
		case startCompare:
			r.compare(c)
		case startSlash:
			if r.i > 0 && (letter(r.b[r.i-1]) || r.b[r.i-1] == ' ') {
				r.prev = pairPer // tokens/day
			}
			r.i++
		default:
			r.i++
		}
	}
}

// compare sees "208310 tokens > 200000" and "must be <= 8193".
func (r *reader) compare(c byte) {
	r.i++
	if r.i < 2 || r.i >= len(r.b) || r.b[r.i-2] != ' ' || r.b[r.i] != ' ' && r.b[r.i] != '=' {
		return
	}
	if c == '>' {
		r.ideas |= cExceed
		return
	}
	r.ideas |= cMax
}

type start uint8

const (
	startNothing start = iota
	startWord
	startNumber
	startNested
	startSlash
	startCompare
)

// starts tells what begins with a byte.
var starts = func() (t [256]start) {
	for c := range len(t) {
		switch b := byte(c); {
		case letter(b):
			t[c] = startWord
		case b >= '0' && b <= '9':
			t[c] = startNumber
		}
	}
	t['{'], t['['], t['/'], t['<'], t['>'] = startNested, startNested, startSlash, startCompare, startCompare
	return t
}()

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func inWord(c byte) bool { return lower[c] != 0 }

// lower is the lower case of the bytes of a word, 0 for all others.
var lower = func() (t [256]byte) {
	for c := range len(t) {
		switch b := byte(c); {
		case letter(b):
			t[c] = b | 0x20
		case b >= '0' && b <= '9', b == '_', b == '\'':
			t[c] = b
		}
	}
	return t
}()

// word reads one word: its ideas, or the code that it is.
func (r *reader) word() {
	b := r.b[r.i:]
	h, i, bits := hashByte(hashSeed, b[0]|0x20), 1, byte(0xff)
	for i < len(b) {
		c := lower[b[i]]
		if c == 0 {
			break
		}
		bits &= b[i]
		h = hashByte(h, c)
		i++
	}
	raw := b[:i]
	r.i += i
	if i < len(b) && b[i] == ':' && r.url(raw) {
		return
	}
	r.n++
	e := lexicon.folded(raw, hashEnd(h))
	switch {
	case e == nil && bits&0x20 == 0: // an upper-case letter or '_' after the first
		r.stranger(raw)
	case e == nil:
		r.prev = pairNone
	default:
		r.ideas |= e.ideas
		r.pair(raw, e)
		if e.wait != 0 {
			r.wait(e.wait)
		}
	}
}

// stranger reads a word that is not in the lexicon: a code in passing, or a name made
// of words.
func (r *reader) stranger(raw []byte) {
	r.prev = pairNone
	if !r.code(raw) && bytes.IndexByte(raw, '_') >= 0 {
		r.ideas |= pieces(raw)
	}
}

// url passes over an address: the words in one say nothing.
func (r *reader) url(scheme []byte) bool {
	if !bytes.HasPrefix(r.b[r.i:], []byte("://")) || len(scheme) > 6 {
		return false
	}
	for r.i < len(r.b) && r.b[r.i] > ' ' && r.b[r.i] != '"' && r.b[r.i] != ')' {
		r.i++
	}
	return true
}

// code looks a word of the text up as a code: RateLimitError, RESOURCE_EXHAUSTED.
func (r *reader) code(raw []byte) bool {
	rule, ok := r.a.lookup(raw)
	if !ok {
		return false
	}
	r.a.spoke(rule, raw)
	return true
}

// pieces are the ideas of the parts of a name such as openrouter_in_flight_budget;
// names of token parameters are not about tokens.
func pieces(w []byte) (c concept) {
	if len(w) > 4 && w[3] == '_' && (w[1]|0x20 == 'a' || w[1]|0x20 == 'i') && w[0]|0x20 == 'm' {
		return 0
	}
	for part := range bytes.SplitSeq(w, []byte("_")) {
		if e := lexicon.find(part); e != nil {
			c |= e.ideas
		}
	}
	return c
}

var pairs = map[string]pairing{
	"per": pairPer, "a": pairPer, "each": pairPer, "every": pairPer, "this": pairPer, "calendar": pairPer,
	"bad": pairBad, "invalid": pairBad, "malformed": pairBad, "unknown": pairBad, "unrecognized": pairBad, "such": pairBad,
	"nonexistent": pairBad, "unrecognised": pairBad, "status": pairStatus, "code": pairStatus, "http": pairStatus,
	"status_code": pairStatus, "statuscode": pairStatus, "error": pairStatus, "returned": pairStatus,
	"out": pairOut, "of": pairNone,
}

var periods = map[string]concept{
	"day": cDay, "week": cDay, "month": cDay, "days": cDay,
	"minute": cMinute, "min": cMinute, "second": cMinute, "sec": cMinute,
}

// pair adds what only two words in a row say.
func (r *reader) pair(w []byte, e *entry) {
	switch r.prev {
	case pairNone, pairStatus:
	case pairPer:
		r.ideas |= e.period
	case pairOut:
		if string(w) == "of" {
			r.ideas |= cLack
		}
	case pairBad:
		if e.ideas&cModel != 0 {
			r.ideas |= cGone
		}
		if e.ideas&cRequest != 0 {
			r.ideas |= cInvalid | cParam
		}
	}
	r.prev = e.pair
	if e.ideas&cLimit != 0 {
		r.zero()
	}
}

// zero sees "limit: 0": an allowance of nothing.
func (r *reader) zero() {
	i := r.i
	for i < len(r.b) && (r.b[i] == ' ' || r.b[i] == ':' || r.b[i] == '=' || r.b[i] == '"') {
		i++
	}
	if i == r.i || i >= len(r.b) || r.b[i] != '0' {
		return
	}
	if i+1 < len(r.b) && (inWord(r.b[i+1]) || r.b[i+1] == '.' && i+2 < len(r.b) && r.b[i+2] >= '0' && r.b[i+2] <= '9') {
		return
	}
	r.a.limitZero = true
}

// number passes over digits and what hangs on them, such as 9m38.016s. Three of
// them after "status" or "code" are the status of somebody upstream.
func (r *reader) number() {
	start := r.i
	defer func() {
		if r.prev == pairStatus && r.i-start == 3 {
			r.a.textStatus = atoi(r.b[start:r.i])
		}
		r.prev = pairNone
	}()
	for r.i < len(r.b) && (inWord(r.b[r.i]) || r.b[r.i] == '.') {
		r.i++
	}
	r.n++
}

// nested reads an error inside the text, as it stands or with its quotes escaped.
func (r *reader) nested() {
	if r.a.nesting >= maxNesting || !looksNested(r.b[r.i:]) {
		r.i++
		return
	}
	s := scanner{b: r.b, i: r.i, arena: &r.a.arena, quote: true}
	after := -1
	if escapedQuotes(r.b[r.i:]) {
		s.b, s.i, after = s.escaped(r.i, 0), 0, len(r.b)
	}
	r.a.nesting++
	r.a.value(&s, roleError, 0)
	r.a.nesting--
	if after < 0 {
		after = max(s.i, r.i+1)
	}
	r.i = after
}

// escapedQuotes: the first quote of the document has a backslash before it.
func escapedQuotes(b []byte) bool {
	i := bytes.IndexAny(b, "\"'\\")
	return i >= 0 && b[i] == '\\' && i+1 < len(b) && b[i+1] == '"'
}

const maxNesting = 6

// looksNested tells a document from brackets in prose: a brace, maybe after
// brackets, and then a quoted name.
func looksNested(b []byte) bool {
	brace := false
	for _, c := range b[:min(len(b), 64)] {
		switch c {
		case '[', ' ', '\n', '\t', '\r':
		case '{':
			brace = true
		case '"', '\'', '\\':
			return brace
		default:
			return false
		}
	}
	return false
}

type waitWord uint8

const (
	waitAnchor waitWord = 1 << iota // "again": a wait may follow within three words
	waitLink                        // "in": a wait follows right here
)

var waitWords = map[string]waitWord{
	"again": waitAnchor, "retry": waitAnchor, "retrying": waitAnchor, "retried": waitAnchor, "reset": waitAnchor, "resets": waitAnchor,
	"available": waitAnchor, "resume": waitAnchor, "cooldown": waitAnchor | waitLink, "wait": waitAnchor | waitLink,
	"waiting": waitAnchor | waitLink, "retry_after": waitAnchor | waitLink, "retryafter": waitAnchor | waitLink,
	"retrydelay": waitAnchor | waitLink, "retry_in": waitAnchor | waitLink, "backoff": waitAnchor | waitLink, "back": waitAnchor, "refresh": waitAnchor,
	"refreshes": waitAnchor, "replenish": waitAnchor, "resubmit": waitAnchor, "regain": waitAnchor, "renews": waitAnchor,
	"in": waitLink, "after": waitLink, "for": waitLink, "least": waitLink, "another": waitLink, "about": waitLink,
	"approximately": waitLink, "around": waitLink, "within": waitLink, "roughly": waitLink,
}

const anchorReach = 4 // "try again in at least 5 s"

// wait sees "try again in 1m30s" and its relatives. Several waits: the longest.
func (r *reader) wait(k waitWord) {
	if k&waitAnchor != 0 {
		r.anchor = r.n
	}
	if k&waitLink == 0 || r.n-r.anchor > anchorReach {
		return
	}
	i := r.i
	for i < len(r.b) && (r.b[i] == ' ' || r.b[i] == ':' || r.b[i] == '~' || r.b[i] == '=' || r.b[i] == '\n') {
		i++
	}
	d, n, ok := parseSpan(r.b[i:], true)
	if !ok {
		return
	}
	r.i = i + n
	if !r.a.textWait.Set || d > r.a.textWait.Value {
		r.a.textWait.Value, r.a.textWait.Set = d, true
	}
}

// parseSpan reads a duration in words or in Go's spelling at the head of b: "20
// seconds", "1 minute and 5 seconds", "9m38.016s", "36.4s", with bare also "20".
func parseSpan(b []byte, bare bool) (d time.Duration, n int, ok bool) {
	for {
		v, used, good := parseDecimal(b[n:])
		if !good {
			return d, n, ok
		}
		at := n + used
		unit, width := parseUnit(b[at:])
		switch {
		case unit > 0:
			d = addSaturated(d, scale(v, unit))
			n, ok = at+width, true
		case !ok && bare && endsHere(b[at:]):
			return scale(v, time.Second), at, true
		default:
			return d, n, ok
		}
		n += glue(b[n:])
	}
}

// glue is the width of what may stand between the parts of a duration.
func glue(b []byte) int {
	n := 0
	for n < len(b) && (b[n] == ' ' || b[n] == ',') {
		n++
	}
	if bytes.HasPrefix(b[n:], []byte("and ")) {
		n += 4
	}
	if n < len(b) && b[n] >= '0' && b[n] <= '9' {
		return n
	}
	return 0
}

// endsHere: a bare number counts as seconds only where it stands alone.
func endsHere(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] == '.' || b[0] == ',' || b[0] == ';' || b[0] == ')' || b[0] == '!' || b[0] == '\n' || b[0] == '"' || b[0] == '\'' || b[0] == '}' {
		return len(b) == 1 || b[1] < '0' || b[1] > '9'
	}
	return false
}

var units = newWordMap(map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "millisecond": time.Millisecond,
	"milliseconds": time.Millisecond, "millis": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
})

// parseUnit reads a unit, with one space or hyphen before it at most.
func parseUnit(b []byte) (unit time.Duration, width int) {
	start := 0
	if len(b) > 0 && (b[0] == ' ' || b[0] == '-') {
		start = 1
	}
	var buf [16]byte
	n := 0
	for start+n < len(b) && n < len(buf) && letter(b[start+n]) {
		buf[n] = b[start+n] | 0x20
		n++
	}
	unit, ok := units.get(buf[:n])
	if !ok {
		return 0, 0
	}
	return unit, start + n
}
