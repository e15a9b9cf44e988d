package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/retrylens/retrylens/test/gobench"
)

func main() {
	benchtime := flag.String("benchtime", "1s", "of each benchmark")
	count := flag.Int("count", 5, "runs, of which the fastest counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *benchtime, *count)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientbench:", err)
		os.Exit(1)
	}
}

// Targets of what the client adds to a bare transport.
const (
	callNS, callAllocs   = 3000, 10
	chunkNS, chunkAllocs = 200, 0
	chunks               = 1000 // of a stream, see BenchmarkStream
)

var ways = []struct{ name, text string }{
	{"bare", "a bare transport"},
	{"retrylens", "Retrylens, the record made and handed to a recorder that copies it"},
	{"retrylens_and_emitter", "Retrylens and its emitter: encoding and fingerprint in another goroutine included"},
	{"go-retryablehttp", "go-retryablehttp (retries alone)"},
	{"failsafe-go", "failsafehttp (retries alone)"},
}

func run(ctx context.Context, out io.Writer, benchtime string, count int) error {
	results, err := bench(ctx, benchtime, count)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n## Client\n\n")
	fmt.Fprintf(&b, "What a layer adds to a successful call, and to each chunk of a stream of %d, over a base transport without a network that reports to httptrace "+
		"as net/http does. CPU time of all goroutines, the fastest of %d runs; a heap of 64 MiB stands in for the service around it.\n\n", chunks, count)
	b.WriteString("| what | call, CPU-ns | allocations | chunk, CPU-ns | stream, allocations | target |\n|---|---:|---:|---:|---:|---|\n")
	bareCall, bareStream := results["BenchmarkCall/bare"], results["BenchmarkStream/bare"]
	for _, w := range ways {
		call, ok := results["BenchmarkCall/"+w.name]
		stream, also := results["BenchmarkStream/"+w.name]
		if !ok || !also {
			return fmt.Errorf("no benchmarks of %s: their names have changed, change them here too", w.name)
		}
		if w.name == "bare" {
			fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.1f | %.0f | |\n", w.text, call.NS, call.Allocs, stream.NS, stream.Allocs)
			continue
		}
		fmt.Fprintf(&b, "| + %s | +%.0f | +%.0f | +%.1f | +%.0f | %s |\n", w.text, call.NS-bareCall.NS, call.Allocs-bareCall.Allocs,
			stream.NS-bareStream.NS, stream.Allocs-bareStream.Allocs, target(w.name, call, bareCall, stream, bareStream))
	}
	_, err = io.WriteString(out, b.String())
	return err
}

func target(name string, call, bareCall, stream, bareStream gobench.Result) string {
	if name != "retrylens" {
		return ""
	}
	text := fmt.Sprintf("≤ %d ns and ≤ %d allocations a call, ≤ %d ns and %d allocations a chunk", callNS, callAllocs, chunkNS, chunkAllocs)
	var missed []string
	for _, c := range []struct {
		what string
		bad  bool
	}{
		{"call ns", call.NS-bareCall.NS > callNS}, {"call allocations", call.Allocs-bareCall.Allocs > callAllocs},
		{"chunk ns", stream.NS-bareStream.NS > chunkNS}, {"chunk allocations", (stream.Allocs-bareStream.Allocs)/chunks >= 0.5},
	} {
		if c.bad {
			missed = append(missed, c.what)
		}
	}
	if len(missed) > 0 {
		text += ": **missed** (" + strings.Join(missed, ", ") + ")"
	}
	return text
}

func bench(ctx context.Context, benchtime string, count int) (map[string]gobench.Result, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "./test/clientbench", "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", benchtime, "-count", fmt.Sprint(count))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return gobench.Parse(string(text)), nil
}
