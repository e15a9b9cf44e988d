package wire_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

const sample = `{"tenant":"acme","logical_id":"op-1","operation_started_at":"2026-11-28T02:59:10.093Z","hop":"client","attempt":1,"revision":2,"cause":"policy",` +
	`"service":"agent","environment":"staging","operation":"plan","provider":"gemini","model":"gemini-2.5-flash","response_model":"gemini-2.5-flash-002","endpoint":"/v1/chat/completions",` +
	`"stream":true,"idempotency_key":"k-1","fingerprint":"sha256:00","started_at":"2026-11-28T02:59:12.093Z","duration_ms":2357,"ttfb_ms":210,` +
	`"outcome":"error","delivery":"none","upstream_calls":2,"status":429,"error_class":"rate_limited","provider_error_type":"RESOURCE_EXHAUSTED","provider_request_id":"r-1",` +
	`"retry_after_ms":1000,"delay_ms":812,"final":false,"stop_reason":"max_attempts","served_by":0,` +
	`"prompt_tokens":2419,"completion_tokens":2048,"cached_prompt_tokens":19,"cache_write_tokens":0,"reasoning_tokens":48,"usage_source":"provider",` +
	`"cost_usd":"0.001459012500","cost_source":"price_book","attributes":{"k":"v","ключ":"значение"},"reason":"too many requests","emitter":"client-agent-1","seq":485}`

// minimal returns a valid line with more members before its end.
func minimal(members string) string {
	line := `{"logical_id":"op-1","attempt":0,"provider":"openai","started_at":"2026-11-28T02:59:10Z","outcome":"success"`
	if members != "" {
		line += "," + members
	}
	return line + "}"
}

func decode(t *testing.T, line string) retrylens.Attempt {
	t.Helper()
	var d wire.Decoder
	var a retrylens.Attempt
	if err := d.Decode([]byte(line), &a); err != nil {
		t.Fatalf("Decode(%s): %v", line, err)
	}
	return a
}

func decodeError(t *testing.T, line string) *retrylens.FieldError {
	t.Helper()
	var d wire.Decoder
	var a retrylens.Attempt
	var fe *retrylens.FieldError
	if err := d.Decode([]byte(line), &a); !errors.As(err, &fe) {
		t.Fatalf("Decode(%.200s): got error %v, want a FieldError", line, err)
	}
	return fe
}

func TestEveryFieldIsReadAndWrittenBack(t *testing.T) {
	a := decode(t, sample)
	if got := string(a.AppendJSON(nil)); got != sample {
		t.Errorf("written back:\n%s\nwant:\n%s", got, sample)
	}
	for _, f := range wire.Fields {
		if f != "replay_of" && !strings.Contains(sample, `"`+f+`":`) {
			t.Errorf("the sample has no %s", f)
		}
	}
}

func TestMissingAndNullLeaveTheZeroValue(t *testing.T) {
	want := decode(t, minimal(""))
	if want.Tenant != "" || want.PromptTokens.Set || want.Status.Set || want.Final.Set {
		t.Fatalf("something is filled in: %+v", want)
	}
	for _, f := range wire.Fields {
		if strings.Contains(minimal(""), `"`+f+`"`) {
			continue
		}
		got := decode(t, minimal(`"`+f+`":null`))
		if string(got.AppendJSON(nil)) != string(want.AppendJSON(nil)) {
			t.Errorf("%s null: got %s", f, got.AppendJSON(nil))
		}
	}
}

func TestRefusedLines(t *testing.T) {
	for name, c := range map[string]struct{ line, field, reason string }{
		"empty":                  {"", "", "empty"},
		"blank":                  {"  ", "", "empty"},
		"array":                  {"[]", "", "not a JSON object: got an array"},
		"number":                 {"12", "", "not a JSON object: got a number"},
		"garbage":                {"hello", "", "not a JSON object"},
		"BOM":                    {"\ufeff" + minimal(""), "", "not a JSON object"},
		"two objects":            {minimal("") + minimal(""), "", "more data after the object"},
		"trailing comma":         {minimal("") + ",", "", "more data after the object"},
		"comma before the end":   {`{"attempt":0,}`, "", "invalid JSON: key expected"},
		"cut in a value":         {`{"logical_id":"op`, "logical_id", "invalid JSON: unexpected end of the line"},
		"cut in a literal":       {`{"stream":tr`, "stream", "invalid JSON: unexpected end of the line"},
		"cut in a key":           {`{"logical`, "", "invalid JSON: unexpected end of the line"},
		"cut after a key":        {`{"logical_id"`, "", "invalid JSON: unexpected end of the line"},
		"cut after a value":      {`{"logical_id":"a"`, "", "invalid JSON: unexpected end of the line"},
		"pretty-printed":         {`{`, "", "invalid JSON: unexpected end of the line"},
		"no colon":               {`{"attempt" 0}`, "", "invalid JSON: colon expected after the key"},
		"no comma":               {`{"attempt":0 "seq":0}`, "", "invalid JSON: comma or closing brace expected"},
		"key is no string":       {`{1:2}`, "", "invalid JSON: key expected"},
		"unknown key":            {minimal(`"promt_tokens":1`), "promt_tokens", "unknown key"},
		"unknown key, case":      {minimal(`"Tenant":"a"`), "Tenant", "unknown key"},
		"long unknown key":       {minimal(`"` + strings.Repeat("x", 9000) + `":1`), strings.Repeat("x", 64), "unknown key"},
		"duplicate key":          {minimal(`"attempt":0`), "attempt", "duplicate key"},
		"duplicate null":         {minimal(`"seq":null,"seq":1`), "seq", "duplicate key"},
		"duplicate escaped key":  {minimal(`"\u0061ttempt":0`), "attempt", "duplicate key"},
		"attempt missing":        {`{"logical_id":"a"}`, "attempt", "missing"},
		"attempt null":           {`{"attempt":null}`, "attempt", "missing"},
		"invalid UTF-8":          {minimal(`"model":"a` + "\xff" + `"`), "model", "invalid JSON: not UTF-8"},
		"invalid UTF-8, escapes": {minimal(`"model":"\n` + "\xc3" + `"`), "model", "invalid JSON: not UTF-8"},
		"encoded surrogate":      {minimal(`"model":"` + "\xed\xa0\x80" + `"`), "model", "invalid JSON: not UTF-8"},
		"lone high surrogate":    {minimal(`"model":"\ud800"`), "model", "invalid JSON: lone surrogate in a string"},
		"lone low surrogate":     {minimal(`"model":"\udc00xxxxxx"`), "model", "invalid JSON: lone surrogate in a string"},
		"surrogates swapped":     {minimal(`"model":"\udc00\ud800"`), "model", "invalid JSON: lone surrogate in a string"},
		"bad escape":             {minimal(`"model":"\x41"`), "model", "invalid JSON: malformed escape in a string"},
		"bad hex":                {minimal(`"model":"\u00g1"`), "model", "invalid JSON: malformed escape in a string"},
		"signed hex":             {minimal(`"model":"\u+123"`), "model", "invalid JSON: malformed escape in a string"},
		"hex with underscore":    {minimal(`"model":"\u1_23"`), "model", "invalid JSON: malformed escape in a string"},
		"raw control character":  {minimal("\"model\":\"a\tb\""), "model", "invalid JSON: control character in a string"},
		"NUL in a text":          {minimal("\"model\":\"a\x00b\""), "model", "invalid JSON: control character in a string"},
		"NUL between":            {minimal("\x00"), "", "invalid JSON: key expected"},
		"deep array":             {minimal(`"model":` + strings.Repeat("[", 30000)), "model", "wrong type: want a string, got an array"},
		"deep object":            {minimal(`"attributes":` + strings.Repeat(`{"a":`, 9000)), "attributes", "wrong type: want texts, got an object"},
		"text as number":         {minimal(`"model":1`), "model", "wrong type: want a string, got a number"},
		"empty required text":    {minimal(`"tenant":""`), "tenant", "must not be empty"},
		"number as text":         {minimal(`"prompt_tokens":"12"`), "prompt_tokens", "wrong type: want an integer, got a string"},
		"number as bool":         {minimal(`"prompt_tokens":true`), "prompt_tokens", "wrong type: want an integer, got true or false"},
		"bool as number":         {minimal(`"stream":1`), "stream", "wrong type: want true or false, got a number"},
		"time as number":         {minimal(`"operation_started_at":1764547200000`), "operation_started_at", "wrong type: want a string, got a number"},
		"attributes as array":    {minimal(`"attributes":["a"]`), "attributes", "wrong type: want an object, got an array"},
		"attribute as number":    {minimal(`"attributes":{"a":1}`), "attributes", "wrong type: want texts, got a number"},
		"attribute as null":      {minimal(`"attributes":{"a":null}`), "attributes", "wrong type: want texts, got null"},
		"attribute twice":        {minimal(`"attributes":{"a":"","a":""}`), "attributes", "duplicate key"},
		"attribute cut":          {`{"attributes":{"a":"b"`, "attributes", "invalid JSON: unexpected end of the line"},
		"fraction":               {minimal(`"seq":1.5`), "seq", "must be an integer without fraction or exponent, got 1.5"},
		"integral fraction":      {minimal(`"seq":1.0`), "seq", "must be an integer without fraction or exponent, got 1.0"},
		"exponent":               {minimal(`"seq":1e3`), "seq", "must be an integer without fraction or exponent, got 1e3"},
		"leading zero":           {minimal(`"seq":01`), "seq", "invalid JSON: malformed number"},
		"leading plus":           {minimal(`"seq":+1`), "seq", "invalid JSON: not a value"},
		"lone minus":             {minimal(`"seq":-`), "seq", "invalid JSON: malformed number"},
		"NaN":                    {minimal(`"seq":NaN`), "seq", "invalid JSON: not a value"},
		"negative tokens":        {minimal(`"prompt_tokens":-1`), "prompt_tokens", "must be within 0..1000000000000, got -1"},
		"tokens beyond":          {minimal(`"prompt_tokens":1000000000001`), "prompt_tokens", "must be within 0..1000000000000, got 1000000000001"},
		"beyond 53 bits":         {minimal(`"duration_ms":9007199254740992`), "duration_ms", "must be within 0..9007199254740991, got 9007199254740992"},
		"beyond 64 bits":         {minimal(`"seq":18446744073709551617`), "seq", "must be within 0..9007199254740991, got 18446744073709551617"},
		"below -64 bits":         {minimal(`"seq":-18446744073709551617`), "seq", "must be within 0..9007199254740991, got -18446744073709551617"},
		"revision beyond":        {minimal(`"revision":256`), "revision", "must be within 0..255, got 256"},
		"upstream_calls beyond":  {minimal(`"upstream_calls":65536`), "upstream_calls", "must be within 0..65535, got 65536"},
		"served_by beyond":       {minimal(`"served_by":2147483648`), "served_by", "must be within 0..2147483647, got 2147483648"},
		"negative status":        {minimal(`"status":-1`), "status", "must be 0 or within 100..599, got -1"},
		"status beyond":          {minimal(`"status":70000`), "status", "must be 0 or within 100..599, got 70000"},
		"unknown enum":           {minimal(`"delivery":"most"`), "delivery", `not one of its values: "most"`},
		"enum, case":             {minimal(`"delivery":"Full"`), "delivery", `not one of its values: "Full"`},
		"empty enum":             {minimal(`"delivery":""`), "delivery", `not one of its values: ""`},
		"cost NaN text":          {minimal(`"cost_usd":"NaN"`), "cost_usd", "not a decimal number"},
		"cost NaN":               {minimal(`"cost_usd":NaN`), "cost_usd", "invalid JSON: not a value"},
		"cost Infinity":          {minimal(`"cost_usd":"Infinity"`), "cost_usd", "not a decimal number"},
		"cost empty":             {minimal(`"cost_usd":""`), "cost_usd", "not a decimal number"},
		"cost hex":               {minimal(`"cost_usd":"0x1p-2"`), "cost_usd", "not a decimal number"},
		"cost negative":          {minimal(`"cost_usd":-0.01`), "cost_usd", "must not be negative"},
		"cost too fine":          {minimal(`"cost_usd":"0.0000000000001"`), "cost_usd", "more than 12 decimals"},
		"cost too large":         {minimal(`"cost_usd":"100000000000000"`), "cost_usd", "must be below 10^14 USD"},
		"cost true":              {minimal(`"cost_usd":true`), "cost_usd", "wrong type: want a decimal string or number, got true or false"},
		"time with space":        {minimal(`"operation_started_at":"2026-11-28 02:59:10Z"`), "operation_started_at", `not an RFC 3339 time: "2026-11-28 02:59:10Z"`},
		"time without zone":      {minimal(`"operation_started_at":"2026-11-28T02:59:10"`), "operation_started_at", `not an RFC 3339 time: "2026-11-28T02:59:10"`},
		"time with comma":        {minimal(`"operation_started_at":"2026-11-28T02:59:10,5Z"`), "operation_started_at", `not an RFC 3339 time: "2026-11-28T02:59:10,5Z"`},
		"time lower case":        {minimal(`"operation_started_at":"2026-11-28t02:59:10z"`), "operation_started_at", `not an RFC 3339 time: "2026-11-28t02:59:10z"`},
		"time short hour":        {minimal(`"operation_started_at":"2026-11-28T2:59:10Z"`), "operation_started_at", `not an RFC 3339 time: "2026-11-28T2:59:10Z"`},
		"30 February":            {minimal(`"operation_started_at":"2026-02-30T02:59:10Z"`), "operation_started_at", `not an RFC 3339 time: "2026-02-30T02:59:10Z"`},
		"leap second":            {minimal(`"operation_started_at":"2026-06-30T23:59:60Z"`), "operation_started_at", `not an RFC 3339 time: "2026-06-30T23:59:60Z"`},
		"zone beyond":            {minimal(`"operation_started_at":"2026-06-30T23:59:50+24:00"`), "operation_started_at", `not an RFC 3339 time: "2026-06-30T23:59:50+24:00"`},
		"time zero":              {minimal(`"operation_started_at":"0001-01-01T00:00:00Z"`), "operation_started_at", "before 2020-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			if fe := decodeError(t, c.line); fe.Field != c.field || fe.Reason != c.reason {
				t.Errorf("got %q: %q, want %q: %q", fe.Field, fe.Reason, c.field, c.reason)
			}
		})
	}
}

func TestAcceptedForms(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"white space":       {" \t{ \"attempt\" : 0 , \"model\":\"m\" }\r\n", `{"attempt":0,"model":"m"}`},
		"escapes":           {`{"attempt":0,"model":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00"}`, "{\"attempt\":0,\"model\":\"\\\"\\\\/\\u0008\\u000c\\u000a\\u000d\\u0009Aé😀\"}"},
		"escaped key":       {`{"\u0061ttempt":3}`, `{"attempt":3}`},
		"UTF-8":             {`{"attempt":0,"model":"ключ-значение"}`, `{"attempt":0,"model":"ключ-значение"}`},
		"offset":            {`{"attempt":0,"started_at":"2026-11-28T04:59:10.5+02:00"}`, `{"attempt":0,"started_at":"2026-11-28T02:59:10.500Z"}`},
		"nanoseconds":       {`{"attempt":0,"started_at":"2026-11-28T02:59:10.123999999Z"}`, `{"attempt":0,"started_at":"2026-11-28T02:59:10.123Z"}`},
		"minus zero":        {`{"attempt":-0,"seq":-0}`, `{"attempt":0,"seq":0}`},
		"cost as number":    {`{"attempt":0,"cost_usd":1.5e-3}`, `{"attempt":0,"cost_usd":"0.001500000000"}`},
		"zeros of the cost": {`{"attempt":0,"cost_usd":"1.0000000000000000"}`, `{"attempt":0,"cost_usd":"1.000000000000"}`},
		"empty enums":       {`{"attempt":0,"error_class":"","stop_reason":""}`, `{"attempt":0}`},
		"no attributes":     {`{"attempt":0,"attributes":{}}`, `{"attempt":0}`},
		"empty attribute":   {`{"attempt":0,"attributes":{"a":""}}`, `{"attempt":0,"attributes":{"a":""}}`},
		"integer bounds":    {`{"attempt":2147483647,"revision":255,"upstream_calls":65535,"prompt_tokens":1000000000000,"seq":9007199254740991}`, `{"attempt":2147483647,"revision":255,"upstream_calls":65535,"prompt_tokens":1000000000000,"seq":9007199254740991}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := decode(t, c.line)
			if got := string(a.AppendJSON(nil)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestADecoderIsReusedAfterAnError(t *testing.T) {
	var d wire.Decoder
	var a retrylens.Attempt
	for _, line := range []string{`{"attempt":1,"model":"x","seq":`, `{"seq":1}`, `{"zzz":1}`} {
		if d.Decode([]byte(line), &a) == nil {
			t.Fatalf("%s was accepted", line)
		}
	}
	buf := []byte(sample)
	if err := d.Decode(buf, &a); err != nil {
		t.Fatal(err)
	}
	clear(buf)
	if got := string(a.AppendJSON(nil)); got != sample {
		t.Errorf("the attempt refers to the line it came from: %s", got)
	}
}

func TestDecodeAllNamesTheLine(t *testing.T) {
	got, err := wire.DecodeAll(strings.NewReader(sample + "\r\n\n" + minimal("")))
	if err != nil || len(got) != 2 || got[1].Hop != retrylens.HopClient {
		t.Errorf("got %d attempts, %v", len(got), err)
	}
	if _, err := wire.DecodeAll(strings.NewReader(sample + "\n\n{}")); err == nil || err.Error() != "line 3: attempt: missing" {
		t.Errorf("got %v", err)
	}
}
