package usage_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/usage"
)

// told is all that a reader tells, comparable.
type told struct {
	prompt, completion, cached, write, reasoning int64 // -1: not reported
	model, cost                                  string
	content, answered, generative, complete      bool
	contents                                     int
	telling                                      bool
}

func read(f usage.Format, body []byte, cut func() int) told {
	var r usage.Reader
	r.Reset(f)
	for len(body) > 0 {
		n := min(len(body), max(1, cut()))
		r.Write(body[:n])
		body = body[n:]
	}
	r.End()
	return tell(&r)
}

func tell(r *usage.Reader) told {
	t := r.Tokens()
	out := told{
		prompt: t.Prompt.Or(-1), completion: t.Completion.Or(-1), cached: t.CachedPrompt.Or(-1), write: t.CacheWrite.Or(-1), reasoning: t.Reasoning.Or(-1),
		model: string(r.Model()), content: r.Content(), answered: r.Answered(), generative: r.Generative(), complete: r.Complete(),
		contents: r.Contents(), telling: r.Telling() != nil,
	}
	if c := r.CostUSD(); c.Set {
		out.cost = c.Value.String()
	}
	return out
}

func frame(headers map[string]string, payload string) []byte {
	var h []byte
	for _, k := range []string{":message-type", ":event-type", ":exception-type"} {
		if v := headers[k]; v != "" {
			h = append(append(h, byte(len(k))), k...)
			h = append(h, 7)
			h = binary.BigEndian.AppendUint16(h, uint16(len(v)))
			h = append(h, v...)
		}
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func eventFrame(name, payload string) []byte {
	return frame(map[string]string{":message-type": "event", ":event-type": name}, payload)
}

func chunkFrame(doc string) []byte {
	return eventFrame("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(doc))+`","p":"abc"}`)
}

func join(parts ...[]byte) string { return string(bytes.Join(parts, nil)) }

var shapes = []struct {
	name   string
	format usage.Format
	body   string
	want   told
}{
	{"openai chat", usage.JSON, `{"id":"c","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"Hi \"there\"","refusal":null},"finish_reason":"stop"}],
	 "usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":7}}}`,
		told{100, 20, 64, -1, 7, "gpt-5", "", true, true, true, true, 1, false}},
	{"openai chat stream", usage.Events, `data: {"id":"c","model":"gpt-5","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}

data: {"id":"c","model":"gpt-5","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"usage":null}

data: {"id":"c","model":"gpt-5","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"c","model":"gpt-5","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}

data: [DONE]

`, told{9, 3, -1, -1, -1, "gpt-5", "", true, true, true, true, 2, false}},
	{"openai tool call stream", usage.Events, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"usage\\\"\"}}]}}]}\r\n\r\ndata: [DONE]\r\n\r\n",
		told{-1, -1, -1, -1, -1, "", "", true, true, true, true, 2, false}},
	{"openai responses stream", usage.Events, "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"o5\",\"status\":\"in_progress\",\"error\":null,\"usage\":null,\"text\":{\"format\":{\"type\":\"text\"}}}}\n\n" +
		"event: response.reasoning_summary_text.delta\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"hm\"}\n\n" +
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"model\":\"o5-1\",\"status\":\"completed\",\"error\":null,\"incomplete_details\":null,\"usage\":{\"input_tokens\":50,\"input_tokens_details\":{\"cached_tokens\":10},\"output_tokens\":30,\"output_tokens_details\":{\"reasoning_tokens\":25},\"total_tokens\":80}}}\n\n",
		told{50, 30, 10, -1, 25, "o5-1", "", true, true, true, true, 3, false}},
	{"openai responses incomplete by a filter", usage.Events, "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}}}\n\n",
		told{-1, -1, -1, -1, -1, "", "", false, false, true, true, 1, true}},
	{"openai responses failed", usage.Events, "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"x\"}}}\n\n",
		told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, true}},
	{"anthropic", usage.JSON, `{"id":"m","type":"message","role":"assistant","model":"claude","content":[{"type":"tool_use","id":"t","name":"usage","input":{"usage":{"input_tokens":999},"error":"no","model":"fake"}}],"stop_reason":"tool_use",
	 "usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":80,"cache_creation":{"ephemeral_5m_input_tokens":5},"output_tokens":12,"service_tier":"standard"}}`,
		told{95, 12, 80, 5, -1, "claude", "", true, true, true, true, 1, false}},
	{"anthropic stream", usage.Events, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"model\":\"claude\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":0,\"output_tokens\":3}}}\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		": comment\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":8}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":0,\"output_tokens\":2}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		told{125, 2, 100, 0, -1, "claude", "", true, true, true, true, 2, false}},
	{"anthropic error first", usage.Events, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
		told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, true}},
	{"anthropic refusal", usage.JSON, `{"type":"message","content":[],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":1}}`,
		told{1, 1, -1, -1, -1, "", "", false, false, true, true, 0, true}},
	{"gemini", usage.JSON, `{"candidates":[{"content":{"parts":[{"text":"think","thought":true},{"functionCall":{"name":"f","args":{"text":"x","error":"y"}}}],"role":"model"},"finishReason":"STOP","index":0}],
	 "usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":10,"thoughtsTokenCount":30,"toolUsePromptTokenCount":6,"totalTokenCount":146,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]},"modelVersion":"gemini-3"}`,
		told{106, 40, 40, -1, 30, "gemini-3", "", true, true, true, true, 1, false}},
	{"gemini thoughts inside candidates", usage.JSON, `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":40,"thoughtsTokenCount":30,"totalTokenCount":140}}`,
		told{100, 40, -1, -1, 30, "", "", true, true, true, true, 1, false}},
	{"gemini only thinking", usage.JSON, `{"candidates":[{"content":{"parts":[{"text":"a","thought":true}]},"finishReason":"STOP"}]}`,
		told{-1, -1, -1, -1, -1, "", "", true, false, true, true, 1, false}},
	{"gemini stream", usage.Events, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"a\"}]}}],\"usageMetadata\": {\"promptTokenCount\": 5,\"candidatesTokenCount\": 1}}\r\n\r\ndata: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"b\"}]},\"finishReason\": \"STOP\"}],\"usageMetadata\": {\"promptTokenCount\": 5,\"candidatesTokenCount\": 4,\"thoughtsTokenCount\": 6,\"totalTokenCount\": 15}}\r\n\r\n",
		told{5, 10, -1, -1, 6, "", "", true, true, true, true, 2, false}},
	{"gemini list of chunks", usage.JSON, `[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},` + "\n" + `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}]`,
		told{5, 2, -1, -1, -1, "", "", true, true, true, true, 1, false}},
	{"gemini blocked", usage.JSON, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}`,
		told{5, -1, -1, -1, -1, "", "", false, false, true, true, 0, true}},
	{"gemini stray error", usage.Events, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n{\n \"error\": {\n  \"code\": 503,\n  \"status\": \"UNAVAILABLE\"\n }\n}\n",
		told{-1, -1, -1, -1, -1, "", "", true, true, true, false, 1, true}},
	{"bedrock converse", usage.JSON, `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":45,"cacheReadInputTokens":20,"cacheWriteInputTokens":10},"metrics":{"latencyMs":100}}`,
		told{40, 5, 20, 10, -1, "", "", true, true, true, true, 1, false}},
	{"bedrock converse stream", usage.Frames, join(eventFrame("messageStart", `{"role":"assistant"}`), eventFrame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hi"}}`),
		eventFrame("messageStop", `{"stopReason":"end_turn"}`), eventFrame("metadata", `{"usage":{"inputTokens":7,"outputTokens":2,"totalTokens":9},"metrics":{"latencyMs":3}}`)),
		told{7, 2, -1, -1, -1, "", "", true, true, true, true, 2, false}},
	{"bedrock tool stream", usage.Frames, join(eventFrame("contentBlockStart", `{"start":{"toolUse":{"toolUseId":"t","name":"f"}}}`), eventFrame("contentBlockDelta", `{"delta":{"toolUse":{"input":"{\"usage\":1}"}}}`), eventFrame("messageStop", `{"stopReason":"tool_use"}`)),
		told{-1, -1, -1, -1, -1, "", "", true, true, true, true, 3, false}},
	{"bedrock exception", usage.Frames, join(frame(map[string]string{":message-type": "exception", ":exception-type": "throttlingException"}, `{"message":"slow down"}`)),
		told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, true}},
	{"bedrock invoke stream", usage.Frames, join(chunkFrame(`{"type":"message_start","message":{"model":"claude","usage":{"input_tokens":4,"output_tokens":1}}}`), chunkFrame(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`),
		chunkFrame(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":6}}`), chunkFrame(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":4,"outputTokenCount":6,"invocationLatency":9,"cacheReadInputTokenCount":3}}`)),
		told{7, 6, 3, -1, -1, "claude", "", true, true, true, true, 2, false}},
	{"cohere", usage.JSON, `{"message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":5,"output_tokens":2},"tokens":{"input_tokens":70.0,"output_tokens":3}}}`,
		told{70, 3, -1, -1, -1, "", "", true, true, true, true, 1, false}},
	{"cohere v1 billed only", usage.JSON, `{"text":"Hi","finish_reason":"COMPLETE","meta":{"billed_units":{"input_tokens":5,"output_tokens":2}}}`,
		told{5, 2, -1, -1, -1, "", "", true, true, true, true, 1, false}},
	{"ollama", usage.Lines, "{\"model\":\"l\",\"message\":{\"content\":\"Hi\"},\"done\":false}\n{\"model\":\"l\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":4}\n",
		told{26, 4, -1, -1, -1, "l", "", true, true, true, true, 2, false}},
	{"openrouter", usage.JSON, `{"model":"a/b","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"cost":0.00014}}`,
		told{1, 2, -1, -1, -1, "a/b", "0.000140000000", true, true, true, true, 1, false}},
	{"openrouter error as the only chunk", usage.Events, "data: {\"error\":{\"code\":502,\"message\":\"up\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n",
		told{-1, -1, -1, -1, -1, "", "", false, false, true, false, 0, true}},
	{"groq", usage.Events, "data: {\"choices\":[],\"x_groq\":{\"id\":\"r\",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}}\n\ndata: [DONE]\n\n",
		told{3, 4, -1, -1, -1, "", "", false, false, true, true, 1, false}},
	{"a list of models", usage.JSON, `{"object":"list","data":[{"id":"gpt","object":"model"}]}`,
		told{-1, -1, -1, -1, -1, "", "", false, false, false, true, 1, false}},
	{"anthropic behind an OpenAI format: a total and its parts", usage.JSON, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":4,"total_tokens":1004,"prompt_tokens_details":{"cached_tokens":900},"cache_read_input_tokens":900,"cache_creation_input_tokens":50}}`,
		told{1000, 4, 900, 50, -1, "", "", true, true, true, true, 1, false}},
	{"anthropic behind an OpenAI format: the parts beside it", usage.JSON, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":4,"cache_read_input_tokens":900,"cache_creation_input_tokens":50}}`,
		told{960, 4, 900, 50, -1, "", "", true, true, true, true, 1, false}},
	{"a byte order mark", usage.Events, "\ufeffdata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n",
		told{3, -1, -1, -1, -1, "", "", true, true, true, true, 2, false}},
	{"a byte order mark before a name", usage.Events, "\ufeffevent: error\ndata: {\"message\":\"x\"}\n\n",
		told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, true}},
	{"parts above their total", usage.JSON, `{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens":-4}}`,
		told{1, -1, -1, -1, -1, "", "", false, false, true, true, 0, false}},
	{"data of several lines, CR alone, no blank line at the end", usage.Events, ": hi\rdata: {\"choices\":\rdata: [{\"delta\":{\"content\":\"a\"}}]}\r\rdata:[DONE]",
		told{-1, -1, -1, -1, -1, "", "", true, true, true, true, 2, false}},
	{"alike events", usage.Events, "data: " + strings.Join([]string{`{"n":1,"choices":[{"delta":{"content":"a"}}],"o":"xx","usage":{"completion_tokens":1}}`, `{"n":2,"choices":[{"delta":{"content":"bc"}}],"o":"y","usage":{"completion_tokens":2}}`,
		`{"n":3,"choices":[{"delta":{"content":"d"}}],"o":"","usage":{"completion_tokens":3}}`, `{"n":4,"choices":[{"delta":{"content":""}}],"o":"z","usage":{"completion_tokens":3}}`,
		`{"n":5,"choices":[{"delta":{"content":"e\"f"}}],"o":"z","usage":{"completion_tokens":14}}`, `{"n":5,"choices":[{"delta":{"content":"g"}}],"o":"z","usage":{"completion_tokens":null}}`,
		`{"n":6,"choices":[{"delta":{"content":"h"}}],"o":"z","usage":{"completion_tokens":15},"error":"x"}`, `{"n":7,"choices":[{"delta":{"content":"h"}}],"o":"z","usage":{"completion_tokens":16}}`}, "\n\ndata: "),
		told{-1, 16, -1, -1, -1, "", "", true, true, true, false, 7, true}},
	{"cut inside", usage.JSON, `{"choices":[{"message":{"content":"Hi`, told{-1, -1, -1, -1, -1, "", "", false, false, true, false, 0, false}},
	{"nothing", usage.JSON, ``, told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, false}},
	{"words", usage.JSON, `upstream connect error`, told{-1, -1, -1, -1, -1, "", "", false, false, false, false, 0, false}},
}

func TestShapes(t *testing.T) {
	for _, c := range shapes {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "a list of models" {
				c.want.contents = 0
			}
			if got := read(c.format, []byte(c.body), func() int { return len(c.body) }); got != c.want {
				t.Errorf("whole:\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestFinal: figures are the provider's last word once the answer is complete, or where the
// event that ends a failed one tells them, wherever its type stands; what came before it, or an
// answer that only breaks off, is a lower bound.
func TestFinal(t *testing.T) {
	const begun = "data: {\"type\":\"response.in_progress\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}\n\n" +
		"data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n"
	for body, want := range map[string]bool{
		begun: false,
		begun + "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}\n\n":          true,
		begun + "data: {\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":3},\"status\":\"failed\"},\"type\":\"response.failed\"}\n\n":                                                true,
		begun + "data: {\"type\":\"response.cancelled\",\"response\":{\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}\n\n":                                                                   true,
		begun + "data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"usage\":{\"output_tokens\":3}}}\n\n": true,
		begun + "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"usage\":null}}\n\n":                                              false,
		begun + "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}\n\n":                                                                                        false,
	} {
		for cut := 1; cut <= len(body); cut += 13 {
			var r usage.Reader
			r.Reset(usage.Events)
			r.Write([]byte(body[:cut]))
			r.Write([]byte(body[cut:]))
			r.End()
			if r.Final() != want {
				t.Errorf("final: %v, want %v, cut at %d of\n%s", r.Final(), want, cut, body)
			}
		}
	}
}

// TestCuts: wherever the network cuts a body, the same is read.
func TestCuts(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, c := range shapes {
		whole := read(c.format, []byte(c.body), func() int { return len(c.body) })
		for _, cut := range []func() int{func() int { return 1 }, func() int { return 2 }, func() int { return 1 + rnd.IntN(40) }, func() int { return 1 + rnd.IntN(7) }} {
			if got := read(c.format, []byte(c.body), cut); got != whole {
				t.Errorf("%s, seed %d:\n got %+v\nwant %+v", c.name, seed, got, whole)
			}
		}
	}
}

// TestCutsOfWhatIsBroken: the same of bodies that no provider should send, and none of them
// brings the process down.
func TestCutsOfWhatIsBroken(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 3))
	splices := []string{"\r", "\n", "\r\n", "\n\n", `"`, `\`, `\"`, "{", "}", "[", "]", "data:", "\ndata: ", "event: error\n", ":", ",", "null", "\xc3", "é", `\u00e9`, "[DONE]", "-1", "1e3", " ", `"usage":`, `"error":`, "\ufeff", "\x00", ": keep-alive\n\n"}
	for range 30_000 {
		c := shapes[rnd.IntN(len(shapes))]
		body := []byte(strings.Repeat(c.body, 1+rnd.IntN(3)))
		for range rnd.IntN(4) {
			i := rnd.IntN(len(body) + 1)
			end := min(len(body), i+1+rnd.IntN(200))
			switch rnd.IntN(4) {
			case 0:
				body = slices.Concat(body[:i], []byte(splices[rnd.IntN(len(splices))]), body[i:])
			case 1: // lost
				body = slices.Concat(body[:i], body[end:])
			case 2: // twice
				body = slices.Concat(body[:end], body[i:])
			case 3:
				body = slices.Concat(body[:i], []byte{byte(rnd.IntN(256))}, body[end:])
			}
		}
		whole := read(c.format, body, func() int { return len(body) })
		for _, cut := range []func() int{func() int { return 1 }, func() int { return 1 + rnd.IntN(60) }} {
			if got := read(c.format, body, cut); got != whole {
				t.Fatalf("%s, seed %d: %q\n got %+v\nwant %+v", c.name, seed, body, got, whole)
			}
		}
	}
}

// TestKeepAlivesAreNoContent: whatever came before them, in whatever pieces.
func TestKeepAlivesAreNoContent(t *testing.T) {
	for _, alive := range []string{": keep-alive\n\n", "\n", "\r\n", "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: ping\ndata: {}\n\n", ":\n"} {
		var r usage.Reader
		r.Reset(usage.Events)
		for i := range 5 {
			r.Write([]byte(chatChunk))
			for range 3 {
				r.Write([]byte(alive))
			}
			if got := r.Contents(); got != i+1 {
				t.Errorf("after %q: %d events with content, want %d", alive, got, i+1)
			}
		}
	}
}

// TestTelling: the event that tells of a failure is kept as it came, the first of them.
func TestTelling(t *testing.T) {
	first := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n"
	var r usage.Reader
	r.Reset(usage.Events)
	r.Write([]byte("data: {\"type\":\"message_start\"}\n\n" + first + "\nevent: error\ndata: {\"error\":\"later\"}\n\n"))
	if got := string(r.Telling()); got != first {
		t.Errorf("got %q, want %q", got, first)
	}
	long := `{"choices":[{"message":{"content":"` + strings.Repeat("x", 100_000) + `"},"finish_reason":"content_filter"}]}`
	r.Reset(usage.JSON)
	r.Write([]byte(long))
	if got, want := string(r.Telling()), `{"choices":[{"finish_reason":"content_filter"}]}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrongChecksumEndsTheReading(t *testing.T) {
	good := eventFrame("messageStop", `{"stopReason":"end_turn"}`)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if got := read(usage.Frames, bad, func() int { return 5 }); got.complete {
			t.Errorf("byte %d flipped: complete", i)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for _, c := range []struct {
		contentType, encoding string
		want                  usage.Format
	}{
		{"application/json; charset=utf-8", "", usage.JSON}, {"text/event-stream", "identity", usage.Events}, {"Text/Event-Stream;x", "", usage.Events},
		{"application/json", "gzip", usage.Opaque}, {"audio/mpeg", "", usage.Opaque}, {"application/problem+json", "", usage.JSON},
		{"application/vnd.amazon.eventstream", "", usage.Frames}, {"application/x-ndjson", "", usage.Lines}, {"", "", usage.Opaque},
	} {
		if got := usage.FormatOf(c.contentType, c.encoding); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.contentType, c.encoding, got, c.want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	chunk := []byte(chatChunk)
	var r usage.Reader
	r.Reset(usage.Events)
	r.Write(chunk)
	if n := testing.AllocsPerRun(1000, func() { r.Write(chunk) }); n != 0 {
		t.Errorf("%v allocations per chunk", n)
	}
}

const chatChunk = `data: {"id":"chatcmpl-BnZ3kq8wV0y1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini-2026-08-07","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}],"usage":null}` + "\n\n"

func BenchmarkChunk(b *testing.B) {
	for _, c := range []struct {
		name   string
		format usage.Format
		body   string
	}{
		{"openai", usage.Events, chatChunk},
		{"anthropic", usage.Events, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n"},
		{"gemini", usage.Events, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" token\"}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 5,\"candidatesTokenCount\": 4,\"totalTokenCount\": 9},\"modelVersion\": \"gemini-3-flash\"}\r\n\r\n"},
		{"bedrock", usage.Frames, string(eventFrame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghij"}`))},
	} {
		b.Run(c.name, func(b *testing.B) {
			var r usage.Reader
			r.Reset(c.format)
			chunk := []byte(c.body)
			b.SetBytes(int64(len(chunk)))
			b.ReportAllocs()
			for b.Loop() {
				r.Write(chunk)
			}
		})
	}
}

func FuzzReader(f *testing.F) {
	for _, c := range shapes {
		f.Add(uint8(c.format), []byte(c.body), uint64(3))
	}
	f.Fuzz(func(t *testing.T, format uint8, body []byte, seed uint64) {
		kind := usage.Format(format % 5)
		rnd := rand.New(rand.NewPCG(seed, 2))
		whole := read(kind, body, func() int { return len(body) })
		if cut := read(kind, body, func() int { return 1 + rnd.IntN(9) }); cut != whole {
			t.Fatalf("cut differs:\n got %+v\nwant %+v", cut, whole)
		}
		for _, n := range []int64{whole.prompt, whole.completion, whole.cached, whole.write, whole.reasoning} {
			if n < -1 || n > retrylens.MaxTokens {
				t.Fatalf("token figure out of range: %+v", whole)
			}
		}
		if whole.prompt >= 0 && max(0, whole.cached)+max(0, whole.write) > whole.prompt || whole.completion >= 0 && whole.reasoning > whole.completion {
			t.Fatalf("parts exceed the total: %+v", whole)
		}
	})
}

func ExampleReader() {
	var r usage.Reader
	r.Reset(usage.FormatOf("text/event-stream", ""))
	r.Write([]byte("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\n"))
	r.Write([]byte("event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":15}}\n\n"))
	t := r.Tokens()
	fmt.Println(t.Prompt.Value, t.CachedPrompt.Value, t.Completion.Value, r.Complete())
	// Output: 125 100 15 false
}
