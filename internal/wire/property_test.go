package wire_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
)

// usualLines are n different records as emitters send them, 460 to 600 bytes.
func usualLines(n int) [][]byte {
	lines := make([][]byte, n)
	for i := range lines {
		a := retrylens.Attempt{
			Tenant: "acme", LogicalID: fmt.Sprintf("7-%06d-d8be9742", i), Attempt: int32(i % 3), Service: []string{"agent", "search", "checkout"}[i%3],
			Environment: "prod", Operation: "summarise", Provider: "openai", Model: "gpt-4o", Endpoint: "/v1/chat/completions",
			IdempotencyKey: fmt.Sprintf("k-7-%06d-d8be9742", i), StartedAt: now.Add(time.Duration(i-5000) * time.Second), OperationStartedAt: now.Add(time.Duration(i-5002) * time.Second),
			DurationMS: retrylens.Some(int64(1000 + i)), Outcome: retrylens.OutcomeSuccess, Status: retrylens.Some[uint16](200),
			Emitter: "client-agent-1", Seq: retrylens.Some(int64(i)),
			PromptTokens: retrylens.Some(int64(2000 + i)), CompletionTokens: retrylens.Some(int64(300)), CostUSD: retrylens.Some(retrylens.PicoUSD(uint64(1459012500 + i))),
		}
		if i%5 == 4 {
			a.Outcome, a.ErrorClass, a.Status = retrylens.OutcomeError, retrylens.ClassOverloaded, retrylens.Some[uint16](529)
			a.PromptTokens, a.CompletionTokens, a.CostUSD = retrylens.Opt[int64]{}, retrylens.Opt[int64]{}, retrylens.Opt[retrylens.Money]{}
			a.ProviderErrorType, a.DelayMS = "overloaded_error", retrylens.Some(int64(812))
			a.Normalize() // the longest: every default written out
		}
		lines[i] = a.AppendJSON(nil)
	}
	return lines
}

func TestWrittenRecordsAreReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawAttempt(t)
		want.Normalize()
		line := want.AppendJSON(nil)
		var d wire.Decoder
		var got retrylens.Attempt
		if err := d.Decode(line, &got); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if again := got.AppendJSON(nil); !bytes.Equal(again, line) {
			t.Fatalf("read back as\n%s\nwant\n%s", again, line)
		}
		if got.Normalize(); got.ContentHash() != want.ContentHash() {
			t.Fatalf("another content hash after the way through %s", line)
		}
	})
}

// drawAttempt draws an attempt that the decoder takes; Validate need not.
func drawAttempt(t *rapid.T) retrylens.Attempt {
	text := func(name string) string { return rapid.StringN(0, 12, -1).Draw(t, name) }
	name := func(name string) string { return rapid.StringN(1, 12, -1).Draw(t, name) }
	count := func(name string, limit int64) retrylens.Opt[int64] {
		return retrylens.Opt[int64]{Value: rapid.Int64Range(0, limit).Draw(t, name), Set: true}
	}
	start := time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "start"))
	a := retrylens.Attempt{
		Tenant: name("tenant"), LogicalID: name("logical_id"), Provider: name("provider"), Hop: rapid.SampledFrom(retrylens.Hops).Draw(t, "hop"),
		Attempt: rapid.Int32Range(0, 1<<31-1).Draw(t, "attempt"), Revision: rapid.Uint8().Draw(t, "revision"), Cause: rapid.SampledFrom(retrylens.Causes).Draw(t, "cause"),
		Service: text("service"), Model: text("model"), Endpoint: text("endpoint"), Stream: rapid.Bool().Draw(t, "stream"), IdempotencyKey: text("idempotency_key"),
		StartedAt: start, OperationStartedAt: start.Add(-time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "earlier"))),
		Outcome: rapid.SampledFrom(retrylens.Outcomes).Draw(t, "outcome"), ErrorClass: rapid.SampledFrom(retrylens.ErrorClasses).Draw(t, "error_class"),
		DurationMS: count("duration_ms", retrylens.MaxInteger), PromptTokens: count("prompt_tokens", retrylens.MaxTokens), Seq: count("seq", retrylens.MaxInteger),
		Attributes: rapid.MapOfN(rapid.StringN(0, 8, -1), rapid.String(), 0, retrylens.MaxAttributes).Draw(t, "attributes"), Reason: text("reason"),
	}
	if rapid.Bool().Draw(t, "cost") {
		a.CostUSD = retrylens.Some(retrylens.PicoUSD(rapid.Uint64().Draw(t, "pico")))
	}
	if rapid.Bool().Draw(t, "status") {
		a.Status = retrylens.Some(rapid.Uint16().Draw(t, "status"))
	}
	return a
}

var limits = retrylens.Limits{Now: now}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(sample))
	for _, members := range []string{
		"", `"attributes":{"a":"b"}`, `"model":"\ud83d\ude00\n"`, `"cost_usd":1e-12`, `"seq":-0`, `"stream":null`, `"zz":[[[[{}]]]]`, "\"model\":\"\xff\"",
		`"operation_started_at":"2026-11-28T04:59:10.123456789+02:00"`, `"status":0`, `"error_class":""`, `"attempt":0`,
	} {
		f.Add([]byte(minimal(members)))
	}
	for _, s := range []string{"", " ", "[]", "{}", `{"`, "\ufeff{}", "{}{}", `{"a":1,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(checkDecode)
}

// checkDecode holds for any line: no panic, a named field on refusal, no
// acceptance of what is not JSON, and what is accepted is stable.
func checkDecode(t *testing.T, line []byte) {
	var d wire.Decoder
	var a retrylens.Attempt
	if err := d.Decode(line, &a); err != nil {
		if len(err.Error()) > 1000 {
			t.Fatalf("the error holds too much of the line: %d bytes", len(err.Error()))
		}
		return
	}
	if err := libraryAccepts(line); err != nil {
		t.Fatalf("accepted, and jsontext says %v: %q", err, line)
	}
	if a.Tenant == "" {
		a.Tenant = "default"
	}
	a.Normalize()
	if a.Validate(limits) != nil {
		return
	}
	once := a.AppendJSON(nil)
	var b retrylens.Attempt
	if err := d.Decode(once, &b); err != nil {
		t.Fatalf("what was written is refused: %v: %s", err, once)
	}
	b.Normalize()
	if err := b.Validate(limits); err != nil {
		t.Fatalf("what was written is not valid: %v: %s", err, once)
	}
	if twice := b.AppendJSON(nil); !bytes.Equal(once, twice) || a.Version() != b.Version() {
		t.Fatalf("not stable:\n%s\n%s", once, twice)
	}
}

// libraryAccepts tells whether line is one value of strict JSON without
// duplicate keys.
func libraryAccepts(line []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(line))
	if _, err := dec.ReadValue(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return fmt.Errorf("more data: %v", err)
	}
	return nil
}

// TestSyntaxVerdictsAgreeWithTheLibrary puts random bytes into the place of a
// text, the only value that may be anything, so that every refusal is one of
// syntax or of type.
func TestSyntaxVerdictsAgreeWithTheLibrary(t *testing.T) {
	alphabet := []string{`\`, `"`, "u", "d83d", "de00", "dc00", "n", "/", "\x1f", "\x7f", "\x80", "\xc3", "\xa9", "é", "😀", " ", "0041", "b"}
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(t, "body"), "")
		line := []byte(`{"attempt":0,"model":"` + body + `"}`)
		var d wire.Decoder
		var a retrylens.Attempt
		ours, theirs := d.Decode(line, &a), libraryAccepts(line)
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("%q: ours %v, the library's %v", line, ours, theirs)
		}
	})
}
