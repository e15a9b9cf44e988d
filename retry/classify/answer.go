package classify

import (
	"bytes"

	"github.com/retrylens/retrylens"
)

// answer gathers what an answer of status 200 says about itself, whole or streamed.
type answer struct {
	topError    bool // the document itself is the error ({"type":"error", ...})
	terminal    bool // the stream's last event was there
	finishError bool // finish_reason: error
	filtered    bool
	refused     bool
	timedOut    bool
	hasText     bool // generated text or a tool call was there
	notDone     bool // Ollama: the last line said done: false
	known       bool // it looks like an answer at all
	cut         bool // JSON that ends before it closes
}

// finishes are the reasons to stop that are no success, without '_' in lower case.
// They hold for finish_reason, stop_reason, blockReason and their relatives.
var finishes = newWordMap(map[string]finishKind{
	"contentfilter": finishFilter, "contentfiltered": finishFilter, "safety": finishFilter, "recitation": finishFilter,
	"blocklist": finishFilter, "prohibitedcontent": finishFilter, "spii": finishFilter, "imagesafety": finishFilter,
	"imageprohibitedcontent": finishFilter, "guardrailintervened": finishFilter, "errortoxic": finishFilter,
	"modelarmor": finishFilter, "imagerecitation": finishFilter, "sensitive": finishFilter, "blocked": finishFilter,
	"moderation": finishFilter, "jailbreak": finishFilter,
	"refusal": finishRefusal, "error": finishError, "timeout": finishTimeout, "networkerror": finishError,
	"failed": finishError, "enginererror": finishError, "internalerror": finishError,
})

type finishKind uint8

const (
	finishFilter finishKind = iota + 1
	finishRefusal
	finishError
	finishTimeout
)

// answerDocument reads one document of an answer.
func (a *analysis) answerDocument(s *scanner) {
	if s.peek() == kindString { // a whole body encoded twice
		inner := s.str()
		if len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') && a.nesting < maxNesting {
			a.nesting++
			again := scanner{b: inner, arena: &a.arena}
			a.answerDocument(&again)
			a.nesting--
		}
		return
	}
	a.answerValue(s, roleNone, 0, true)
	if s.i >= len(s.b) && !closed(s.b) {
		a.cut = true
	}
}

func closed(b []byte) bool {
	b = bytes.TrimRight(b, " \t\r\n")
	return len(b) == 0 || b[len(b)-1] == '}' || b[len(b)-1] == ']'
}

func (a *analysis) answerValue(s *scanner, r role, depth int, top bool) {
	k := s.peek()
	switch {
	case r == roleError && k != kindNull && k != kindFalse && k != kindNone && !emptyValue(s):
		a.errorMember(s, depth)
	case r == roleSkip || r == roleUsage || r == roleLoc || depth > maxDepth:
		s.skip()
	case r == roleText && (k == kindObject || k == kindArray):
		a.textMember(s, depth)
	case k == kindObject:
		s.i++
		a.answerObject(s, depth, top)
	case k == kindArray:
		s.i++
		a.answerArray(s, r, depth, top)
	case k == kindString:
		a.answerString(r, s.str(), top)
	case k == kindNone:
	default:
		v := s.bare()
		if r == roleDone {
			a.notDone, a.known = k == kindFalse, true
			a.terminal = a.terminal || k == kindTrue
		}
		if r == roleCode && top && statusLike(v) {
			a.topError = true
		}
	}
}

// statusLike is a top-level code that can only be an error's: {"code": 429, ...}.
func statusLike(v []byte) bool {
	n := atoi(v)
	return n >= 400 && n < 600
}

// emptyValue looks at "", {} and 0, which mean no error.
func emptyValue(s *scanner) bool {
	rest := s.b[s.i:]
	return bytes.HasPrefix(rest, []byte(`""`)) || bytes.HasPrefix(rest, []byte(`{}`)) || bytes.HasPrefix(rest, []byte(`[]`)) ||
		len(rest) > 1 && rest[0] == '0' && (rest[1] == ',' || rest[1] == '}')
}

// errorMember reads an error inside an answer. MiniMax sends base_resp with every
// answer; its status 0 is success.
func (a *analysis) errorMember(s *scanner, depth int) {
	if s.peek() == kindObject {
		ahead := s.b[s.i:min(len(s.b), s.i+40)]
		if i := bytes.Index(ahead, []byte(`"status_code"`)); i >= 0 {
			rest := bytes.TrimLeft(ahead[i+len(`"status_code"`):], ": ")
			if len(rest) > 1 && rest[0] == '0' {
				s.skip()
				return
			}
		}
	}
	a.inBand = true
	a.value(s, roleError, depth+1)
}

// textMember: content that is a list or an object counts as text when it holds any;
// its parts may end in a refusal.
func (a *analysis) textMember(s *scanner, depth int) {
	open := s.b[s.i]
	s.i++
	if open == '{' {
		a.answerObject(s, depth, false)
		return
	}
	for s.next(']') {
		at := s.i
		a.answerValue(s, roleText, depth+1, false)
		if s.i == at {
			s.i++
		}
	}
}

func (a *analysis) answerObject(s *scanner, depth int, top bool) {
	for s.next('}') {
		at := s.i
		name := s.key()
		r := a.role(name)
		switch {
		case r == roleCode && top && bytes.HasPrefix(name, []byte("error")) && !emptyValue(s):
			a.topError = true // Baidu: {"error_code": 17, ...}
		case r == roleText && string(name) != "content" && s.peek() == kindArray && !emptyList(s):
			a.hasText, a.known = true, true // tool_calls
		case r == roleText && (string(name) == "functionCall" || string(name) == "function_call" || string(name) == "toolUse" || string(name) == "inlineData") && s.peek() == kindObject:
			a.hasText = true
		}
		a.known = a.known || r == roleUsage || r == roleChoices
		a.answerValue(s, r, depth+1, top && r == roleStateful || top && isTopScalar(r))
		if s.i == at {
			s.i++
		}
	}
}

func isTopScalar(r role) bool {
	return r == roleType || r == roleObject || r == roleCode || r == roleChoices || r == roleMessage
}

func emptyList(s *scanner) bool {
	i := s.i + 1
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\n' || s.b[i] == '\r' || s.b[i] == '\t') {
		i++
	}
	return i < len(s.b) && s.b[i] == ']'
}

func (a *analysis) answerArray(s *scanner, r role, depth int, top bool) {
	if r == roleChoices {
		a.known = true
	}
	for s.next(']') {
		at := s.i
		a.answerValue(s, roleNone, depth+1, top && depth == 0)
		if s.i == at {
			s.i++
		}
	}
}

func (a *analysis) answerString(r role, v []byte, top bool) {
	switch r {
	case roleText, roleChoices:
		a.known = true
		a.hasText = a.hasText || len(bytes.TrimSpace(v)) > 0
	case roleFinish, roleBlock:
		a.known = true
		a.finish(v, r)
	case roleRefusal:
		a.refused = a.refused || len(v) > 0
	case roleType, roleObject:
		a.typed(v, top)
	case roleStateful:
		if top && (string(v) == "error" || string(v) == "failed") {
			a.topError = true
		}
	case roleBytes:
		inner := base64Text(v)
		a.document(inner, false)
	case roleCode: // incomplete_details: {reason: content_filter}
		var buf [40]byte
		if k, _ := finishes.get(squash(buf[:], v)); k == finishFilter {
			a.filtered = true
		}
	}
}

func (a *analysis) finish(v []byte, r role) {
	var buf [40]byte
	w := squash(buf[:], v)
	k, ok := finishes.get(w)
	if r == roleBlock && len(w) > 0 && string(w) != "blockreasonunspecified" {
		k, ok = finishFilter, true
	}
	if !ok {
		return
	}
	switch k {
	case finishFilter:
		a.filtered = true
	case finishRefusal:
		a.refused = true
	case finishError:
		a.finishError = true
	case finishTimeout:
		a.timedOut = true
	}
}

// typed reads the type of a document, an event or a part.
func (a *analysis) typed(v []byte, top bool) {
	var buf [40]byte
	switch w := squash(buf[:], v); string(w) {
	case "error", "exception":
		a.topError = a.topError || top
	case "messagestop", "responsecompleted", "responseincomplete", "messageend", "responsedone":
		a.terminal = true
	case "responsefailed":
		a.inBand = true
	case "refusal":
		a.refused = true
	case "tooluse", "functioncall", "toolcall":
		a.hasText = true
	case "message", "chatcompletion", "response", "textcompletion":
		a.known = true
	}
}

// notSuccess is rule 6: HTTP 200 that is not a success.
func (a *analysis) notSuccess() finding {
	f := a.f
	if f.Status < 200 || f.Status > 299 {
		return finding{}
	}
	switch {
	case a.filtered:
		return finding{class: retrylens.ClassContentFilter, reason: "answer stopped by a content filter"}
	case a.refused:
		return finding{class: retrylens.ClassRefusal, reason: "the model refused"}
	case a.finishError:
		return finding{class: retrylens.ClassServerError, reason: "answer ended with an error"}
	case a.timedOut:
		return finding{class: retrylens.ClassTimeout, reason: "answer ended with a timeout"}
	case f.Stream || a.shape == shapeEvents || a.shape == shapeFrames:
		return a.streamEnd()
	case a.shape == shapeEmpty:
		// No byte of an answer came: what happened to the work is unknown.
		return finding{retrylens.ClassEmptyResponse, "status 200 with a blank body", flagRetry | flagKey}
	case a.cut && len(f.Body) < MaxBody:
		return finding{class: retrylens.ClassTransportUnknown, reason: "answer cut inside its JSON"}
	case a.notDone:
		return interrupted("stream ended without its terminal event")
	case a.bare(), a.shape == shapeJSON && a.known && !a.hasText:
		return finding{class: retrylens.ClassEmptyResponse, reason: "answer without content"}
	}
	return finding{}
}

// bare tells {} and [] from JSON of other kinds.
func (a *analysis) bare() bool {
	b := bytes.TrimSpace(a.body)
	return len(bytes.Trim(b, "{}[] \t\r\n")) == 0 || string(b) == "null"
}

func (a *analysis) streamEnd() finding {
	f := a.f
	switch {
	case !a.terminal && !f.StreamComplete:
		return interrupted("stream ended without its terminal event")
	case !a.hasText && !f.ContentReceived && len(f.Body) < MaxBody:
		return finding{class: retrylens.ClassEmptyResponse, reason: "stream without content"}
	}
	return finding{}
}
