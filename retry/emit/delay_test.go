//go:build linux

package emit_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/emit"
)

// TestEmitWaitsForNothing: whatever part of the emitter's surroundings hangs, calls of Emit
// return, from many goroutines at once and long after the memory is full. Nothing is
// measured: a lock that is held across what hangs would never let them go.
func TestEmitWaitsForNothing(t *testing.T) {
	for name, hang := range map[string]func(o *emit.Options, in func()) emit.Late{
		"the sink": func(o *emit.Options, in func()) emit.Late {
			o.Sink = &hanging{in: in}
			return nil
		},
		"the listener to errors": func(o *emit.Options, in func()) emit.Late {
			o.Sink, o.OnError = &sink{fail: func(int) error { return errors.New("down") }}, func(error) { in() }
			return nil
		},
		"the backoff": func(o *emit.Options, in func()) emit.Late {
			o.Sink = &sink{fail: func(int) error { return errors.New("down") }}
			o.Backoff = func(int) time.Duration { in(); return 0 }
			return nil
		},
		"the completion of a record": func(o *emit.Options, in func()) emit.Late {
			o.Sink = &sink{}
			return slowLate(in)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hangs, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			o := emit.Options{MaxRecords: 1000, BatchSize: 10}
			late := hang(&o, func() {
				once.Do(func() { close(hangs) })
				<-release
			})
			e := start(t, o)
			for range o.BatchSize {
				e.Emit(attempt("a"), late)
			}
			<-hangs
			fromMany(e, late)
			if st := e.Stats(); st.Emitted != int64(o.BatchSize)+many*each || st.Dropped == 0 || st.Queued > int64(o.MaxRecords) {
				t.Errorf("%+v", st)
			}
			close(release)
			_ = closeWithin(t, e, 0)
		})
	}
}

const many, each = 64, 500

func fromMany(e *emit.Emitter, late emit.Late) {
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			for range each {
				e.Emit(attempt("b"), late)
			}
		})
	}
	wg.Wait()
}

// hanging is a sink that does not even look at its context.
type hanging struct{ in func() }

func (h *hanging) Send(context.Context, []byte, int) (emit.Result, error) {
	h.in()
	return emit.Result{}, nil
}
func (h *hanging) Close() error { return nil }

type slowLate func()

func (slowLate) Size() int                     { return 1 }
func (l slowLate) Complete(*retrylens.Attempt) { l() }

// TestDelay: no call of Emit takes more than 50 µs of its thread's CPU time, whatever the sink
// does. That clock does not run while others have the CPU, but interrupts and a
// hypervisor's doings count: rounds are short, and one in which no call took longer will do;
// a fault would be in each of them. Beside it runs what calls nothing, for the log.
func TestDelay(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []struct {
		name string
		s    *sink
		max  int
	}{
		{"good", &sink{}, 1 << 16},
		{"down", &sink{fail: func(int) error { return errors.New("down") }}, 1 << 16},
		{"hanging", &sink{block: make(chan struct{})}, 1 << 16},
		{"full", &sink{block: make(chan struct{})}, 100},
	} {
		e := start(t, emit.Options{Sink: c.s, MaxRecords: c.max, Backoff: func(int) time.Duration { return time.Millisecond }})
		worst, idle := time.Hour, time.Hour
		for i := 0; i < 200 && worst > slower*50*time.Microsecond; i++ {
			idle = min(idle, longest(func(*retrylens.Attempt) {}))
			worst = min(worst, longest(func(a *retrylens.Attempt) { e.Emit(a, nil) }))
		}
		st := e.Stats()
		t.Logf("%s: the longest of a round's calls took %v, of those that do nothing %v; %d dropped", c.name, worst, idle, st.Dropped)
		if worst > slower*50*time.Microsecond || (st.Dropped > 0) != (c.name == "full") {
			t.Errorf("%s: in each round a call took at least %v, want 50µs; %d dropped", c.name, worst, st.Dropped)
		}
		if c.s.block != nil {
			close(c.s.block)
		}
		_ = closeWithin(t, e, 0)
	}
}

// longest CPU time of one of so many calls that several pieces of the queue are begun.
func longest(f func(*retrylens.Attempt)) (worst time.Duration) {
	for range 256 {
		a := attempt("a")
		before := threadTime()
		f(a)
		worst = max(worst, threadTime()-before)
	}
	return worst
}

func threadTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano())
}
