package main

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/retry/op"
)

// size of a measurement.
type size struct{ rounds, calls, streams, emits int }

// spread of what rounds measured.
type spread struct{ low, median, high float64 }

func spreadOf(v []float64) spread {
	slices.Sort(v)
	at := func(q float64) float64 { return v[int(q*float64(len(v)-1))] }
	return spread{at(0.25), at(0.5), at(0.75)}
}

// figures of one way, per call.
type figures struct {
	own    spread // CPU-ns
	added  spread // CPU-ns above the bare transport in the same round
	allocs float64
}

// compare has all ways make n calls over base in each round, one way after the other, so
// that what else the machine does at the time meets all of them. Each begins with a clean
// heap, and pays for the collection of its own garbage.
func compare(base http.RoundTripper, rounds, n int) ([]figures, error) {
	out := make([]figures, len(ways))
	times, added := make([][]float64, len(ways)), make([][]float64, len(ways))
	for round := range rounds + 1 {
		for i, w := range ways {
			ns, allocs, err := block(w, base, n)
			if err != nil {
				return nil, err
			}
			if round == 0 { // pools and maps fill
				continue
			}
			times[i] = append(times[i], ns)
			added[i] = append(added[i], ns-times[0][round-1])
			out[i].allocs = allocs
		}
	}
	for i := range ways {
		out[i].own, out[i].added = spreadOf(times[i]), spreadOf(added[i])
	}
	return out, nil
}

// block is n calls: CPU time of all goroutines and allocations of each.
func block(w way, base http.RoundTripper, n int) (ns, allocs float64, err error) {
	rt, done, err := w.over(base)
	if err != nil {
		return 0, 0, err
	}
	buf := make([]byte, 4096)
	var contexts [64]context.Context
	for i := range contexts {
		contexts[i] = op.With(context.Background(), op.Operation{ID: "op", Key: "key", Name: "ask"})
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := cpu(unix.CLOCK_PROCESS_CPUTIME_ID)
	for i := range n {
		if err := call(rt, contexts[i%len(contexts)], buf); err != nil {
			return 0, 0, err
		}
	}
	done()
	took := cpu(unix.CLOCK_PROCESS_CPUTIME_ID) - from
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

// cpu time of the process or of the thread.
func cpu(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
