package fingerprint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestVectors are from RFC 8785, sections 3.2.2 to 3.2.4.
func TestVectors(t *testing.T) {
	in := `{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`
	want := `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
	if got := string(Canonical([]byte(in))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	sorted := `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	got := string(Canonical([]byte(sorted)))
	order := []string{"Carriage Return", "One", "Control", "Latin Small", "Euro Sign", "Emoji", "Hebrew"}
	at := -1
	for _, o := range order {
		i := strings.Index(got, o)
		if i < at {
			t.Errorf("%s is out of order in %s", o, got)
		}
		at = i
	}
}

func TestSameAndDifferent(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2,3]}`, "{ \"b\" : [2,3.0] ,\n\"a\":1e0}", true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"id":9007199254740993}`, `{"id":9007199254740992}`, false},
		{`{"id":12345678901234567890}`, `{"id":12345678901234567891}`, false},
		{`{"x":1e400}`, `{"x":1e401}`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, false},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\xfe\"}", false},
		{`not json`, `not  json`, false},
		{`{"a":1}x`, `{"a":1}y`, false},
		{`"9007199254740993"`, `"9007199254740993" `, true},
	} {
		if got := Body([]byte(c.a)) == Body([]byte(c.b)); got != c.same {
			t.Errorf("%s and %s: same %t, want %t", c.a, c.b, got, c.same)
		}
	}
	if Body(nil) != "" {
		t.Error("an empty body has a fingerprint")
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"b":[1,2.50,1e3],"a":"\u00e9"}`))
	f.Add([]byte(`{"a":9007199254740993}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		c := Canonical(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the body was changed")
		}
		if again := Canonical(c); !bytes.Equal(again, c) {
			t.Fatalf("not idempotent: %q, then %q", c, again)
		}
	})
}

func ExampleBody() {
	fmt.Println(Body([]byte(`{"model":"m","n":1}`)) == Body([]byte(`{ "n": 1.0, "model": "m" }`)))
	fmt.Println(len(Body([]byte(`{}`))))
	// Output:
	// true
	// 71
}
