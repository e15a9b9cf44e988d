package expr_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
)

// values by the text of their reference; what is not there has no value.
type values map[string]float64

func (v values) Figure(r expr.Ref) (float64, bool) { f, ok := v[r.String()]; return f, ok }

// State: masked is true, calm is false, anything else is not known.
func (v values) State(name string) expr.Truth {
	switch name {
	case "masked":
		return expr.True
	case "calm":
		return expr.False
	}
	return expr.Unknown
}

func TestEval(t *testing.T) {
	v := values{
		"amplification[5m]": 1.3, "amplification[1m]": 1.2, "operations[5m]": 50, "errors_by_class{timeout}[1h]": 3,
		"attempts_by_position{9}[5m]": 2, "records_missing": 7, "zero[5m]": 0, "inf[5m]": math.Inf(1),
	}
	for text, want := range map[string]expr.Truth{
		"amplification[5m] > 1.2":                          expr.True,
		"amplification[1m] > 1.2":                          expr.False,
		"amplification[1m] >= 1.2":                         expr.True,
		"amplification[300s] > 1.2":                        expr.True, // the same window
		"amplification[5m] > 1.2 and operations[5m] >= 50": expr.True,
		"amplification[5m] > 1.2 and operations[5m] >= 51": expr.False,
		"errors_by_class{timeout}[1h] == 3":                expr.True,
		"attempts_by_position{9}[5m] != 2":                 expr.False,
		"records_missing / operations[5m] > 0.1":           expr.True,
		"1 + 2 * 3 - 4 / 2 == 5":                           expr.True,
		"(1 + 2) * 3 == 9 and - 1 < 0 and --1 == 1":        expr.True,
		"not amplification[5m] > 1.2":                      expr.False,
		"not not amplification[5m] > 1.2":                  expr.True,
		"not (amplification[5m] > 1.2 and 1 > 2)":          expr.True,
		"1 > 2 or 2 > 1 and 1 > 2":                         expr.False, // and binds closer
		"nothing[5m] > 1":                                  expr.Unknown,
		"not nothing[5m] > 1":                              expr.Unknown,
		"nothing[5m] > 1 and 1 > 2":                        expr.False,
		"nothing[5m] > 1 and 2 > 1":                        expr.Unknown,
		"nothing[5m] > 1 or 2 > 1":                         expr.True,
		"nothing[5m] > 1 or 1 > 2":                         expr.Unknown,
		"nothing[5m] + 1 > 0":                              expr.Unknown,
		"1 / zero[5m] > 0":                                 expr.Unknown,
		"inf[5m] - inf[5m] > 0":                            expr.Unknown,
		"state(masked)":                                    expr.True,
		"state(masked) and not state(calm)":                expr.True,
		"state(new) or state(calm)":                        expr.Unknown,
		"state(new) and state(calm)":                       expr.False,
		"((((amplification[5m] > 1.2))))":                  expr.True,
		" amplification[5m]\n\t> 1.2 ":                     expr.True,
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Eval(v); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
		if e.String() != text {
			t.Errorf("%s became %s", text, e)
		}
	}
}

// TestErrorsSayWhere: the column, and what was expected there.
func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "column 1: expected a figure",
		"amplification[5m]":         "column 1: is a number",
		"amplification[5m] >":       "column 20: expected a figure, a number or (, got the end",
		"amplification[5m] > 1.2 x": `column 25: expected and, or, or the end, got "x"`,
		"amplification[5 m] > 1":    "column 15: no duration",
		"amplification[5] > 1":      "column 15: no duration",
		"amplification[1.5m] > 1":   "column 15: no duration",
		"amplification[0m] > 1":     "column 15: no duration",
		"amplification[40d] > 1":    "column 15: longer than 31d",
		"amplification[5m > 1":      "column 18: expected ] after the duration",
		"errors{[5m] > 1":           "column 8: expected a key",
		"errors{a[5m] > 1":          "column 9: expected } after the key",
		"1 > 2 and 3":               "column 7: and joins conditions",
		"3 or 1 > 2":                "column 3: or joins conditions",
		"not 3":                     "column 1: not goes before a condition",
		"(1 > 2) > 3":               "column 9: > compares numbers",
		"(1 > 2) + 3 > 0":           "column 9: + needs numbers",
		"-(1 > 2) > 0":              "column 1: - needs a number",
		"(1 > 2":                    "column 7: expected ) after what ( began, got the end",
		"rate(x) > 1":               "column 1: there is no function rate",
		"state()":                   "column 7: expected the name of a state",
		"1.2.3 > 1":                 "column 1: no number",
		"a = 1":                     `column 3: expected and, or, or the end, got "="`,
		"é > 1":                     `column 1: expected a figure, a number or (, got "é"`,
		"and > 1":                   "column 1: expected a figure",
		strings.Repeat("(", 1000):   "nested too deep",
		strings.Repeat("not ", 900): "nested too deep",
		strings.Repeat("-", 1000):   "nested too deep",
		strings.Repeat(" ", 5000):   "longer than 4096 bytes",
	} {
		_, err := expr.Parse(text)
		var at *expr.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

func TestRefsAndStates(t *testing.T) {
	e, err := expr.Parse("a[5m] > 1 and b{k}[1h] / a[5m] > c or not state(x) and state(x)")
	if err != nil {
		t.Fatal(err)
	}
	want := []expr.Ref{{Name: "a", Window: 5 * time.Minute}, {Name: "b", Key: "k", Window: time.Hour}, {Name: "c"}}
	if got := e.Refs(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := e.States(); !reflect.DeepEqual(got, []string{"x"}) {
		t.Errorf("%v", got)
	}
	if s := want[1].String(); s != "b{k}[1h]" {
		t.Error(s)
	}
}

// FuzzParse: no text panics, and what parses evaluates, also without any value.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"amplification[5m] > 1.2 and not state(masked)", "a{b}[1h]/-3 <= (2+1)", "((", "1..2", "not not"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := expr.Parse(s)
		if err != nil {
			var at *expr.Error
			if !errors.As(err, &at) || at.Column < 1 || at.Column > len(s)+1 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		e.Eval(values{})
		if again, err := expr.Parse(e.String()); err != nil || !reflect.DeepEqual(again.Refs(), e.Refs()) {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
