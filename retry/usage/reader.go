package usage

import (
	"bytes"
	"strings"

	"github.com/retrylens/retrylens"
)

// Format of a body.
type Format uint8

// Formats. Opaque bodies (compressed, audio) are passed over.
const (
	Opaque Format = iota
	JSON          // one document
	Events        // server-sent events
	Lines         // JSON documents one after another
	Frames        // application/vnd.amazon.eventstream
)

// Stream tells whether bodies of this format are streams of events.
func (f Format) Stream() bool { return f >= Events }

// FormatOf finds the format by the headers Content-Type and Content-Encoding as the
// transport left them.
func FormatOf(contentType, contentEncoding string) Format {
	if contentEncoding != "" && contentEncoding != "identity" {
		return Opaque
	}
	if i := strings.IndexByte(contentType, ';'); i >= 0 {
		contentType = contentType[:i]
	}
	contentType = strings.TrimSpace(contentType)
	switch {
	case fold(contentType, "application/json"):
		return JSON
	case fold(contentType, "text/event-stream"):
		return Events
	case fold(contentType, "application/vnd.amazon.eventstream"):
		return Frames
	case fold(contentType, "application/x-ndjson"), fold(contentType, "application/jsonl"), fold(contentType, "application/stream+json"):
		return Lines
	case strings.HasSuffix(contentType, "+json"):
		return JSON
	}
	return Opaque
}

func fold(a, b string) bool { return a == b || strings.EqualFold(a, b) }

// seen is what an answer told so far.
type seen struct {
	generative bool // it has the shape of generated content
	any        bool // content, reasoning included
	answer     bool // text or a tool call
	terminal   bool // the stream's last event
	final      bool // figures in the event that ends a failed answer
	whole      bool // a JSON document was read to its end
	bad        bool // not readable: a frame with a wrong checksum
	bytes      int64
	events     int
	contents   int // events with content
}

// event is what the present event told.
type event struct {
	content, telling, terminal bool
	ends, figures              bool // it ends a failed answer; it told figures
}

// plain tells whether it had content and nothing that speaks for the whole answer.
func (e event) plain() bool { return e.content && !e.telling && !e.terminal && !e.ends }

// Reader reads one body. The zero Reader passes everything over; see [Reader.Reset].
// It is not safe for concurrent use.
type Reader struct {
	format Format
	seen   seen
	now    event
	counts counts
	doc    document
	sse    lines
	frame  frames
	nested document
	base64 quads

	tmpl     template
	gathered leaves

	tmplHeads  [192]byte // headers of the frame that is the template
	nTmplHeads int
	model      [maxToken]byte
	nModel     int
	finish     [maxToken]byte // the last finish that is out of the ordinary
	nFin       int

	capture []byte // the present event or the beginning of the document, as it came
	plain   bool   // the present event had content and nothing else
	told    bool   // it had figures or another model, and is not the template
	frozen  bool   // capture holds the event that tells of a failure
	cut     bool   // capture does not hold all of it
}

// Captured bytes of an event; enough for every error that providers send.
const maxCapture = 8 << 10

// Reset makes r read a body of that format.
func (r *Reader) Reset(f Format) {
	capture := r.capture[:0]
	*r = Reader{format: f, capture: capture}
	r.doc.to, r.nested.to, r.nested.nested = r, r, true
}

// Write reads p, the next bytes of the body, and keeps nothing of it but the event
// that tells of a failure. It never fails.
func (r *Reader) Write(p []byte) {
	switch r.format {
	case JSON:
		r.document(p)
	case Events:
		r.lines(p)
	case Lines:
		r.documents(p)
	case Frames:
		r.frames(p)
	}
}

// End tells that the body was read to its end.
func (r *Reader) End() {
	if r.format == Events {
		r.lines([]byte("\n\n")) // the last event may lack its blank line
	}
}

func (r *Reader) document(p []byte) {
	r.record(p)
	r.doc.write(p)
	if r.doc.state == sDone && !r.seen.whole {
		r.seen.whole = true
		r.eventEnds()
	}
}

// documents reads JSON lines; Ollama's last one says done.
func (r *Reader) documents(p []byte) {
	for len(p) > 0 {
		n := r.doc.write(p)
		r.record(p[:n])
		p = p[n:]
		switch r.doc.state {
		case sDone:
			r.eventEnds()
			r.doc.reset()
		case sBad: // on to the next line
			i := bytes.IndexByte(p, '\n')
			if i < 0 {
				return
			}
			p = p[i+1:]
			r.doc.reset()
		}
	}
}

// record captures the present event.
func (r *Reader) record(p []byte) {
	if r.frozen || r.cut {
		return
	}
	if room := maxCapture - len(r.capture); len(p) > room {
		p = p[:room]
		r.cut = true
	}
	r.capture = append(r.capture, p...)
}

// eventEnds counts the event; one that tells of a failure is kept, the first of them.
func (r *Reader) eventEnds() {
	r.seen.events++
	if r.now.content || r.now.terminal {
		r.seen.contents++
	}
	r.plain = r.now.plain()
	if r.now.telling {
		r.frozen = true
	}
	r.seen.final = r.seen.final || r.now.ends && r.now.figures
	r.now = event{}
	if !r.frozen && r.format != JSON {
		r.capture, r.cut = r.capture[:0], false
	}
}

// content is told of at the end of the object that holds it, when it is known
// whether it is thinking.
func (r *Reader) content(answer bool) {
	r.now.content, r.seen.any = true, true
	r.seen.answer = r.seen.answer || answer
}

func (r *Reader) failed() { r.now.telling = true }

func (r *Reader) terminal() { r.seen.terminal, r.now.terminal = true, true }

// text takes the string value of a member: v its first bytes, d.long its length.
func (r *Reader) text(d *document, v []byte) {
	f := &d.stack[d.depth-1]
	switch d.act {
	case aText, aTextOnly, aInnerText, aAnswer:
		r.seen.generative = true
		if d.long > 0 {
			f.text = true
			r.seen.bytes += d.long
		}
	case aReasoning:
		if d.long > 0 {
			r.content(false)
			r.seen.bytes += d.long
		}
	case aRefusal:
		if d.long > 0 {
			r.content(true)
			r.failed()
			r.finishes([]byte("refusal"))
		}
	case aFinish, aFinishLast, aReason, aBlock:
		r.finished(d.act, v)
	case aError:
		if d.long > 0 {
			r.failed()
		}
	case aType:
		r.typed(f, d.depth, v)
	case aStatus:
		if string(v) == "failed" {
			r.failed()
		}
	case aModel:
		r.told = r.told || string(r.model[:r.nModel]) != string(v)
		r.nModel = copy(r.model[:], v)
	case aBytes:
		r.nestedEnds()
	}
}

func (r *Reader) finished(a action, v []byte) {
	if len(v) == 0 {
		return
	}
	r.seen.generative = true
	if a == aFinishLast {
		r.terminal()
	}
	if a == aBlock || !ordinary(v) {
		r.failed()
		r.finishes(v)
	}
}

func (r *Reader) finishes(v []byte) { r.nFin = copy(r.finish[:], v) }

// ordinary are the reasons to stop that are no failure; all others are shown to the
// classifier.
func ordinary(v []byte) bool {
	switch string(v) {
	case "stop", "end_turn", "length", "max_tokens", "tool_calls", "tool_use", "function_call", "stop_sequence", "max_output_tokens", "pause_turn",
		"STOP", "MAX_TOKENS", "COMPLETE", "TOOL_CALL", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "FINISH", "LENGTH", "eos", "load":
		return true
	}
	return false
}

// typed reads the type of the document, of an event or a part.
func (r *Reader) typed(f *frame, depth int, v []byte) {
	switch string(v) {
	case "message_stop", "response.completed", "response.incomplete", "message-end", "response.done":
		if depth == 1 {
			r.terminal()
		}
	case "error", "exception", "response.failed", "response.cancelled":
		if depth == 1 {
			r.failed()
			r.now.ends = true
		}
	case "thinking", "thinking_delta", "reasoning", "reasoning_text", "summary_text", "redacted_thinking":
		f.reasoning = true
	case "tool_use", "function_call", "tool_call", "server_tool_use":
		r.content(true)
	case "refusal":
		r.failed()
		r.finishes(v)
	}
	if depth == 1 && bytes.HasPrefix(v, []byte("response.reasoning")) {
		f.reasoning = true
	}
}

// bare takes a number or literal.
func (r *Reader) bare(d *document, v []byte) {
	switch a := d.act; {
	case a >= aFigure:
		r.counts.put(field(a-aFigure), v)
		r.told, r.now.figures = true, true
	case a == aDone && string(v) == "true":
		r.terminal()
	case a == aThought && string(v) == "true":
		d.stack[d.depth-1].reasoning = true
	case a == aError && string(v) != "null" && string(v) != "false" && string(v) != "0":
		r.failed()
	}
}

// Events is how many events have come; of a JSON document 1 once it is complete.
// Comments and keep-alives without data are none.
func (r *Reader) Events() int { return r.seen.events }

// Contents is how many of the events had content or were the last one: what the gap
// timeout of a stream is fed with. A ping is none.
func (r *Reader) Contents() int { return r.seen.contents }

// Content tells whether content came, the model's thinking included.
func (r *Reader) Content() bool { return r.seen.any }

// Answered tells whether text or a tool call came.
func (r *Reader) Answered() bool { return r.seen.answer }

// Generative tells whether the body has the shape of generated content, with or
// without any: a list of models has not.
func (r *Reader) Generative() bool { return r.seen.generative }

// Complete tells whether the body ended by its own account: a stream by its terminal
// event, a document by its closing bracket. An opaque body does not tell.
func (r *Reader) Complete() bool {
	if r.format == JSON {
		return r.seen.whole
	}
	return r.seen.terminal && !r.seen.bad
}

// Final tells whether the figures are the provider's last word: the body is complete, or the
// event that ends a failed answer told them (OpenAI's response.failed).
func (r *Reader) Final() bool { return r.Complete() || r.seen.final && !r.seen.bad }

// Telling is the event, or the beginning of the document, that tells of a failure
// inside an answer of status 200, as it came, for the classifier; nil where nothing
// does. It is valid until the next Reset.
func (r *Reader) Telling() []byte {
	switch {
	case !r.frozen:
		return nil
	case r.cut && r.nFin > 0: // the reason to stop is known, wherever it stood
		r.capture = append(r.capture[:0], `{"choices":[{"finish_reason":"`...)
		r.capture = append(append(r.capture, r.finish[:r.nFin]...), `"}]}`...)
		r.cut = false
	}
	return r.capture
}

// Begun is the beginning of a document that tells of no failure, at most 8 KiB of it.
func (r *Reader) Begun() []byte { return r.capture }

// Tokens are the last figures that were told.
func (r *Reader) Tokens() Tokens { return r.counts.tokens() }

// CostUSD is what the provider says that the call cost (OpenRouter), not set where it
// says nothing.
func (r *Reader) CostUSD() retrylens.Opt[retrylens.Money] { return r.counts.costUSD() }

// Model is the model that the answer names, at most 128 bytes; valid until the next Reset.
func (r *Reader) Model() []byte { return r.model[:r.nModel] }

// Estimate is a guess at the tokens of the content that came, four bytes a token.
func (r *Reader) Estimate() int64 { return (r.seen.bytes + 3) / 4 }
