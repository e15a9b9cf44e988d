package classify

import "bytes"

// events reads server-sent events, JSON lines, and the stray JSON between events
// that some servers answer an error with.
func (a *analysis) events(b []byte) {
	name := ""
	for len(b) > 0 {
		line, rest := cutLine(b)
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
			name = ""
		case text[0] == ':':
		case text[0] == '{' || text[0] == '[':
			rest = a.stray(b)
		case bytes.HasPrefix(text, []byte("event:")):
			name = string(bytes.TrimSpace(text[len("event:"):]))
			a.terminal = a.terminal || name == "message_stop" || name == "done" || name == "message-end"
		case bytes.HasPrefix(text, []byte("data:")):
			var data []byte
			data, rest = joinData(text, rest)
			a.event(name, data)
		}
		b = rest
	}
}

func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil
	}
	rest = b[i+1:]
	if b[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return b[:i], rest
}

// joinData joins the data lines of one event; nearly always there is one.
func joinData(first, rest []byte) (data, after []byte) {
	data = bytes.TrimSpace(first[len("data:"):])
	joined := false
	for {
		line, next := cutLine(rest)
		if !bytes.HasPrefix(line, []byte("data:")) || len(data) > MaxBody || complete(data) {
			return data, rest
		}
		if !joined {
			data = bytes.Clone(data)
			joined = true
		}
		data = append(append(data, '\n'), bytes.TrimSpace(line[len("data:"):])...)
		rest = next
	}
}

// complete: servers that forget the blank line between events still end each with
// its document.
func complete(data []byte) bool {
	return len(data) > 0 && (data[len(data)-1] == '}' && data[0] == '{' || string(data) == "[DONE]")
}

// stray reads a document that starts at b and returns what follows it.
func (a *analysis) stray(b []byte) []byte {
	s := scanner{b: b, arena: &a.arena}
	s.skip()
	a.document(b[:max(s.i, 1)], false)
	return b[max(s.i, 1):]
}

func (a *analysis) event(name string, data []byte) {
	if string(data) == "[DONE]" {
		a.terminal = true
		return
	}
	if len(data) == 0 {
		return
	}
	failed := name == "error" || name == "exception"
	switch {
	case failed:
		a.inBand = true
		if data[0] == '{' || data[0] == '[' || data[0] == '"' {
			a.document(data, true)
		} else {
			a.message(data)
		}
	case data[0] == '{' || data[0] == '[':
		if isTerminalChunk(data) {
			a.terminal = true
		}
		a.document(data, false)
	}
}

// isTerminalChunk: Gemini has no last event of its own, its last chunk names a
// finishReason.
func isTerminalChunk(data []byte) bool {
	i := bytes.Index(data, []byte(`"finishReason"`))
	if i < 0 {
		return false
	}
	rest := bytes.TrimLeft(data[i+len(`"finishReason"`):], ": \t")
	return len(rest) > 1 && rest[0] == '"' && rest[1] != '"'
}
