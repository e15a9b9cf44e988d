package drain_test

import (
	"bufio"
	"context"
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

var (
	errDown  = errors.New("connection refused")
	errFatal = errors.New("wrong password")
	errBad   = errors.New("bad row")
	errMuch  = errors.New("too many partitions")
)

func classify(err error) drain.Kind {
	switch {
	case errors.Is(err, errBad):
		return drain.Data
	case errors.Is(err, errMuch):
		return drain.Split
	case errors.Is(err, errFatal):
		return drain.Fatal
	}
	return drain.Retry
}

// store is a sink that can fail.
type store struct {
	mu    sync.Mutex
	fail  func(rows []retrylens.Attempt) error
	took  time.Duration // of an insert
	rows  map[string]time.Time
	order []string
	tries []time.Time
}

func (s *store) Write(ctx context.Context, rows []retrylens.Attempt) error {
	s.mu.Lock()
	fail := s.fail
	s.tries = append(s.tries, time.Now())
	s.mu.Unlock()
	if s.took > 0 {
		select {
		case <-time.After(s.took):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if fail != nil {
		if err := fail(rows); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rows {
		if _, ok := s.rows[rows[i].LogicalID]; !ok {
			s.order = append(s.order, rows[i].LogicalID)
		}
		s.rows[rows[i].LogicalID] = time.Now()
	}
	return nil
}

func (s *store) failWith(f func([]retrylens.Attempt) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tries)
}

type observer struct {
	mu      sync.Mutex
	retried map[string]int
	died    int
}

func (o *observer) Inserted(int, time.Duration, error) {}
func (o *observer) Retried(kind string)                { o.mu.Lock(); o.retried[kind]++; o.mu.Unlock() }
func (o *observer) Died(n int)                         { o.mu.Lock(); o.died += n; o.mu.Unlock() }

// rig is a spool that is drained into a store, within a bubble of fake time.
type rig struct {
	t     *testing.T
	spool *spool.Spool
	store *store
	seen  *observer
	dead  *drain.DeadLetters
	d     *drain.Drainer
	o     drain.Options
	dir   string
	stop  func() // ends the drainer
	next  int
	at    map[string]time.Time // when a record was appended
}

// inBubble runs a test in fake time; what it opens is closed at its end.
func inBubble(t *testing.T, change func(*drain.Options), test func(*rig)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := spool.Open(spool.Options{Dir: dir, Durability: spool.OS})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{
			t: t, spool: s, store: &store{rows: map[string]time.Time{}}, seen: &observer{retried: map[string]int{}},
			dead: drain.NewDeadLetters(dir), dir: dir, at: map[string]time.Time{},
		}
		o := drain.Options{Spool: s, Sink: r.store, Classify: classify, DeadLetters: r.dead, Observer: r.seen}
		if change != nil {
			change(&o)
		}
		if r.d, err = drain.New(o); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.d.Run(ctx) }()
		r.o, r.stop = o, func() { cancel(); <-done }
		test(r)
		r.stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// append adds n records, which becomes a segment within a second unless more
// come.
func (r *rig) append(n int) {
	r.t.Helper()
	var b spool.Batch
	for range n {
		a := retrylens.Attempt{Tenant: "acme", LogicalID: fmt.Sprintf("op-%06d", r.next), Provider: "p", StartedAt: time.Now(), Outcome: retrylens.OutcomeSuccess}
		a.Normalize()
		b.Add(&a)
		r.at[a.LogicalID] = time.Now()
		r.next++
	}
	if err := r.spool.Append(&b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) segment(n int) {
	r.append(n)
	time.Sleep(time.Second)
	synctest.Wait()
}

func (r *rig) flush(within time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	if err := r.d.Flush(ctx); err != nil {
		r.t.Fatalf("not drained within %v: %v", within, err)
	}
	synctest.Wait()
}

func (r *rig) requireStored(n int) {
	r.t.Helper()
	if got := len(r.store.rows); got != n {
		r.t.Errorf("%d stored, want %d", got, n)
	}
}

// An hour of a stopped store, in accelerated time: nothing is lost, the backlog
// is drained in order of age, fresh records hardly wait, and it is soon over.
func TestAnHourOfAStoppedStore(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.store.took = 100 * time.Millisecond
		r.store.failWith(func([]retrylens.Attempt) error { return errDown })
		for range 3600 {
			r.append(50)
			time.Sleep(time.Second)
		}
		if st := r.spool.Stats(); st.Segments > 400 || time.Since(st.OldestAt) < 3599*time.Second {
			t.Errorf("after an hour: %+v", st)
		}
		tries := r.store.count()
		backlog := r.next
		r.store.failWith(nil)
		back := time.Now()
		for len(r.spool.Sealed()) > 0 {
			r.append(50)
			time.Sleep(time.Second)
		}
		caught := time.Since(back)
		time.Sleep(time.Second)
		r.flush(10 * time.Second)
		r.requireStored(r.next)
		t.Logf("%d records in %d tries while away; %d records drained in %v", backlog, tries, backlog, caught)
		if caught > time.Minute {
			t.Errorf("caught up after %v", caught)
		}
		if tries > 600 {
			t.Errorf("%d tries in an hour", tries)
		}
		var late time.Duration
		for id, at := range r.at {
			if at.After(back) {
				late = max(late, r.store.rows[id].Sub(at))
			}
		}
		t.Logf("fresh records were stored after %v at most", late)
		if late > 20*time.Second {
			t.Errorf("fresh records waited %v", late)
		}
		requireByAge(t, r.store.order[:backlog])
	})
}

// requireByAge: at least 7 of 10 records come when nothing much older is left;
// the others are the share of the newest. Two workers may swap neighbours.
func requireByAge(t *testing.T, order []string) {
	t.Helper()
	const neighbours = 1500 // three segments
	seen, oldest, inOrder := map[int]bool{}, 0, 0
	for _, id := range order {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "op-"))
		if err != nil {
			t.Fatal(err)
		}
		if n-oldest <= neighbours {
			inOrder++
		}
		for seen[n] = true; seen[oldest]; {
			oldest++
		}
	}
	if inOrder < len(order)*7/10 {
		t.Errorf("%d of %d were stored in order of age", inOrder, len(order))
	}
	t.Logf("%d of %d were stored in order of age, the others are the share of the newest", inOrder, len(order))
}

func TestTriesAreJitteredAndCapped(t *testing.T) {
	inBubble(t, func(o *drain.Options) { o.MaxBackoff = 8 * time.Second }, func(r *rig) {
		r.store.failWith(func([]retrylens.Attempt) error { return errDown })
		r.segment(10)
		r.segment(10)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		gaps := map[time.Duration]bool{}
		for i := 1; i < r.store.count(); i++ {
			gap := r.store.tries[i].Sub(r.store.tries[i-1])
			gaps[gap] = true
			if gap > 9*time.Second {
				t.Errorf("waited %v", gap)
			}
		}
		if n := r.store.count(); n < 60 || n > 400 || len(gaps) < n/2 {
			t.Errorf("%d tries, %d different waits", n, len(gaps))
		}
		r.requireStored(0)
		r.store.failWith(nil)
		r.flush(time.Minute)
		r.requireStored(20)
		if r.seen.retried["retry"] == 0 {
			t.Error("retries are not told")
		}
	})
}

func TestBadRecordsBecomeDeadLetters(t *testing.T) {
	bad := map[string]bool{"op-000003": true, "op-000057": true, "op-000099": true}
	inBubble(t, nil, func(r *rig) {
		r.store.failWith(func(rows []retrylens.Attempt) error {
			for _, a := range rows {
				if bad[a.LogicalID] {
					return fmt.Errorf("%w: %s", errBad, a.LogicalID)
				}
			}
			return nil
		})
		r.segment(100)
		r.flush(time.Minute)
		r.requireStored(97)
		if r.seen.died != 3 {
			t.Errorf("%d died", r.seen.died)
		}
		f, err := os.Open(r.dead.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		letters, err := wire.DecodeAll(f) // as an import would
		if err != nil || len(letters) != 3 {
			t.Fatalf("%d letters, %v", len(letters), err)
		}
		reasons, err := os.Open(r.dead.ReasonsPath())
		if err != nil {
			t.Fatal(err)
		}
		defer reasons.Close()
		for lines, i := bufio.NewScanner(reasons), 0; lines.Scan(); i++ {
			if !strings.Contains(lines.Text(), letters[i].LogicalID) || !strings.Contains(lines.Text(), "bad row") {
				t.Errorf("reason %d: %s", i, lines.Text())
			}
		}
	})
}

func TestTooMuchAtOnceIsHalved(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.store.failWith(func(rows []retrylens.Attempt) error {
			if len(rows) > 10 {
				return errMuch
			}
			return nil
		})
		r.segment(100)
		r.flush(time.Minute)
		r.requireStored(100)
	})
}

// One segment that fails for ever does not keep the others waiting.
func TestOneSegmentDoesNotBlockTheOthers(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.store.failWith(func(rows []retrylens.Attempt) error {
			if rows[0].LogicalID == "op-000000" {
				return errors.New("never seen")
			}
			return nil
		})
		for range 20 {
			r.segment(10)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		r.requireStored(190)
		if n := len(r.spool.Sealed()); n != 1 {
			t.Errorf("%d left", n)
		}
	})
}

func TestAFatalErrorIsWaitedFor(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.store.failWith(func([]retrylens.Attempt) error { return errFatal })
		r.segment(10)
		time.Sleep(time.Hour)
		r.store.failWith(nil)
		r.flush(time.Minute)
		r.requireStored(10)
		if r.seen.retried["fatal"] == 0 {
			t.Error("not told")
		}
	})
}

// A store that never answers is given up after a while, and at the end at once.
func TestAStoreThatHangs(t *testing.T) {
	inBubble(t, func(o *drain.Options) { o.InsertTimeout = 30 * time.Second }, func(r *rig) {
		r.store.took = time.Hour
		r.segment(10)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := r.store.count(); n != 1 {
			t.Errorf("%d tries", n)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := r.store.count(); n < 2 {
			t.Errorf("%d tries", n)
		}
	})
}

func TestLargeSegmentsAreSeveralInserts(t *testing.T) {
	inBubble(t, func(o *drain.Options) { o.BatchRows = 100 }, func(r *rig) {
		r.segment(1050)
		r.flush(time.Minute)
		r.requireStored(1050)
		if n := r.store.count(); n != 11 {
			t.Errorf("%d inserts", n)
		}
	})
}
