package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
)

// shape is what a body looks like.
type shape uint8

const (
	shapeEmpty shape = iota
	shapeJSON
	shapeEvents // server-sent events or JSON lines
	shapeFrames // AWS event stream
	shapeHTML
	shapeText
)

// readBody decodes the body, tells its shape and gathers what it says.
func (a *analysis) readBody() {
	for _, h := range a.p.TypeHeaders {
		a.typeHeader(h)
	}
	if len(a.p.TypeHeaders) == 0 && len(a.f.Header) > 0 {
		a.typeHeader("X-Amzn-Errortype")
	}
	if len(a.f.Body) == 0 {
		return
	}
	a.body = a.decode()
	a.shape = shapeOf(a.body, header(a.f.Header, "Content-Type"))
	switch a.shape {
	case shapeJSON:
		a.document(a.body, a.f.Status >= 400)
	case shapeEvents:
		a.events(a.body)
	case shapeFrames:
		a.frames(a.body)
	case shapeHTML:
		a.html()
	case shapeText:
		a.plain()
	}
}

func (a *analysis) typeHeader(name string) {
	if v := header(a.f.Header, name); v != "" {
		a.codeText([]byte(v))
	}
}

func shapeOf(b []byte, contentType string) shape {
	head := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(head) == 0:
		return shapeEmpty
	case isFrame(b):
		return shapeFrames
	case head[0] == '<':
		return shapeHTML
	case strings.HasPrefix(contentType, "text/event-stream"), eventLine(head):
		return shapeEvents
	case head[0] == '{' || head[0] == '[' || head[0] == '"':
		return shapeJSON
	case bytes.Contains(head[:min(len(head), 512)], []byte("\ndata:")):
		return shapeEvents
	}
	return shapeText
}

func eventLine(b []byte) bool {
	return bytes.HasPrefix(b, []byte("data:")) || bytes.HasPrefix(b, []byte("event:")) ||
		bytes.HasPrefix(b, []byte(": ")) || bytes.HasPrefix(b, []byte("id:")) || bytes.HasPrefix(b, []byte("retry:"))
}

// decode undoes gzip and deflate, told by their magic; what does not decode stays
// as it is. A body cut in the middle yields what came before the cut.
func (a *analysis) decode() []byte {
	b := a.f.Body
	if len(b) > MaxBody {
		b = b[:MaxBody]
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	switch {
	case len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b:
		if r, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			return inflated(r, b)
		}
	case len(b) > 2 && strings.EqualFold(header(a.f.Header, "Content-Encoding"), "deflate"):
		if r, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			return inflated(r, b)
		}
		return inflated(flate.NewReader(bytes.NewReader(b)), b)
	}
	return b
}

func inflated(r io.Reader, raw []byte) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, MaxBody)) // a cut body still says something
	if len(out) == 0 {
		return raw
	}
	return out
}

// document reads JSON documents one after another. In an answer of status 200 only
// an error that stands where errors stand counts.
func (a *analysis) document(b []byte, failed bool) {
	s := scanner{b: b, arena: &a.arena}
	for range 64 {
		s.space()
		if s.i >= len(b) {
			return
		}
		at := s.i
		if !failed {
			a.answerDocument(&s)
			if a.topError {
				a.topError, a.inBand = false, true
				again := scanner{b: b, i: at, arena: &a.arena}
				a.value(&again, roleError, 0)
			}
		} else {
			a.value(&s, roleError, 0)
		}
		if s.i == at {
			s.i++
		}
	}
}

// value reads one value of an error whose name means r.
func (a *analysis) value(s *scanner, r role, depth int) {
	switch s.peek() {
	case kindObject:
		s.i++
		if r == roleSkip || r == roleUsage || depth > maxDepth {
			s.i--
			s.skip()
			return
		}
		a.object(s, r, depth)
	case kindArray:
		s.i++
		if r == roleSkip || r == roleUsage || depth > maxDepth {
			s.i--
			s.skip()
			return
		}
		for s.next(']') {
			at := s.i
			a.value(s, r, depth+1)
			if s.i == at {
				s.i++
			}
		}
	case kindString:
		a.stringValue(r, s.str(), depth)
	case kindNumber:
		a.numberValue(r, s.bare())
	case kindNone:
	default:
		s.bare()
	}
}

func (a *analysis) object(s *scanner, parent role, depth int) {
	for s.next('}') {
		at := s.i
		r := a.role(s.key())
		if parent == roleWaitSec && r == roleRetrySeconds {
			r = roleWaitSec // retry_delay: {seconds: 26}
		}
		if r == roleLoc { // an item of a validation list: {"loc": [...], "msg": ...}
			a.spoke(Rule{retrylens.ClassInvalidRequest, Vague, false}, nil)
			r = roleSkip
		}
		a.value(s, r, depth+1)
		if s.i == at {
			s.i++
		}
	}
}

func (a *analysis) role(name []byte) role {
	if r := roles.squashed(name); r != nil {
		return *r
	}
	return roleNone
}

func (a *analysis) stringValue(r role, v []byte, depth int) {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return
	}
	switch r {
	case roleCode, roleType, roleStateful, roleStatus:
		a.codeText(v)
	case roleObject, roleSkip, roleUsage, roleLoc, roleDone, roleBytes:
	case roleQuotaID:
		a.quotaID(v)
	case roleQuotaZero:
		if string(v) == "0" {
			a.limitZero = true
		}
	case roleSource:
		a.message(v)
	case roleWaitSec:
		a.keepWait(spanOrSeconds(string(v)))
	case roleWaitMS:
		a.keepWait(number(string(v), time.Millisecond))
	case roleResetAt:
		a.keepWait(until(string(v), a.now()))
	case roleTypeURL:
	case roleError:
		if !bytes.ContainsAny(v, " {") {
			a.codeText(v)
			return
		}
		a.text1(v, depth)
	case roleMessage, roleText, roleRefusal, roleFinish, roleBlock:
		a.text1(v, depth)
	case roleNone:
		if v[0] == '{' || v[0] == '[' { // an encoded document under any name
			a.text1(v, depth)
		}
	}
}

// text1 reads a message, or the document that it encodes.
func (a *analysis) text1(v []byte, depth int) {
	if v[0] == '"' && len(v) > 2 && a.nesting < maxNesting { // encoded twice
		a.nesting++
		s := scanner{b: v, arena: &a.arena}
		a.stringValue(roleMessage, s.str(), depth+1)
		a.nesting--
		return
	}
	if v[0] == '<' {
		return // a page in a message
	}
	a.message(v)
}

func (a *analysis) numberValue(r role, v []byte) {
	switch r {
	case roleCode, roleStatus, roleStateful, roleError:
		a.codeText(v)
	case roleQuotaZero:
		if string(v) == "0" {
			a.limitZero = true
		}
	case roleWaitSec:
		a.keepWait(number(string(v), time.Second))
	case roleWaitMS:
		a.keepWait(number(string(v), time.Millisecond))
	case roleResetAt:
		a.keepWait(until(string(v), a.now()))
	}
}

func (a *analysis) keepWait(w wait) {
	if w.Set && (!a.bodyWait.Set || w.Value > a.bodyWait.Value) {
		a.bodyWait = w
	}
}

// codeText reads a code, a type or a status; a sentence in its place is a message.
func (a *analysis) codeText(v []byte) {
	if len(v) == 0 {
		return
	}
	if bytes.IndexByte(v, ' ') >= 0 {
		if rule, ok := a.lookup(v); ok {
			a.spoke(rule, v)
			return
		}
		a.message(v)
		return
	}
	if len(a.firstType) == 0 && string(v) != "error" && string(v) != "None" && string(v) != "null" {
		a.firstType = v
	}
	if rule, ok := a.lookup(v); ok {
		a.spoke(rule, v)
		return
	}
	if n := atoi(v); n > 0 {
		a.numericCode(n)
		return
	}
	a.quotaID(v)
}

func (a *analysis) numericCode(n int) {
	switch {
	case n >= 400 && n < 600:
		a.bodyStatus = n
	case n < len(grpcCodes) && a.p.GRPC:
		r := grpcCodes[n]
		a.spoke(r, nil)
	}
}

func atoi(b []byte) int {
	if len(b) == 0 || len(b) > 9 {
		return 0
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// quotaID sees the period in the name of a quota: GenerateRequestsPerDay...
func (a *analysis) quotaID(v []byte) {
	var buf [96]byte
	k := squash(buf[:], v)
	if bytes.Contains(k, []byte("daily")) || bytes.Contains(k, []byte("monthly")) {
		a.day = true
	}
	for {
		i := bytes.Index(k, []byte("per"))
		if i < 0 {
			return
		}
		k = k[i+len("per"):]
		switch {
		case bytes.HasPrefix(k, []byte("day")), bytes.HasPrefix(k, []byte("month")), bytes.HasPrefix(k, []byte("week")):
			a.day = true
		case bytes.HasPrefix(k, []byte("minute")), bytes.HasPrefix(k, []byte("second")):
			a.minute = true
		}
	}
}

// plain reads a text body: Cloudflare's "error code: 1015", a proxy's sentence.
func (a *analysis) plain() {
	b := a.body[:min(len(a.body), 4<<10)]
	if i := bytes.Index(b, []byte("rror code: ")); i >= 0 {
		a.edge = atoi(digits(b[i+len("rror code: "):]))
	}
	a.message(bytes.TrimSpace(b))
}

// html reads no more of a page than the edge's code: its words are for people.
func (a *analysis) html() {
	for _, mark := range []string{"rror code: ", "cf-error-code\">", ">Error ", ">error "} {
		if i := bytes.Index(a.body, []byte(mark)); i >= 0 {
			if n := atoi(digits(a.body[i+len(mark):])); n >= 1000 && n < 1300 {
				a.edge = n
				return
			}
		}
	}
}

func digits(b []byte) []byte {
	n := 0
	for n < len(b) && n < 6 && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return b[:n]
}

// base64Text decodes a chunk that Bedrock wraps.
func base64Text(b []byte) []byte {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, _ := base64.StdEncoding.Decode(out, b)
	return out[:n]
}
