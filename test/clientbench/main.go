package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	var s size
	flag.IntVar(&s.rounds, "rounds", 41, "rounds, of which the median counts")
	flag.IntVar(&s.calls, "calls", 20_000, "of each way in each round")
	flag.IntVar(&s.streams, "streams", 100, "of each way in each round")
	flag.IntVar(&s.emits, "emits", 10_000, "of each goroutine")
	flag.Parse()
	text, err := section(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientbench:", err)
		os.Exit(1)
	}
	fmt.Print(text)
	runtime.KeepAlive(ballast)
}

// Targets of what the client adds to a bare transport.
const (
	callNS, callAllocs   = 3000, 10
	chunkNS, chunkAllocs = 200, 0
	chunks               = 1000 // of a stream
)

// section of docs/benchmarks.md.
func section(s size) (string, error) {
	calls, err := compare(instant{answer}, s.rounds, s.calls)
	if err != nil {
		return "", err
	}
	streams, err := compare(chunksOf(chunks), s.rounds, s.streams)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n## Client\n\n")
	fmt.Fprintf(&b, "What a layer adds to a successful call, and to each chunk of a stream of %d, over a base transport without a network that reports to httptrace "+
		"as net/http does. In each of %d rounds all of them make %d calls and %d streams in turn; CPU time of all goroutines, collection of their garbage included: the median of the differences "+
		"to the bare transport in the same round (in brackets their quartiles). A heap of 64 MiB stands in for the service around it.\n\n", chunks, s.rounds, s.calls, s.streams)
	b.WriteString("| what | call, CPU-ns | allocations | chunk, CPU-ns | stream, allocations | target |\n|---|---:|---:|---:|---:|---|\n")
	for i, w := range ways {
		writeRow(&b, w, calls[i], calls[0], streams[i], streams[0])
	}
	err = writeDelays(&b, s.emits)
	return b.String(), err
}

func writeRow(b *strings.Builder, w way, call, bareCall, stream, bareStream figures) {
	if w.name == "bare" {
		fmt.Fprintf(b, "| %s | %.0f | %.0f | %.1f | %.0f | |\n", w.text, call.own.median, call.allocs, stream.own.median/chunks, stream.allocs)
		return
	}
	c, s := call.added, stream.added
	fmt.Fprintf(b, "| + %s | %+.0f (%+.0f to %+.0f) | %+.0f | %+.1f (%+.1f to %+.1f) | %+.0f | %s |\n", w.text, c.median, c.low, c.high, call.allocs-bareCall.allocs,
		s.median/chunks, s.low/chunks, s.high/chunks, stream.allocs-bareStream.allocs, target(w, call, bareCall, stream, bareStream))
}

func target(w way, call, bareCall, stream, bareStream figures) string {
	if w.name != "retrylens" {
		return ""
	}
	text := fmt.Sprintf("≤ %d ns and ≤ %d allocations a call, ≤ %d ns and %d allocations a chunk", callNS, callAllocs, chunkNS, chunkAllocs)
	var missed []string
	for _, c := range []struct {
		what string
		bad  bool
	}{
		{"call ns", call.added.median > callNS}, {"call allocations", call.allocs-bareCall.allocs > callAllocs+0.5},
		{"chunk ns", stream.added.median/chunks > chunkNS}, {"chunk allocations", (stream.allocs-bareStream.allocs)/chunks >= 0.5},
	} {
		if c.bad {
			missed = append(missed, c.what)
		}
	}
	if len(missed) > 0 {
		return text + ": **missed** (" + strings.Join(missed, ", ") + ")"
	}
	return text + ": met"
}
