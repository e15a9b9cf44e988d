package main

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/retry/op"
)

func TestMain(m *testing.M) {
	code := m.Run()
	runtime.KeepAlive(ballast)
	os.Exit(code)
}

// BenchmarkCall and BenchmarkStream are for profiles; the program measures.
func BenchmarkCall(b *testing.B) { over(b, instant{answer}) }

// BenchmarkStream is a stream of a thousand chunks, each read by itself.
func BenchmarkStream(b *testing.B) { over(b, chunksOf(chunks)) }

func over(b *testing.B, base http.RoundTripper) {
	for _, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			rt, done, err := w.over(base)
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			buf := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if err := call(rt, op.With(context.Background(), op.Operation{ID: "op", Key: "key", Name: "ask"}), buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTheSectionIsWhole: a short run names every way and judges every target.
func TestTheSectionIsWhole(t *testing.T) {
	text, err := section(size{rounds: 2, calls: 20, streams: 1, emits: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		if !strings.Contains(text, w.text) {
			t.Errorf("%s is missing in\n%s", w.name, text)
		}
	}
	for _, s := range sinks {
		if !strings.Contains(text, s.text) {
			t.Errorf("the emitter %s is missing in\n%s", s.text, text)
		}
	}
}
