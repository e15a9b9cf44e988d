package sim_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/sim"
)

func TestTracesAreRead(t *testing.T) {
	want := []sim.Arrival{{At: 0, PromptTokens: 4808, CompletionTokens: 10}, {At: 52 * time.Millisecond, PromptTokens: 3180, CompletionTokens: 8}}
	for name, text := range map[string]string{
		"Azure 2023":    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8",
		"with a zone":   "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,4808,10\n2024-05-10 02:00:00.061930+02:00,3180,8\n",
		"RFC 3339":      "timestamp,prompt tokens,completion tokens\n2024-05-10T00:00:00.009930Z,4808,10\n2024-05-10T00:00:00.061930Z,3180,8\n",
		"seconds":       "Timestamp, Prompt Tokens, Completion Tokens\n5,4808,10\n5.052,3180,8\n",
		"other columns": "model,GeneratedTokens,ContextTokens,TIMESTAMP\ngpt,10,4808,5\n\"a,b\",8,3180,5.052\n",
		"BOM":           "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n5,4808,10\n5.052,3180,8\n",
		"out of order":  "TIMESTAMP,ContextTokens,GeneratedTokens\n5.052,3180,8\n5,4808,10\n",
	} {
		got, err := sim.ParseTrace(strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestBadRowsOfATraceAreNamed(t *testing.T) {
	const header = "TIMESTAMP,ContextTokens,GeneratedTokens\n5,1,1\n"
	for name, c := range map[string]struct {
		text   string
		line   int
		column string
	}{
		"empty":            {"", 1, ""},
		"header only":      {"TIMESTAMP,ContextTokens,GeneratedTokens\n", 2, ""},
		"column missing":   {"TIMESTAMP,ContextTokens\n", 1, ""},
		"short row":        {header + "5,1\n", 3, ""},
		"bad quotes":       {header + "5,\"1,1\n", 3, ""},
		"no time":          {header + "yesterday,1,1\n", 3, "timestamp"},
		"NaN":              {header + "NaN,1,1\n", 3, "timestamp"},
		"negative time":    {header + "-1,1,1\n", 3, "timestamp"},
		"year 9999":        {header + "9999-01-01 00:00:00,1,1\n", 3, "timestamp"},
		"negative prompt":  {header + "6,-1,1\n", 3, "prompt tokens"},
		"no prompt":        {header + "6,,1\n", 3, "prompt tokens"},
		"fraction":         {header + "6,1,1.5\n", 3, "completion tokens"},
		"far too many":     {header + "6,1,1000000001\n", 3, "completion tokens"},
		"beyond 64 bits":   {header + "6,1,99999999999999999999\n", 3, "completion tokens"},
		"after blank line": {header + "\n\n6,1,x\n", 5, "completion tokens"},
	} {
		_, err := sim.ParseTrace(strings.NewReader(c.text))
		var te *sim.TraceError
		if !errors.As(err, &te) || te.Column != c.column || te.Line != c.line {
			t.Errorf("%s: got %v, want line %d, column %q", name, err, c.line, c.column)
		}
	}
	if _, err := sim.ParseTrace(strings.NewReader(header + "4000000000,1,1\n")); err == nil {
		t.Error("a trace of a century was accepted")
	}
}

func FuzzParseTrace(f *testing.F) {
	for _, s := range []string{
		"", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n", "timestamp,prompt tokens,completion tokens\n1.5,2,3\n0,2,3",
		"TIMESTAMP,ContextTokens,GeneratedTokens\nInf,1,1", "a,b\n\"", "timestamp,prompt tokens,completion tokens\n1e300,1,1\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := sim.ParseTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, r := range rows {
			if r.At < 0 || i == 0 && r.At != 0 || i > 0 && r.At < rows[i-1].At || r.PromptTokens < 0 || r.CompletionTokens < 0 {
				t.Fatalf("row %d: %+v", i, r)
			}
		}
	})
}
