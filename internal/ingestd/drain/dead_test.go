package drain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/spool"
	"github.com/retrylens/retrylens/internal/wire"
)

// refuse refuses batches with a record for which bad is true; the reason is told
// by the first of them, as ClickHouse does.
func refuse(bad func(n int) bool, reason func(id string) string) func([]retrylens.Attempt) error {
	return func(rows []retrylens.Attempt) error {
		for _, a := range rows {
			if bad(number(a.LogicalID)) {
				return fmt.Errorf("%w: %s", errBad, reason(a.LogicalID))
			}
		}
		return nil
	}
}

func number(id string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(id, "op-"))
	if err != nil {
		panic(err)
	}
	return n
}

func same(string) string         { return "service = 'bad'" }
func each(id string) string      { return "id = " + id }
func always(int) bool            { return true }
func below(n int) func(int) bool { return func(i int) bool { return i < n } }

// requireLetters: every letter is a line of its own in the file, once, with a
// reason; torn lines are allowed, and how many there are is told.
func (r *rig) requireLetters(bad func(int) bool) (torn int) {
	r.t.Helper()
	times, why := map[int]int{}, map[int]int{}
	for _, line := range lines(r.t, r.dead.Path()) {
		if all, err := wire.DecodeAll(strings.NewReader(line)); err == nil && len(all) == 1 {
			times[number(all[0].LogicalID)]++
		} else {
			torn++
		}
	}
	for _, line := range lines(r.t, r.dead.ReasonsPath()) {
		var v struct {
			Segment          uint64
			LogicalID, Error string
		}
		line = strings.Replace(line, "logical_id", "LogicalID", 1)
		if json.Unmarshal([]byte(line), &v) == nil && v.Segment > 0 && strings.Contains(v.Error, "bad row") {
			why[number(v.LogicalID)]++
		}
	}
	want := 0
	for n := range r.next {
		expected := 0
		if bad(n) {
			expected = 1
			want++
		}
		if times[n] != expected || why[n] != expected {
			r.t.Errorf("op-%d is %d times in the file with %d reasons, want %d", n, times[n], why[n], expected)
		}
	}
	if r.seen.died != want {
		r.t.Errorf("%d dead letters counted, want %d", r.seen.died, want)
	}
	r.requireStored(r.next - want)
	return torn
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// Wherever the bad records are and however many: they are dead letters, the
// others are stored.
func TestBadRecordsAnywhere(t *testing.T) {
	for name, bad := range map[string]func(int) bool{
		"64 first": below(64), "70 first": below(70), "all but the last": below(1069), "the last 70": func(n int) bool { return n >= 1000 },
		"every other": func(n int) bool { return n%2 == 0 }, "all": always,
	} {
		for reasons, reason := range map[string]func(string) string{"same": same, "each": each} {
			for _, batchRows := range []int{0, 64, 100} {
				t.Run(fmt.Sprintf("%s %s %d", name, reasons, batchRows), func(t *testing.T) {
					inBubble(t, func(o *drain.Options) { o.BatchRows = batchRows }, func(r *rig) {
						r.store.failWith(refuse(bad, reason))
						r.segment(1070)
						r.flush(time.Minute)
						if torn := r.requireLetters(bad); torn > 0 {
							t.Errorf("%d torn lines", torn)
						}
					})
				})
			}
		}
	}
}

// An error of the whole store is never a dead letter.
func TestAFatalErrorOfEveryRecordIsNoDeadLetter(t *testing.T) {
	for _, failure := range []error{errFatal, errDown, errMuch} {
		inBubble(t, nil, func(r *rig) {
			r.store.failWith(func([]retrylens.Attempt) error { return failure })
			r.segment(100)
			time.Sleep(time.Hour)
			synctest.Wait()
			if r.seen.died != 0 || len(r.spool.Sealed()) != 1 {
				t.Errorf("%v: %+v", failure, r.seen)
			}
			r.store.failWith(nil)
			r.flush(time.Minute)
			r.requireStored(100)
		})
	}
}

// stubborn is a spool that cannot delete for a while.
type stubborn struct {
	*spool.Spool
	mu       sync.Mutex
	failures int
}

func (s *stubborn) Delete(g spool.Segment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures--; s.failures >= 0 {
		return errors.New("no way")
	}
	return s.Spool.Delete(g)
}

// A segment that is tried again, by this process or the next, leaves every dead
// letter once.
func TestDeadLettersOfASegmentAreWrittenOnce(t *testing.T) {
	bad := func(n int) bool { return n%10 == 0 }
	t.Run("same process", func(t *testing.T) {
		inBubble(t, func(o *drain.Options) { o.Spool = &stubborn{Spool: o.Spool.(*spool.Spool), failures: 5} }, func(r *rig) {
			r.store.failWith(refuse(bad, each))
			r.segment(100)
			r.flush(time.Hour)
			r.requireLetters(bad)
		})
	})
	t.Run("interrupted", func(t *testing.T) { // the store goes away in the middle
		inBubble(t, func(o *drain.Options) { o.BatchRows = 30 }, func(r *rig) {
			refused, tries := refuse(bad, each), 0
			r.store.failWith(func(rows []retrylens.Attempt) error {
				if tries++; tries < 400 && tries%40 == 0 {
					return errDown
				}
				return refused(rows)
			})
			r.segment(100)
			r.flush(time.Hour)
			r.requireLetters(bad)
		})
	})
	t.Run("next process", func(t *testing.T) {
		inBubble(t, func(o *drain.Options) { o.Spool = &stubborn{Spool: o.Spool.(*spool.Spool), failures: 1 << 30} }, func(r *rig) {
			r.store.failWith(refuse(bad, each))
			r.segment(100)
			r.stop() // killed before it could delete
			o := r.o
			o.Spool, o.DeadLetters = r.spool, drain.NewDeadLetters(r.dir)
			next, err := drain.New(o)
			if err != nil {
				r.t.Error(err)
				return
			}
			ctx, cancel := context.WithCancel(r.t.Context())
			done := make(chan struct{})
			go func() { defer close(done); next.Run(ctx) }()
			r.d, r.stop = next, func() { cancel(); <-done }
			r.flush(time.Minute)
			r.requireLetters(bad)
		})
	})
}
