package detect_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/internal/detect"
)

// TestRestoredGoesOnAsBefore: whenever the process ends, the one that restores says the
// same from then on.
func TestRestoredGoesOnAsBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	a, b := newStory(t, detect.Options{}), newStory(t, detect.Options{})
	shapes := []shape{usual, usual, usual, bad, {operations: 200, p50: 3000}, {}, {operations: 60, extra: 1}}
	for range 3000 {
		what, times := shapes[r.IntN(len(shapes))], 1+r.IntN(40)
		a.next(what, times)
		b.next(what, times)
		if !reflect.DeepEqual(marshal(t, a.Evaluation), marshal(t, b.Evaluation)) {
			t.Fatalf("at %s\n%s\n%s", a.at, marshal(t, a.Evaluation), marshal(t, b.Evaluation))
		}
		if r.IntN(10) > 0 {
			continue
		}
		snapshot, err := b.d.Snapshot(gpt)
		if err != nil {
			t.Fatal(err)
		}
		again, err := detect.New(detect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		b.d = again
	}
}

func marshal(t *testing.T, e detect.Evaluation) string {
	t.Helper()
	line, err := e.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestRestoreRefuses(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 26)
	good, err := s.d.Snapshot(gpt)
	if err != nil || len(good) > 50_000 {
		t.Fatalf("%d bytes, %v", len(good), err)
	}
	if none, err := s.d.Snapshot(detect.All); none != nil || err != nil {
		t.Errorf("a snapshot of what is not known: %s, %v", none, err)
	}
	for want, change := range map[string]func(map[string]any){
		"version 7":     func(m map[string]any) { m["version"] = 7 },
		"unknown state": func(m map[string]any) { m["state"] = "tired" },
		"history":       func(m map[string]any) { m["history"] = "AAAA" },
		"shape":         func(m map[string]any) { m["shape"] = "AAAA" },
		"of hour 200":   func(m map[string]any) { m["hour_of_week"] = 200 },
	} {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		bad, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.d.Restore(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	s := newStory(f, detect.Options{}).next(usual, 200)
	good, err := s.d.Snapshot(gpt)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":2,"state":"healthy"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := detect.New(detect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Restore(data) != nil {
			return
		}
		for _, k := range d.Keys() {
			last := monday.AddDate(300, 0, 0)
			if e, ok, err := d.Evaluate(usual.sample(k, last)); err == nil && ok {
				marshal(t, e)
			}
		}
	})
}
