package main

import (
	"strconv"
	"strings"
)

// result is what go test prints of a benchmark, of its fastest run (see test/retrybench); ns is the time of
// the CPU where the benchmark tells it, which others on the machine disturb less.
type result struct {
	ns, bytes, allocs, operations float64
}

// parse reads the lines of go test -bench; the names come without the number of CPUs.
func parse(text string) map[string]result {
	out := map[string]result{}
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
		if old, ok := out[name]; !ok || r.ns < old.ns {
			out[name] = r
		}
	}
	return out
}

// measured reads pairs of a value and its unit.
func measured(pairs []string) (r result) {
	cpu := 0.0
	for i := 0; i+1 < len(pairs); i += 2 {
		v, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			continue
		}
		switch pairs[i+1] {
		case "ns/op":
			r.ns = v
		case "cpu-ns/op":
			cpu = v
		case "B/op":
			r.bytes = v
		case "allocs/op":
			r.allocs = v
		case "operations/s":
			r.operations = v
		}
	}
	if cpu > 0 {
		r.ns = cpu
	}
	return r
}
