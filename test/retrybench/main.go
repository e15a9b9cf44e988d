// Command retrybench runs the benchmarks of the retry engine, the classifier and the
// simulator and writes their section of docs/benchmarks.md, each figure beside its
// target and, where others do the same, beside failsafe-go and go-retryablehttp of the
// same run.
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
	count := flag.Int("count", 3, "runs, of which the fastest counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *benchtime, *count)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "retrybench:", err)
		os.Exit(1)
	}
}

// row is a line of a table: a benchmark, what it is and what it should be.
type row struct {
	bench, text string
	ns          float64 // target; 0 = none, as of those it is compared with
	allocs      float64 // target where zero is asked for; -1 = none
}

// decisions and judgements as docs/policy.md and docs/classification.md name them.
var (
	decisions = []row{
		{"BenchmarkDecision/delivered", "decision: delivered", 300, -1},
		{"BenchmarkDecision/backoff", "decision: retry after backoff", 300, -1},
		{"BenchmarkDecision/retry_after", "decision: retry after the asked wait", 300, -1},
		{"BenchmarkDecision/first_502", "decision: first 502", 300, -1},
		{"BenchmarkDecision/same_500", "decision: a 500, fingerprinted", 300, -1},
		{"BenchmarkDecision/not_retryable", "decision: not retryable", 300, -1},
		{"BenchmarkJudge/retrylens", "decision on a 429 that asks for a wait", 300, -1},
		{"BenchmarkJudge/go-retryablehttp", "the same by go-retryablehttp (reads the header, knows no other part)", 0, -1},
		{"BenchmarkOperation/retrylens", "an operation that fails once and then succeeds, without a sleep", 0, -1},
		{"BenchmarkOperation/failsafe-go", "the same by failsafe-go: retry, breaker, bulkhead", 0, -1},
		{"BenchmarkOperation/go-retryablehttp", "the same by go-retryablehttp: retry alone, over HTTP without a network", 0, -1},
	}
	verdicts = []row{
		{"BenchmarkPlainStatus", "classify a plain status", 500, 0},
		{"BenchmarkJSONError/300B", "classify a JSON error of 300 bytes", 0, -1},
		{"BenchmarkJSONError/1KB", "classify a JSON error of 1 KB", 3000, -1},
		{"BenchmarkDetailedError", "classify google.rpc.Status with details, 1 KB", 3000, -1},
		{"BenchmarkJSONError/64KB", "classify a JSON error of 64 KB", 0, -1},
		{"BenchmarkBaseline", "encoding/json into a struct, 1 KB", 0, -1},
	}
)

func run(ctx context.Context, out io.Writer, benchtime string, count int) error {
	results := map[string]gobench.Result{}
	for _, p := range []string{"./retry", "./retry/classify", "./internal/sim"} {
		text, err := bench(ctx, p, benchtime, count)
		if err != nil {
			return err
		}
		for name, r := range gobench.Parse(text) {
			results[name] = r
		}
	}
	var b strings.Builder
	b.WriteString("\n## Retry engine and classifier\n\n")
	fmt.Fprintf(&b, "`go test -bench`, the fastest of %d runs, one goroutine; decisions and verdicts in CPU time, decisions with the clock standing still and all questions of docs/policy.md asked.\n\n", count)
	b.WriteString("| what | ns | bytes | allocations | target |\n|---|---:|---:|---:|---|\n")
	for _, r := range append(append([]row(nil), decisions...), verdicts...) {
		got, ok := results[r.bench]
		if !ok {
			return fmt.Errorf("no benchmark %s: its name has changed, change it here too", r.bench)
		}
		b.WriteString(r.line(got))
	}
	if err := simulator(&b, results); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (r row) line(got gobench.Result) string {
	target := ""
	if r.ns > 0 {
		target = fmt.Sprintf("≤ %.0f ns", r.ns)
		if r.allocs == 0 {
			target += ", 0 allocations"
		}
		if got.NS > r.ns || r.allocs >= 0 && got.Allocs > r.allocs {
			target += ": **missed**"
		}
	}
	return fmt.Sprintf("| %s | %.0f | %.0f | %.0f | %s |\n", r.text, got.NS, got.Bytes, got.Allocs, target)
}

func simulator(b *strings.Builder, results map[string]gobench.Result) error {
	day, ok := results["BenchmarkDefaultDay"]
	series, also := results["BenchmarkSeries"]
	if !ok || !also {
		return fmt.Errorf("no benchmarks of the simulator: their names have changed, change them here too")
	}
	target := ""
	if day.NS > 10e9 {
		target = ": **missed**"
	}
	b.WriteString("\n## Simulator\n\nOne goroutine.\n\n| what | seconds | operations/s | target |\n|---|---:|---:|---|\n")
	fmt.Fprintf(b, "| a day of 60 operations a minute, written as JSON | %.2f | %.0f | ≤ 10 s%s |\n", day.NS/1e9, day.Operations, target)
	fmt.Fprintf(b, "| a week of 20 series, 140 incidents, 100 operations a minute, not written | %.2f | %.0f | |\n", series.NS/1e9, series.Operations)
	return nil
}

func bench(ctx context.Context, pkg, benchtime string, count int) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", pkg, "-run", "^$", "-bench", ".", "-benchmem", "-benchtime", benchtime, "-count", fmt.Sprint(count))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return string(text), nil
}
