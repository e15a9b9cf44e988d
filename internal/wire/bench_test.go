package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
)

// plainRecord is what encoding/json decodes a record into for comparison: no
// unknown or duplicate keys found, no enum, bound or amount checked.
type plainRecord struct {
	Tenant             string            `json:"tenant"`
	LogicalID          string            `json:"logical_id"`
	OperationStartedAt string            `json:"operation_started_at"`
	Hop                string            `json:"hop"`
	Attempt            *int32            `json:"attempt"`
	Revision           uint8             `json:"revision"`
	Cause              string            `json:"cause"`
	Service            string            `json:"service"`
	Environment        string            `json:"environment"`
	Operation          string            `json:"operation"`
	Provider           string            `json:"provider"`
	Model              string            `json:"model"`
	ResponseModel      string            `json:"response_model"`
	Endpoint           string            `json:"endpoint"`
	Stream             bool              `json:"stream"`
	IdempotencyKey     string            `json:"idempotency_key"`
	Fingerprint        string            `json:"fingerprint"`
	StartedAt          string            `json:"started_at"`
	DurationMS         *int64            `json:"duration_ms"`
	TTFBMS             *int64            `json:"ttfb_ms"`
	Outcome            string            `json:"outcome"`
	Delivery           string            `json:"delivery"`
	UpstreamCalls      *uint16           `json:"upstream_calls"`
	Status             *uint16           `json:"status"`
	ErrorClass         string            `json:"error_class"`
	ProviderErrorType  string            `json:"provider_error_type"`
	ProviderRequestID  string            `json:"provider_request_id"`
	RetryAfterMS       *int64            `json:"retry_after_ms"`
	DelayMS            *int64            `json:"delay_ms"`
	Final              *bool             `json:"final"`
	StopReason         string            `json:"stop_reason"`
	ServedBy           *int32            `json:"served_by"`
	ReplayOf           *int32            `json:"replay_of"`
	PromptTokens       *int64            `json:"prompt_tokens"`
	CompletionTokens   *int64            `json:"completion_tokens"`
	CachedPromptTokens *int64            `json:"cached_prompt_tokens"`
	CacheWriteTokens   *int64            `json:"cache_write_tokens"`
	ReasoningTokens    *int64            `json:"reasoning_tokens"`
	UsageSource        string            `json:"usage_source"`
	CostUSD            string            `json:"cost_usd"`
	CostSource         string            `json:"cost_source"`
	Attributes         map[string]string `json:"attributes"`
	Reason             string            `json:"reason"`
	Emitter            string            `json:"emitter"`
	Seq                *int64            `json:"seq"`
}

// BenchmarkRecord compares the whole way of a line, Decode + Normalize +
// Validate, with encoding/json into a struct and with jsontext reading the
// tokens and doing nothing with them, on usual lines and on one with every field.
func BenchmarkRecord(b *testing.B) {
	for name, lines := range map[string][][]byte{"usual": usualLines(512), "every_field": {[]byte(sample)}} {
		b.Run(name+"/decoder=wire", func(b *testing.B) { run(b, lines, wireRecord()) })
		b.Run(name+"/decoder=encoding_json", func(b *testing.B) { run(b, lines, encodingJSON()) })
		b.Run(name+"/decoder=jsontext_tokens_only", func(b *testing.B) { run(b, lines, jsontextTokens()) })
	}
}

func run(b *testing.B, lines [][]byte, decode func(line []byte) error) {
	var size int64
	for _, l := range lines {
		size += int64(len(l))
	}
	b.SetBytes(size / int64(len(lines)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := decode(lines[n%len(lines)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

func wireRecord() func([]byte) error {
	var d wire.Decoder
	var a retrylens.Attempt
	limits := retrylens.Limits{Now: now}
	return func(line []byte) error {
		if err := d.Decode(line, &a); err != nil {
			return err
		}
		a.Normalize()
		if err := a.Validate(limits); err != nil {
			return err
		}
		return nil
	}
}

func encodingJSON() func([]byte) error {
	return func(line []byte) error {
		var r plainRecord
		return json.Unmarshal(line, &r)
	}
}

func jsontextTokens() func([]byte) error {
	var buf bytes.Buffer
	dec := jsontext.NewDecoder(&buf)
	return func(line []byte) error {
		buf = *bytes.NewBuffer(line)
		dec.Reset(&buf, jsontext.AllowDuplicateNames(true))
		for dec.ReadToken(); dec.PeekKind() != '}'; {
			if _, err := dec.ReadValue(); err != nil {
				return err
			}
		}
		_, err := dec.ReadToken()
		return err
	}
}
