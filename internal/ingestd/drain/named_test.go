package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
)

// naming is an error that says which record of the batch it is about.
type naming struct {
	error
	row int
}

func (n naming) RefusedRow() int { return n.row }
func (n naming) Unwrap() error   { return n.error }

// named refuses as refuse does and names a record of the batch.
func named(bad func(int) bool, name func(first, of int) int) func([]retrylens.Attempt) error {
	return func(rows []retrylens.Attempt) error {
		for i, a := range rows {
			if bad(number(a.LogicalID)) {
				return naming{fmt.Errorf("%w: %s", errBad, a.LogicalID), name(i, len(rows))}
			}
		}
		return nil
	}
}

// A few bad records that the store names cost two inserts each, and not a search; many
// cost no more than a search.
func TestNamedRecordsAreNotSearchedFor(t *testing.T) {
	right := func(first, _ int) int { return first }
	for every, most := range map[int]int{1000: 10, 36: 2*28 + 10, 3: 1000 + 200, 2: 2 * 1000, 1: 1000 + 64 + 200} {
		t.Run(fmt.Sprint("one of ", every), func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				r.segment(10)
				bad := func(n int) bool { return n >= 10 && n%every == every/2 }
				r.store.failWith(named(bad, right))
				began := r.store.count()
				r.segment(1000)
				r.flush(time.Minute)
				r.requireLetters(bad)
				n := r.store.count() - began
				t.Logf("%d inserts", n)
				if n > most {
					t.Errorf("%d inserts, want at most %d", n, most)
				}
			})
		})
	}
}

// A store that names others than those that it refuses has no say: the same records are
// dead letters.
func TestWhoeverTheStoreNamesTheSameRecordsAreDeadLetters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	for name, say := range map[string]func(first, of int) int{
		"the next": func(first, _ int) int { return first + 1 }, "the one before": func(first, _ int) int { return first - 1 },
		"always the first": func(int, int) int { return 0 }, "always the last": func(_, of int) int { return of - 1 },
		"none there": func(_, of int) int { return of }, "anyone": func(_, of int) int { return rnd.IntN(of) },
	} {
		for _, every := range []int{1, 2, 7, 100} {
			t.Run(fmt.Sprint(name, " one of ", every), func(t *testing.T) {
				inBubble(t, nil, func(r *rig) {
					r.segment(10)
					bad := func(n int) bool { return n >= 10 && n%every == 0 }
					r.store.failWith(named(bad, say))
					began := r.store.count()
					r.segment(500)
					r.flush(time.Minute)
					r.requireLetters(bad)
					if n := r.store.count() - began; n > 3*500 {
						t.Errorf("%d inserts for 500 records", n)
					}
				})
			})
		}
	}
}
