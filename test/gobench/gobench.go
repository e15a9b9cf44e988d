// Package gobench reads what go test prints of benchmarks, for the programs that write
// docs/benchmarks.md.
package gobench

import (
	"strconv"
	"strings"
)

// Result is what go test prints of a benchmark, of its fastest run; NS is the time of
// the CPU where the benchmark tells it, which others on the machine disturb less.
type Result struct {
	NS, Bytes, Allocs, Operations float64
}

// Parse reads the lines of go test -bench; the names come without the number of CPUs.
func Parse(text string) map[string]Result {
	out := map[string]Result{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := fields[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		r := measured(fields[2:])
		if old, ok := out[name]; !ok || r.NS < old.NS {
			out[name] = r
		}
	}
	return out
}

// measured reads pairs of a value and its unit.
func measured(pairs []string) (r Result) {
	cpu := 0.0
	for i := 0; i+1 < len(pairs); i += 2 {
		v, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			continue
		}
		switch pairs[i+1] {
		case "ns/op":
			r.NS = v
		case "cpu-ns/op":
			cpu = v
		case "B/op":
			r.Bytes = v
		case "allocs/op":
			r.Allocs = v
		case "operations/s":
			r.Operations = v
		}
	}
	if cpu > 0 {
		r.NS = cpu
	}
	return r
}
