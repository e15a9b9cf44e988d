package classify

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file of the debatable cases")

func readCases(t testing.TB, name string) []Case {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases, err := ReadCases(f)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestCorpus holds every case that is not debatable to its expectation, in the
// shared corpus and in our own.
func TestCorpus(t *testing.T) {
	c := New()
	for _, file := range []string{"failures.jsonl", "own.jsonl"} {
		cases := readCases(t, file)
		seen := make(map[string]bool)
		for i := range cases {
			k := &cases[i]
			if seen[k.ID] {
				t.Errorf("%s: %s occurs twice", file, k.ID)
			}
			seen[k.ID] = true
			v := c.Classify(k.Failure())
			if k.Expect == nil || k.Debatable || reflect.DeepEqual(v.Answer(), *k.Expect) {
				continue
			}
			t.Errorf("%s: %s\n got %s (%s)\nwant %s\n why %s", file, k.ID, line(v.Answer()), v.Reason, line(*k.Expect), k.Why)
		}
		t.Logf("%s: %d cases", file, len(cases))
	}
}

func line(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// TestDebatable pins what we say to the cases that can be argued either way.
func TestDebatable(t *testing.T) {
	c := New()
	var b bytes.Buffer
	var same, all int
	for _, file := range []string{"failures.jsonl", "own.jsonl"} {
		for _, k := range readCases(t, file) {
			if !k.Debatable {
				continue
			}
			all++
			v := c.Classify(k.Failure())
			mark := "differs"
			if k.Expect != nil && reflect.DeepEqual(v.Answer(), *k.Expect) {
				mark = "same"
				same++
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", k.ID, mark, line(v.Answer()), v.Reason)
		}
	}
	const golden = "testdata/debatable.golden"
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, old := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	if !slices.Equal(got, old) {
		t.Errorf("the debatable answers changed (-update accepts them):\n%s", b.String())
	}
	t.Logf("%d of %d debatable answers are the corpus's own", same, all)
}
