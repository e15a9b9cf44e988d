package usage_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/retrylens/retrylens/retry/usage"
)

func TestReadRequest(t *testing.T) {
	for _, c := range []struct {
		body, model string
		stream      bool
	}{
		{`{"model":"gpt-5","stream":true}`, "gpt-5", true},
		{` { "messages": [{"role":"user","content":"{\"model\":\"x\",\"stream\":true}"}], "model" : "m" , "stream" : false }`, "m", false},
		{`{"tools":[{"model":"x","stream":true}],"input":{"model":"y"}}`, "", false},
		{`{"stream_options":{"include_usage":true},"stream":true}`, "", true},
		{`{"model":null,"stream":null}`, "", false},
		{`{"a":"\\","model":"m"}`, "m", false},
		{`{"model":"cut`, "cut", false},
		{`[{"model":"x"}]`, "", false}, {``, "", false}, {`model`, "", false},
	} {
		got := usage.ReadRequest([]byte(c.body))
		if string(got.Model) != c.model || got.Stream != c.stream {
			t.Errorf("%s: %q %t", c.body, got.Model, got.Stream)
		}
	}
}

// FuzzReadRequest holds it to encoding/json on bodies that this one reads.
func FuzzReadRequest(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"model":"x"}],"model":"m","stream":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := usage.ReadRequest(body)
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			return
		}
		var model string
		if raw := want["model"]; json.Unmarshal(raw, &model) == nil && string(raw) == `"`+model+`"` && len(model) <= 128 && string(got.Model) != model {
			t.Fatalf("%s: %q, want %q", body, got.Model, model)
		}
	})
}

func ExampleReadRequest() {
	r := usage.ReadRequest([]byte(`{"model":"gpt-5-mini","stream":true}`))
	fmt.Println(string(r.Model), r.Stream)
	// Output: gpt-5-mini true
}

func ExampleFormatOf() {
	f := usage.FormatOf("text/event-stream; charset=utf-8", "")
	fmt.Println(f == usage.Events, f.Stream())
	// Output: true true
}
