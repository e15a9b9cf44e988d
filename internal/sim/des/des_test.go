package des_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/sim/des"
)

type recorder struct {
	q     *des.Queue
	fired []time.Duration
	whats []int
}

func (r *recorder) Fire(what int) {
	r.fired = append(r.fired, r.q.Now())
	r.whats = append(r.whats, what)
}

func TestEventsRunInOrderOfTimeThenOfSetting(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var q des.Queue
		r := &recorder{q: &q}
		at := map[int]time.Duration{}
		for i := range 500 {
			at[i] = time.Duration(rnd.IntN(50))
			q.After(at[i], r, i)
		}
		for q.Step() {
		}
		if !slices.IsSorted(r.fired) || len(r.fired) != 500 {
			t.Fatalf("seed %d: %d events, sorted %v", seed, len(r.fired), slices.IsSorted(r.fired))
		}
		for i := 1; i < len(r.whats); i++ {
			a, b := r.whats[i-1], r.whats[i]
			if at[a] == at[b] && a > b {
				t.Fatalf("seed %d: %d before %d at the same time", seed, a, b)
			}
		}
	}
}

func TestAnEventInThePastIsNow(t *testing.T) {
	var q des.Queue
	r := &recorder{q: &q}
	q.After(time.Second, r, 0)
	q.Step()
	q.At(0, r, 1)
	q.After(-time.Hour, r, 2)
	for q.Step() {
	}
	if q.Now() != time.Second || !slices.Equal(r.whats, []int{0, 1, 2}) {
		t.Errorf("%v %v", q.Now(), r.whats)
	}
}

// A station is held to a queue that is played out second by second: the start of
// each is the first moment at which a server is free and nobody is before it.
func TestAStationServesFirstComeFirstServed(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		servers, waiting := 1+rnd.IntN(5), rnd.IntN(8)
		s := des.NewStation(servers, waiting)
		free := make([]time.Duration, servers)
		var starts []time.Duration
		now := time.Duration(0)
		for i := range 2000 {
			now += time.Duration(rnd.ExpFloat64() * 10)
			start, ok := s.Offer(now)
			slices.Sort(free)
			want := max(now, free[0])
			line := 0
			for _, st := range starts {
				if st > now {
					line++
				}
			}
			if s.Waiting() != line || ok != (want == now || line < waiting) || start != want {
				t.Fatalf("seed %d, arrival %d: start %v ok %v line %d, want %v and a line of %d of %d", seed, i, start, ok, s.Waiting(), want, line, waiting)
			}
			if !ok {
				continue
			}
			hold := time.Duration(rnd.ExpFloat64() * 10 * float64(servers))
			s.Serve(now, start, hold)
			free[0] = want + hold
			starts = append(starts, start)
		}
	}
}

// TestWaitsAreThoseOfQueueingTheory: M/M/1 at 80 % has a mean wait of 4 services.
func TestWaitsAreThoseOfQueueingTheory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := des.NewStation(1, math.MaxInt)
	var now, waits time.Duration
	const n = 400_000
	for range n {
		now += time.Duration(rnd.ExpFloat64() * float64(time.Second) / 0.8)
		start, _ := s.Offer(now)
		s.Serve(now, start, time.Duration(rnd.ExpFloat64()*float64(time.Second)))
		waits += start - now
	}
	if mean := waits.Seconds() / n; mean < 3.6 || mean > 4.4 {
		t.Errorf("mean wait %.2f services, want 4", mean)
	}
}
