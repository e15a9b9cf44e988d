package wire_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/wire"
)

const (
	schemaFile = "../../schema/attempt.schema.json"
	recordFile = "../../docs/record.md"
	goldenFile = "../metrics/testdata/golden/attempts.ndjson"
)

func TestEverySourceNamesTheSameFieldsInTheSameOrder(t *testing.T) {
	for source, got := range map[string][]string{
		"schema":  schemaFields(t),
		"record":  documentFields(t),
		"encoder": encoderFields(t),
	} {
		if !slices.Equal(got, wire.Fields) {
			t.Errorf("%s:\n%v\ndecoder:\n%v", source, got, wire.Fields)
		}
	}
}

func schemaFields(t *testing.T) []string {
	t.Helper()
	var schema struct{ Properties json.RawMessage }
	if err := json.Unmarshal(readFile(t, schemaFile), &schema); err != nil {
		t.Fatal(err)
	}
	return keysOf(t, schema.Properties)
}

// documentFields are the keys of the record's tables: rows of five cells.
func documentFields(t *testing.T) []string {
	t.Helper()
	var fields []string
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\|(.*\\|){4}$")
	for line := range strings.Lines(string(readFile(t, recordFile))) {
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			fields = append(fields, m[1])
		}
	}
	return fields
}

// encoderFields are the keys of a record with everything set.
func encoderFields(t *testing.T) []string {
	t.Helper()
	a := decode(t, sample)
	a.ReplayOf = retrylens.Some[int32](0)
	return keysOf(t, a.AppendJSON(nil))
}

// keysOf lists the keys of an object in their order.
func keysOf(t *testing.T, object []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestTheSchemaHasTheEnumsOfTheDomain(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Description string
			Enum        []any
		}
	}
	if err := json.Unmarshal(readFile(t, schemaFile), &schema); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string][]any{
		"hop": anys(retrylens.Hops), "cause": anys(retrylens.Causes), "outcome": anys(retrylens.Outcomes), "delivery": anys(retrylens.Deliveries),
		"error_class": anys(retrylens.ErrorClasses), "stop_reason": anys(retrylens.StopReasons),
		"usage_source": anys(retrylens.UsageSources), "cost_source": anys(retrylens.CostSources),
	} {
		got := slices.DeleteFunc(slices.Clone(schema.Properties[field].Enum), func(v any) bool { return v == nil || v == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: schema has %v, the domain %v", field, got, want)
		}
	}
	for _, f := range wire.Fields {
		if schema.Properties[f].Description == "" {
			t.Errorf("%s has no description", f)
		}
	}
}

func anys[T ~string](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGoldenRecordsKeepTheSchema(t *testing.T) {
	schema := compileSchema(t)
	golden, err := os.ReadFile(goldenFile)
	if err != nil {
		golden = bytes.Join(append(usualLines(100), []byte(sample)), []byte("\n"))
	}
	n := 0
	for line := range bytes.Lines(golden) {
		n++
		if err := schema.Validate(unmarshal(t, line)); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		a := decode(t, string(line))
		a.Tenant = cmp.Or(a.Tenant, "default")
		a.Normalize()
		if err := a.Validate(limits); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		if err := schema.Validate(unmarshal(t, a.AppendJSON(nil))); err != nil {
			t.Fatalf("line %d, normalized: %v", n, err)
		}
	}
}

// TestTheSchemaRefusesWhatTheDecoderRefuses pins the rules that a schema can say.
func TestTheSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	schema := compileSchema(t)
	for _, members := range []string{
		`"promt_tokens":1`, `"tenant":""`, `"tenant":"` + strings.Repeat("x", 65) + `"`, `"hop":"Client"`, `"hop":""`, `"revision":256`, `"revision":-1`,
		`"cause":"policy"`, `"model":"a\u0000"`, `"stream":1`, `"operation_started_at":"2026-11-28"`, `"duration_ms":-1`, `"duration_ms":1.5`,
		`"duration_ms":9007199254740992`, `"delivery":"none"`, `"status":99`, `"status":600`, `"error_class":"timeout"`, `"replay_of":0`,
		`"prompt_tokens":1000000000001`, `"prompt_tokens":"1"`, `"cost_usd":"NaN"`, `"cost_usd":-1`, `"cost_usd":true`, `"cost_usd":100000000000000`,
		`"attributes":{"a":1}`, `"attributes":{"":"a"}`, `"hop":"gateway","served_by":0`, `"usage_source":""`,
	} {
		line := minimal(members)
		if schema.Validate(unmarshal(t, []byte(line))) == nil {
			t.Errorf("the schema takes %s", line)
		}
		if takes(t, line) {
			t.Errorf("the decoder takes %s", line)
		}
	}
	for _, members := range []string{
		"", `"tenant":"a","error_class":"","stop_reason":""`, `"status":0`, `"status":599`, `"cost_usd":1.5`, `"cost_usd":"1e-3"`, `"attributes":{}`,
		`"served_by":0`, `"delivery":"full"`, `"cause":"first"`, `"cause":null`, `"status":null,"hop":null,"attributes":null,"cost_usd":null`,
	} {
		line := minimal(members)
		if err := schema.Validate(unmarshal(t, []byte(line))); err != nil {
			t.Errorf("the schema refuses %s: %v", line, err)
		}
		if !takes(t, line) {
			t.Errorf("the decoder refuses %s", line)
		}
	}
}

func takes(t *testing.T, line string) bool {
	t.Helper()
	var d wire.Decoder
	var a retrylens.Attempt
	if d.Decode([]byte(line), &a) != nil {
		return false
	}
	a.Tenant = cmp.Or(a.Tenant, "default")
	a.Normalize()
	return a.Validate(limits) == nil
}

func unmarshal(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
