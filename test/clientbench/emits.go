package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
)

// delayLimit of a call by an emitter whose sink is down, slow or full.
const delayLimit = 50 * time.Microsecond

// sinks that give an emitter trouble, and one that gives none.
var sinks = []struct {
	text string
	send func(ctx context.Context) error
}{
	{"takes all", func(context.Context) error { return nil }},
	{"down", func(context.Context) error { return errors.New("down") }},
	{"slow: 20 ms a batch", func(ctx context.Context) error { return wait(ctx, 20*time.Millisecond) }},
	{"hangs, and the memory is full", func(ctx context.Context) error { return wait(ctx, time.Hour) }},
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

type sendFunc func(ctx context.Context) error

func (f sendFunc) Send(ctx context.Context, _ []byte, _ int) (emit.Result, error) {
	return emit.Result{}, f(ctx)
}
func (sendFunc) Close() error { return nil }

// noEmit is the baseline: what it takes, the scheduler and the clocks take.
type noEmit struct{}

func (noEmit) Emit(*retrylens.Attempt, emit.Late) {}

// delays of Emit in 64 goroutines: each call by the clock on the wall, as a caller feels it, and
// by the CPU clock of its thread, which does not run while another thread has the CPU.
type delays struct{ wall, own []time.Duration }

const emitters = 64

func delaysOf(r emit.Recorder, n int) (all delays) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range emitters {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			d := emitsOf(r, n)
			mu.Lock()
			all.wall, all.own = append(all.wall, d.wall...), append(all.own, d.own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(all.wall)
	slices.Sort(all.own)
	return all
}

func emitsOf(r emit.Recorder, n int) delays {
	d := delays{make([]time.Duration, n), make([]time.Duration, n)}
	a := &retrylens.Attempt{LogicalID: "op", Provider: "openai", Outcome: retrylens.OutcomeSuccess}
	for i := range n {
		a.StartedAt, a.Seq = time.Now(), retrylens.Opt[int64]{}
		wall, own := time.Now(), cpu(unix.CLOCK_THREAD_CPUTIME_ID)
		r.Emit(a, nil)
		d.own[i], d.wall[i] = cpu(unix.CLOCK_THREAD_CPUTIME_ID)-own, time.Since(wall)
	}
	return d
}

// writeDelays adds the table of what Emit takes.
func writeDelays(b *strings.Builder, n int) error {
	fmt.Fprintf(b, "\nWhat `Emit` takes in %d goroutines at once, %d records each, in µs: by the wall clock, as a call feels it, and by the CPU clock of its thread, on which the "+
		"emitter's own work counts and the scheduler's does not. The first row calls nothing: its figures are the machine's. An emitter may delay no call by more than %v.\n\n", emitters, n, delayLimit)
	b.WriteString("| sink | CPU: p50 | p99.9 | max | above 50 µs | wall: p50 | p99.9 | max | above 50 µs |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	writeDelay(b, "none: an empty function", delaysOf(noEmit{}, n))
	for _, s := range sinks {
		e, err := emit.New(emit.Options{Sink: sendFunc(s.send), FlushEvery: 10 * time.Millisecond, MaxRecords: 1000})
		if err != nil {
			return err
		}
		writeDelay(b, s.text, delaysOf(e, n))
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what is left is not wanted
		_ = e.Close(ctx)
	}
	return nil
}

func writeDelay(b *strings.Builder, name string, d delays) {
	fmt.Fprintf(b, "| %s |%s |%s |\n", name, quantiles(d.own), quantiles(d.wall))
}

func quantiles(d []time.Duration) string {
	us := func(q float64) float64 { return float64(d[int(q*float64(len(d)-1))]) / 1e3 }
	at, _ := slices.BinarySearch(d, delayLimit+1)
	return fmt.Sprintf(" %.2f | %.2f | %.1f | %d of %d", us(0.5), us(0.999), us(1), len(d)-at, len(d))
}
