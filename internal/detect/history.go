package detect

import (
	"math"
	"time"
)

const (
	// learnEvery is how often a sample is learned: when its window is all new.
	learnEvery = Span
	// day is how many samples are remembered: the trailing 24 hours.
	day = int(24 * time.Hour / learnEvery)
	// quarantine is how many samples wait until they are learned: an incident that begins
	// meanwhile takes its run-up along.
	quarantine = 6
	// warm is how many learned samples make a baseline; before, it is a young one, and
	// without one the floors hold.
	warm     = 12
	youngest = 1
)

// The two parts of a sample that have quantiles of their own.
const (
	ofWindow = iota
	ofRecent
	parts
)

// entry is what is remembered of a sample.
type entry struct {
	Hour                        uint8 // of the week, 0 = Sunday 0:00 UTC
	Operations, Calls, Tries    uint32
	Failed, Finished            uint32
	Retries, Successes          uint32
	FirstAttempts, FirstSuccess uint32
	Latency                     [parts]latency
}

// latency holds logarithms of milliseconds; NaN = not known.
type latency struct {
	N        uint32
	P50, P99 float32
	Answer   float32
}

func newEntry(s *Sample) entry {
	calls, tries := s.Window.extra()
	retries, successes := s.Window.netRetries()
	u := func(v int64) uint32 { return uint32(min(max(v, 0), math.MaxUint32)) } //nolint:gosec // bounded
	e := entry{
		Hour: hourOfWeek(s.At), Operations: u(s.Window.Operations), Calls: u(calls), Tries: u(tries),
		Failed: u(s.Window.Failed), Finished: u(s.Window.Failed + s.Window.Succeeded), Retries: u(retries), Successes: u(successes),
		FirstAttempts: u(s.Window.FirstAttempts), FirstSuccess: u(s.Window.FirstAttempts - s.Window.firstFailed()),
	}
	for part, v := range s.parts() {
		e.Latency[part] = latency{N: u(v.Delivered), P50: float32(logMS(v, v.P50MS)), P99: float32(logMS(v, v.P99MS)), Answer: float32(logMS(v, v.AnswerMS))}
	}
	return e
}

func (s *Sample) parts() [parts]*View { return [parts]*View{&s.Window, &s.Recent} }

// logMS is NaN where too few have a latency to speak of.
func logMS(v *View, ms int64) float64 {
	if v.Delivered < minDelivered {
		return math.NaN()
	}
	return math.Log(float64(max(ms, 1)))
}

// minDelivered operations make a quantile.
const minDelivered = 8

// extra are the upstream calls and the tries beyond one for each operation that something
// went before: an attempt that failed, or a layer below that sent again. A duplicate that
// was refused or served from memory is no try at the work, and one that follows no failure
// tells nothing of the provider; nor does a hedge.
func (c *Counts) extra() (calls, tries int64) {
	calls, tries = c.allExtra()
	failed := c.failed()
	return min(calls, failed+c.below()), min(tries, failed)
}

// unasked are those of extra, and the duplicates that follow no failure, too; no hedges,
// which a service sends by its own will as soon as answers are slow.
func (c *Counts) unasked() (calls, tries int64) {
	calls, tries = c.extra()
	allCalls, allTries := c.allExtra()
	return max(calls, allCalls-c.Hedges), max(tries, allTries-c.Hedges)
}

func (c *Counts) allExtra() (calls, tries int64) {
	duplicates := c.DuplicatesServed + c.DuplicatesRefused
	return max(0, c.UpstreamCalls-c.Operations), max(0, c.Attempts-duplicates-c.Operations)
}

// failed are the attempts that did; one that lost its hedge or was refused as a duplicate did
// not.
func (c *Counts) failed() int64 {
	return max(0, c.FailedAttempts-c.DuplicatesRefused-min(c.Cancelled, c.Hedges))
}

// firstFailed are the first ones of them, at most.
func (c *Counts) firstFailed() int64 {
	return min(max(0, c.FirstAttempts-c.FirstSuccesses-c.DuplicatesRefused), c.failed())
}

// below are the calls that layers below the reporting one have added.
func (c *Counts) below() int64 { return max(c.HiddenCalls, c.LayerUpstreamCalls-c.LayerAttempts, 0) }

// netRetries are the retries without duplicates: a refused one failed, a served one
// succeeded, and neither tells of the provider.
func (c *Counts) netRetries() (retries, successes int64) {
	successes = max(0, c.RetrySuccesses-c.DuplicatesServed)
	return max(successes, c.Retries-c.DuplicatesServed-c.DuplicatesRefused), successes
}

func hourOfWeek(t time.Time) uint8 {
	t = t.UTC()
	return uint8(int(t.Weekday())*24 + t.Hour()) //nolint:gosec // below 168
}

// history is the learned samples of the last day, and those in quarantine.
type history struct {
	ring    []entry // grows to day, then turns
	next    int     // of ring, once it is full
	waiting []entry
}

// take puts a sample into quarantine and tells whether one came out of it.
func (h *history) take(e entry) (entry, bool) {
	h.waiting = append(h.waiting, e)
	if len(h.waiting) <= quarantine {
		return entry{}, false
	}
	out := h.waiting[0]
	h.waiting = append(h.waiting[:0], h.waiting[1:]...)
	h.learn(out)
	return out, true
}

// flaky tells whether the two newest samples had more calls or tries than that.
func (h *history) flaky(excess float64) bool {
	n := len(h.waiting)
	if n < 2 {
		return false
	}
	a, b := &h.waiting[n-2], &h.waiting[n-1]
	return ratio(int64(max(a.Calls+b.Calls, a.Tries+b.Tries)), int64(a.Operations+b.Operations)) >= excess
}

func (h *history) learn(e entry) {
	if len(h.ring) < day {
		h.ring = append(h.ring, e)
		return
	}
	h.ring[h.next] = e
	h.next = (h.next + 1) % day
}

// last calls fn with the newest n entries of the ring, and the others with old.
func (h *history) split(n int, old func(*entry)) {
	for i := range h.ring {
		age := (h.next - 1 - i + len(h.ring)) % len(h.ring)
		if age >= n {
			old(&h.ring[i])
		}
	}
}
