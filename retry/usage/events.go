package usage

import (
	"bytes"
	"strings"
)

// lines is the state of reading server-sent events.
type lines struct {
	at       lineState
	head     [12]byte // the beginning of the line
	nHead    int
	name     [32]byte // of the event
	nName    int
	data     [8]byte // the beginning of the event's data
	nData    int
	sawCR    bool // the last byte was a carriage return that ended a line
	parsed   bool // the document of this data was complete and counted
	some     bool // the event has data
	boundary bool // nothing of the next event was read
}

type lineState uint8

const (
	lineHead lineState = iota
	lineData
	lineName
	lineOther
	lineStray // a document between the events, as some servers answer an error with
)

// lines reads p. Lines end with LF, CR or both.
func (r *Reader) lines(p []byte) {
	s := &r.sse
	for len(p) > 0 {
		if s.sawCR && p[0] == '\n' {
			s.sawCR = false
			p = p[1:]
			continue
		}
		s.sawCR = false
		switch s.at {
		case lineHead:
			if s.boundary {
				if n := r.match(p); n > 0 {
					s.sawCR = p[n-1] == '\r'
					p = p[n:]
					r.eventEnds()
					continue
				}
				s.boundary, r.plain = false, false
				r.gathered = leaves{base: p}
			}
			p = r.head(p)
		case lineData:
			p = r.dataLine(p)
		case lineStray:
			p = r.strayDocument(p)
		default:
			p = r.otherLine(p)
		}
	}
	r.gathered.base = nil // an event that is cut teaches nothing
}

// head reads the name of the line's field.
func (r *Reader) head(p []byte) []byte {
	s := &r.sse
	if s.nHead == 0 && len(p) > 5 && string(p[:5]) == "data:" {
		r.dataBegins()
		r.record(p[:5])
		return p[5:]
	}
	c := p[0]
	switch {
	case c == '\n' || c == '\r':
		blank := s.nHead == 0
		s.nHead, s.sawCR = 0, c == '\r'
		if blank {
			r.blankLine(p)
		}
		return p[1:]
	case s.nHead == 0 && (c == '{' || c == '['):
		s.at = lineStray
		r.gathered.base = nil
		r.doc.reset()
		return p
	case c == ':':
		r.fieldNamed(string(s.head[:s.nHead]))
		s.nHead = 0
		return p[1:]
	}
	if s.nHead < len(s.head) {
		s.head[s.nHead] = c
		s.nHead++
	}
	if s.nHead == len(s.head) {
		s.at, s.nHead = lineOther, 0 // no field that matters has so long a name
	}
	return p[1:]
}

func (r *Reader) fieldNamed(name string) {
	s := &r.sse
	s.at = lineOther
	if bare, marked := strings.CutPrefix(name, "\ufeff"); marked && r.seen.events == 0 {
		name = bare // a stream may begin with a byte order mark, an event not
		r.gathered.base = nil
	}
	switch name {
	case "data":
		r.dataBegins()
		r.record([]byte("data:"))
	case "event":
		s.at, s.nName = lineName, 0
		r.record([]byte("event:"))
	}
}

// dataBegins starts a document, or goes on with one of several lines. Servers that
// forget the blank line between events still end each with its document.
func (r *Reader) dataBegins() {
	s := &r.sse
	if s.some {
		r.gathered.base = nil // values may go over lines: such an event teaches nothing
	}
	s.at, s.some = lineData, true
	if !r.doc.open() {
		r.doc.reset()
		s.parsed, s.nData = false, 0
	}
}

func (r *Reader) dataLine(p []byte) []byte {
	s := &r.sse
	i := lineEnd(p)
	if s.nData < len(s.data) {
		begin := p[:min(i, len(s.data)+1)]
		if s.nData == 0 {
			begin = bytes.TrimLeft(begin, " ")
		}
		s.nData += copy(s.data[s.nData:], begin)
	}
	if !s.parsed {
		r.record(p[:min(i+1, len(p))])
		r.gathered.at = cap(r.gathered.base) - cap(p)
		r.doc.write(p[:i])
		if r.doc.state == sDone {
			s.parsed = true
			r.dataEnds()
		}
	}
	if i == len(p) {
		return nil
	}
	s.at, s.sawCR = lineHead, p[i] == '\r'
	if !s.parsed && string(bytes.TrimSpace(s.data[:min(s.nData, 7)])) == "[DONE]" {
		s.parsed = true
		r.terminal()
		r.eventEnds()
	}
	if r.doc.open() {
		r.doc.write(p[i : i+1]) // the lines of an event are joined by a newline
	}
	return p[i+1:]
}

func lineEnd(p []byte) int {
	n := bytes.IndexByte(p, '\n')
	if n < 0 {
		n = len(p)
	}
	if c := bytes.IndexByte(p[:n], '\r'); c >= 0 {
		return c
	}
	return n
}

func (r *Reader) otherLine(p []byte) []byte {
	s := &r.sse
	i := lineEnd(p)
	if s.at == lineName {
		s.nName += copy(s.name[s.nName:], p[:i])
		r.record(p[:min(i+1, len(p))])
	}
	if i == len(p) {
		return nil
	}
	s.at, s.sawCR = lineHead, p[i] == '\r'
	return p[i+1:]
}

// strayDocument reads a document that is no event's data.
func (r *Reader) strayDocument(p []byte) []byte {
	n := r.doc.write(p)
	r.record(p[:n])
	if r.doc.state == sDone || r.doc.state == sBad {
		r.sse.at = lineOther
		r.sse.some, r.sse.parsed = true, true
		r.dataEnds()
	}
	return p[n:]
}

// dataEnds: the document of an event is complete.
func (r *Reader) dataEnds() {
	switch string(bytes.TrimSpace(r.sse.name[:r.sse.nName])) {
	case "error", "exception":
		r.failed()
	case "message_stop", "done", "message-end":
		r.terminal()
	case "ping":
		r.now.content = false
	}
	r.eventEnds()
}

// blankLine ends the event; p begins with the end of the line.
func (r *Reader) blankLine(p []byte) {
	s := &r.sse
	if s.some && !s.parsed {
		r.dataEnds() // its data is no document
	}
	s.some, s.parsed, s.nName, s.nData = false, false, 0, 0
	r.doc.reset()
	if g := &r.gathered; g.base != nil && r.plain {
		r.learn(cap(g.base) - cap(p) + 1)
	}
	r.outdated()
	s.boundary, r.plain = true, false
	if !r.frozen {
		r.capture, r.cut = r.capture[:0], false
	}
}
