package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
)

// from and between are conditions of records by their number.
func from(n int) func(int) bool       { return func(i int) bool { return i >= n } }
func between(a, b int) func(int) bool { return func(i int) bool { return i >= a && i < b } }

// A store that refuses everything, as with a broken constraint, is not to blame on
// the records: while it does nothing is given up and few inserts are made, and
// then all is stored.
func TestAStoreThatRefusesEverything(t *testing.T) {
	for _, reason := range []func(string) string{same, each} {
		for _, size := range []int{1, 63, 64, 65, 1000} {
			for _, segments := range []int{1, 3} {
				t.Run(fmt.Sprint("after it took some ", size, " ", segments), func(t *testing.T) {
					inBubble(t, nil, func(r *rig) {
						r.segment(10)
						r.refusedForAnHour(reason, size, segments)
					})
				})
				if segments == 1 {
					continue // alone, it cannot be told
				}
				t.Run(fmt.Sprint("from the start ", size), func(t *testing.T) {
					inBubble(t, nil, func(r *rig) { r.refusedForAnHour(reason, size, segments) })
				})
			}
		}
	}
}

func (r *rig) refusedForAnHour(reason func(string) string, size, segments int) {
	r.t.Helper()
	r.store.failWith(refuse(always, reason))
	for range segments {
		r.append(size)
		r.spool.Seal()
	}
	began := r.store.count()
	time.Sleep(time.Hour)
	synctest.Wait()
	if n := len(r.spool.Sealed()); r.seen.died != 0 || n != segments || r.seen.retried["fatal"] == 0 {
		r.t.Errorf("%d segments left, %+v", n, r.seen)
	}
	if n := r.store.count() - began; n > 100_000 {
		r.t.Errorf("%d inserts in an hour", n)
	}
	r.store.failWith(nil)
	r.flush(time.Minute)
	r.requireStored(r.next)
}

// Segments of nothing but bad records become dead letters when the store takes
// others, and at a bounded price.
func TestSegmentsOfBadRecordsOnly(t *testing.T) {
	for name, reason := range map[string]func(string) string{"same": same, "each": each} {
		for _, size := range []int{1, 63, 64, 1000} {
			t.Run(fmt.Sprint("the store took others before ", name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(r *rig) {
					r.segment(10)
					bad := from(10)
					r.store.failWith(refuse(bad, reason))
					began := r.store.count()
					r.segment(size)
					r.flush(time.Minute)
					r.requireLetters(bad)
					if n := r.store.count() - began; n > size+size/64+100 {
						r.t.Errorf("%d inserts for %d bad records", n, size)
					}
				})
			})
			t.Run(fmt.Sprint("others come later ", name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(r *rig) {
					bad := below(3 * size)
					r.store.failWith(refuse(bad, reason))
					for range 3 {
						r.append(size)
						r.spool.Seal()
					}
					time.Sleep(time.Hour)
					synctest.Wait()
					if r.seen.died != 0 {
						r.t.Errorf("%d given up by a store that never took anything", r.seen.died)
					}
					r.append(10)
					r.spool.Seal()
					r.flush(3 * time.Minute)
					r.requireLetters(bad)
				})
			})
			t.Run(fmt.Sprint("a good one is in their middle ", name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(r *rig) {
					good := between(3*size, 4*size)
					bad := func(n int) bool { return !good(n) }
					r.store.failWith(refuse(bad, reason))
					for range 7 {
						r.append(size)
						r.spool.Seal()
					}
					r.flush(10 * time.Minute)
					r.requireLetters(bad)
				})
			})
			t.Run(fmt.Sprint("alone ", name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(r *rig) {
					r.store.failWith(refuse(always, reason))
					r.segment(size)
					if r.seen.died != 0 || r.seen.retried["fatal"] != 1 {
						r.t.Errorf("given up at the first look: %+v", r.seen)
					}
					r.flush(time.Minute)
					r.requireLetters(always)
				})
			})
		}
	}
}

// A store that breaks while a segment is searched for its bad records, and is mended
// later, makes no others dead letters.
func TestAStoreThatBreaksInTheMiddle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	for range 40 {
		begin, share := 1+rnd.IntN(300), 1+rnd.IntN(50)
		bad := func(n int) bool { return n >= 10 && n%share == 0 }
		t.Run(fmt.Sprintf("at insert %d, 1 of %d bad", begin, share), func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.segment(10)
				tries, refused, all := 0, refuse(bad, each), refuse(always, same)
				var broke time.Time
				r.store.failWith(func(rows []retrylens.Attempt) error {
					tries++
					if tries == begin {
						broke = time.Now()
					}
					if !broke.IsZero() && time.Since(broke) < 10*time.Second {
						return all(rows)
					}
					return refused(rows)
				})
				r.segment(1000)
				r.flush(5 * time.Minute)
				r.requireLetters(bad)
			})
		})
	}
}

// However many segments of bad records there are, fresh ones do not wait for them.
func TestTheSearchForBadRecordsKeepsAWorkerFree(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		const bads = 5 * 2000
		r.segment(10)
		bad := between(10, 10+bads)
		r.store.failWith(refuse(bad, same))
		r.store.took = 5 * time.Millisecond
		for range 5 {
			r.append(2000)
			r.spool.Seal()
		}
		for range 120 {
			r.segment(10)
		}
		r.flush(time.Minute)
		r.requireLetters(bad)
		var late time.Duration
		for id, at := range r.at {
			if !bad(number(id)) {
				late = max(late, r.store.rows[id].Sub(at))
			}
		}
		t.Logf("fresh records were stored after %v at most", late)
		if late > 12*time.Second { // 10 of them until a segment is sealed while more than four wait
			t.Errorf("fresh records waited %v", late)
		}
	})
}

// One worker does both.
func TestBadRecordsWithOneWorker(t *testing.T) {
	inBubble(t, func(o *drain.Options) { o.Workers = 1 }, func(r *rig) {
		bad := func(n int) bool { return n%3 == 0 }
		r.store.failWith(refuse(bad, each))
		r.segment(100)
		r.segment(100)
		r.flush(time.Minute)
		r.requireLetters(bad)
	})
}
