package fakeprovider

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"strings"
)

var discardLog = log.New(io.Discard, "", 0)

// dialect is the wire format of one API.
type dialect struct {
	whole  func(*writer)
	stream func(*writer)
}

func dialectOf(path string) dialect {
	switch {
	case strings.HasSuffix(path, "/responses"):
		return dialect{whole: responsesWhole, stream: responsesStream}
	case strings.HasSuffix(path, "/messages"):
		return dialect{whole: anthropicWhole, stream: anthropicStream}
	case strings.Contains(path, ":generateContent"), strings.Contains(path, ":streamGenerateContent"):
		return dialect{whole: geminiWhole, stream: geminiStream}
	case strings.Contains(path, "/converse"):
		return dialect{whole: converseWhole, stream: converseStream}
	case strings.Contains(path, "/invoke"):
		return dialect{whole: anthropicWhole, stream: invokeStream}
	}
	return dialect{whole: chatWhole, stream: chatStream}
}

// writer writes one answer.
type writer struct {
	w      http.ResponseWriter
	r      *http.Request
	s      *Server
	v      *Served
	begun  bool
	broken bool
}

// told notes figures that are on the wire; -1 leaves one as it is.
func (o *writer) told(prompt, completion int64) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if prompt >= 0 {
		o.v.Prompt = prompt
	}
	if completion >= 0 {
		o.v.Completion = completion
	}
}

// json writes a whole document, or half of it and breaks.
func (o *writer) json(text string) {
	o.w.Header().Set("Content-Type", "application/json")
	if o.v.Step.Body != "" {
		text = o.v.Step.Body
	}
	if o.v.Step.Break == BreakStream {
		o.w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = io.WriteString(o.w, text[:len(text)/3])
		_ = http.NewResponseController(o.w).Flush()
		reset(o.w)
		return
	}
	if o.v.Step.Body == "" {
		o.told(o.v.Step.Prompt, o.v.Step.Completion)
	}
	_, _ = io.WriteString(o.w, text)
}

// event writes server-sent events and sends them off.
func (o *writer) event(text string) {
	if o.broken {
		return
	}
	if !o.begun {
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.begun = true
	}
	_, _ = io.WriteString(o.w, text)
	_ = http.NewResponseController(o.w).Flush()
}

// chunks calls emit for each chunk of content, with the delays and breaks of the step;
// false if the stream must not go on.
func (o *writer) chunks(keepAlive string, emit func(i int)) bool {
	p := o.v.Step
	for i := range p.Chunks {
		if p.Break == BreakStream && i == p.AfterChunk {
			reset(o.w)
			o.broken = true
			return false
		}
		if p.Break == BreakClean && i == p.AfterChunk {
			o.broken = true
			return false
		}
		if i > 0 && p.ChunkDelay > 0 {
			if p.KeepAlive {
				o.event(keepAlive)
			}
			if !wait(o.r, p.ChunkDelay) {
				o.broken = true
				return false
			}
		}
		emit(i)
	}
	return true
}

func (p Step) finish(def, tool string) string {
	if p.Finish != "" {
		return p.Finish
	}
	if p.Tool {
		return tool
	}
	return def
}

func chatUsage(p Step) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		p.Prompt, p.Completion, p.Prompt+p.Completion, p.Cached, p.Reasoning)
}

func chatWhole(o *writer) {
	p := o.v.Step
	message := `{"role":"assistant","content":"A whole answer.","refusal":null}`
	if p.Tool {
		message = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}}]}`
	}
	o.json(fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","created":1764500000,"model":"gpt-5-mini-2026-08-07","choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":"%s"}],"usage":%s}`,
		message, p.finish("stop", "tool_calls"), chatUsage(p)))
}

func chatStream(o *writer) {
	p := o.v.Step
	chunk := func(delta, finish string) {
		o.event(fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini-2026-08-07","choices":[{"index":0,"delta":%s,"finish_reason":%s}],"usage":null}`+"\n\n", delta, finish))
	}
	if p.Body != "" {
		o.event(p.Body)
		return
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	if !o.chunks(": keep-alive\n\n", func(i int) {
		if p.Tool {
			chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"weather","arguments":"part %d"}}]}`, i), "null")
			return
		}
		chunk(fmt.Sprintf(`{"content":"word %d "}`, i), "null")
	}) {
		return
	}
	chunk(`{}`, `"`+p.finish("stop", "tool_calls")+`"`)
	if !p.NoUsage && strings.Contains(string(o.v.Body), "include_usage") {
		o.told(p.Prompt, p.Completion)
		o.event(fmt.Sprintf(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini-2026-08-07","choices":[],"usage":%s}`+"\n\n", chatUsage(p)))
	}
	o.event("data: [DONE]\n\n")
}

func responsesDocument(p Step, status string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1764500000,"status":"%s","error":null,"incomplete_details":null,"model":"gpt-5-mini-2026-08-07","output":[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"A whole answer.","annotations":[]}]}],"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1,"metadata":{},"instructions":null,"text":{"format":{"type":"text"}},"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}`,
		status, p.Prompt, p.Cached, p.Completion, p.Reasoning, p.Prompt+p.Completion)
}

func responsesWhole(o *writer) { o.json(responsesDocument(o.v.Step, "completed")) }

func responsesStream(o *writer) {
	p, n := o.v.Step, 0
	send := func(name, rest string) {
		o.event(fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d,%s}\n\n", name, name, n, rest))
		n++
	}
	if p.Body != "" {
		o.event(p.Body)
		return
	}
	send("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"model":"gpt-5-mini-2026-08-07","output":[],"usage":null}`)
	if !o.chunks(": keep-alive\n\n", func(i int) {
		send("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":0,"content_index":0,"delta":"word %d "`, i))
	}) {
		return
	}
	o.told(p.Prompt, p.Completion)
	send("response.completed", `"response":`+responsesDocument(p, "completed"))
}

// anthropicUsage: the cache stands beside the input.
func anthropicUsage(p Step) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":%d}`, p.Prompt-p.Cached, p.Cached, p.Completion)
}

func anthropicWhole(o *writer) {
	p := o.v.Step
	content := `[{"type":"text","text":"A whole answer."}]`
	if p.Tool {
		content = `[{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bern","usage":{"input_tokens":7}}}]`
	}
	o.json(fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":%s,"stop_reason":"%s","stop_sequence":null,"usage":%s}`,
		content, p.finish("end_turn", "tool_use"), anthropicUsage(p)))
}

// anthropicEvents are the events of a streamed message by name.
func anthropicEvents(o *writer, send func(name, data string)) bool {
	p := o.v.Step
	first := p
	first.Completion = 2 // a placeholder
	o.told(p.Prompt, 2)
	send("message_start", fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":%s}}`, anthropicUsage(first)))
	send("ping", `{"type":"ping"}`)
	block, delta := `{"type":"text","text":""}`, `{"type":"text_delta","text":"word %d "}`
	if p.Tool {
		block, delta = `{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}`, `{"type":"input_json_delta","partial_json":"part %d"}`
	}
	send("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`)
	if !o.chunks("event: ping\ndata: {\"type\":\"ping\"}\n\n", func(i int) {
		send("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+fmt.Sprintf(delta, i)+`}`)
	}) {
		return false
	}
	send("content_block_stop", `{"type":"content_block_stop","index":0}`)
	o.told(-1, p.Completion)
	send("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},"usage":{"output_tokens":%d}}`, p.finish("end_turn", "tool_use"), p.Completion))
	return true
}

func anthropicStream(o *writer) {
	if o.v.Step.Body != "" {
		o.event(o.v.Step.Body)
		return
	}
	send := func(name, data string) { o.event("event: " + name + "\ndata: " + data + "\n\n") }
	if anthropicEvents(o, send) {
		send("message_stop", `{"type":"message_stop"}`)
	}
}

func geminiDocument(p Step, parts, finish string, completion int64) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},"modelVersion":"gemini-3-flash","responseId":"r1"}`,
		parts, finish, p.Prompt, p.Cached, completion-p.Reasoning, p.Reasoning, p.Prompt+completion)
}

func geminiPart(p Step, text string) string {
	if p.Tool {
		return `{"functionCall":{"name":"weather","args":{"city":"Bern"}}}`
	}
	return `{"text":"` + text + `"}`
}

func geminiWhole(o *writer) {
	p := o.v.Step
	o.json(geminiDocument(p, geminiPart(p, "A whole answer."), p.finish("STOP", "STOP"), p.Completion))
}

func geminiStream(o *writer) {
	p := o.v.Step
	if p.Body != "" {
		o.event(p.Body)
		return
	}
	soFar := p.Reasoning
	if !o.chunks(": keep-alive\r\n\r\n", func(i int) {
		soFar++
		o.told(p.Prompt, soFar)
		o.event("data: " + geminiDocument(p, geminiPart(p, fmt.Sprintf("word %d ", i)), "", soFar) + "\r\n\r\n")
	}) {
		return
	}
	o.told(p.Prompt, p.Completion)
	o.event("data: " + geminiDocument(p, `{"text":"end"}`, p.finish("STOP", "STOP"), p.Completion) + "\r\n\r\n")
}

// converseUsage: the cache stands beside the input.
func converseUsage(p Step) string {
	return fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cacheReadInputTokens":%d,"cacheWriteInputTokens":0}`, p.Prompt-p.Cached, p.Completion, p.Prompt+p.Completion, p.Cached)
}

func converseWhole(o *writer) {
	p := o.v.Step
	content := `{"text":"A whole answer."}`
	if p.Tool {
		content = `{"toolUse":{"toolUseId":"t1","name":"weather","input":{"city":"Bern"}}}`
	}
	o.json(fmt.Sprintf(`{"metrics":{"latencyMs":12},"output":{"message":{"role":"assistant","content":[%s]}},"stopReason":"%s","usage":%s}`, content, p.finish("end_turn", "tool_use"), converseUsage(p)))
}

func converseStream(o *writer) {
	p := o.v.Step
	o.begun = true
	o.w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	send := func(name, data string) { o.event(string(Frame("event", name, data))) }
	if p.Body != "" {
		o.event(p.Body)
		return
	}
	send("messageStart", `{"p":"ab","role":"assistant"}`)
	delta := `{"text":"word %d "}`
	if p.Tool {
		send("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"weather"}}}`)
		delta = `{"toolUse":{"input":"part %d"}}`
	}
	if !o.chunks("", func(i int) {
		send("contentBlockDelta", `{"contentBlockIndex":0,"delta":`+fmt.Sprintf(delta, i)+`,"p":"abcd"}`)
	}) {
		return
	}
	send("contentBlockStop", `{"contentBlockIndex":0}`)
	send("messageStop", `{"stopReason":"`+p.finish("end_turn", "tool_use")+`"}`)
	o.told(p.Prompt, p.Completion)
	send("metadata", `{"metrics":{"latencyMs":12},"usage":`+converseUsage(p)+`}`)
}

func invokeStream(o *writer) {
	o.begun = true
	o.w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	send := func(_, data string) {
		o.event(string(Frame("event", "chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`"}`)))
	}
	if anthropicEvents(o, send) {
		p := o.v.Step
		send("", fmt.Sprintf(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":%d,"outputTokenCount":%d,"invocationLatency":9,"firstByteLatency":3,"cacheReadInputTokenCount":%d}}`, p.Prompt-p.Cached, p.Completion, p.Cached))
	}
}

// Frame is one frame of application/vnd.amazon.eventstream: kind event or exception.
func Frame(kind, name, payload string) []byte {
	var h []byte
	for _, kv := range [][2]string{{":" + kind + "-type", name}, {":content-type", "application/json"}, {":message-type", kind}} {
		h = append(append(append(h, byte(len(kv[0]))), kv[0]...), 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(kv[1]))), kv[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
