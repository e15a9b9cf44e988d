package breaker

import "time"

const steps = 10

// window counts samples of the last steps of time; the oldest tenth goes at once.
type window struct {
	step            time.Duration
	last            int64 // number of the newest step
	cells           [steps]struct{ total, failures int }
	total, failures int
}

func newWindow(d time.Duration) window { return window{step: d / steps} }

func (w *window) reset() { *w = window{step: w.step} }

// add counts one sample and returns what the window holds.
func (w *window) add(now time.Time, failed bool) (total, failures int) {
	w.roll(now)
	c := &w.cells[uint64(w.last)%steps]
	c.total++
	w.total++
	if failed {
		c.failures++
		w.failures++
	}
	return w.total, w.failures
}

func (w *window) sum(now time.Time) (total, failures int) {
	w.roll(now)
	return w.total, w.failures
}

// roll empties the steps that have passed; a clock that went back changes nothing.
func (w *window) roll(now time.Time) {
	n := now.UnixNano() / int64(w.step)
	if w.last == 0 {
		w.last = n
	}
	for i := 0; w.last < n && i < steps; i++ {
		w.last++
		c := &w.cells[uint64(w.last)%steps]
		w.total -= c.total
		w.failures -= c.failures
		c.total, c.failures = 0, 0
	}
	w.last = max(w.last, n)
}
