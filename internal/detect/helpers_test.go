package detect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
)

// monday is when every test begins.
var monday = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

var gpt = detect.Key{Tenant: "acme", Provider: "openai", Model: "gpt-4o"}

// shape is what the operations of a span are like: all of its slots alike.
type shape struct {
	operations      int64   // of the span; 20 slots
	extra           int64   // calls and tries beyond the first, as retries, a slot
	retriesFail     int64   // of those, a slot
	failed          int64   // operations that fail, a slot
	p50, p99        int64   // 0 = 2,000 and 12,000
	served, refused int64   // duplicates, a slot
	hidden          int64   // calls, a slot
	redelivered     int64   // tries that are no retries, a slot
	lost            int64   // of them those that fail
	hedged, beaten  int64   // hedges a slot, and attempts that lost one
	saved           int64   // operations a slot whose first attempt failed and whose hedge answered
	p25, answer     int64   // the fastest quarter, and what answers take without retries; 0 = half of p50, and p50
	open            int64   // operations a slot whose first attempt failed and that have no end yet
	failures        []int64 // operations that fail, by slot; nil = failed
	only            int     // slots, the newest, that have any of it; 0 = all
}

func (s shape) slot(i int) detect.Counts {
	n := s.operations / int64(detect.SpanSlots)
	c := detect.Counts{Operations: n, Succeeded: n, Attempts: n, UpstreamCalls: n, FirstAttempts: n, FirstSuccesses: n}
	if s.only > 0 && i < detect.SpanSlots-s.only {
		return c
	}
	if s.failures != nil {
		s.failed = s.failures[i]
	}
	troubled := min(n, s.extra+s.open+s.saved)
	c.Succeeded, c.Failed = n-s.failed-s.open, s.failed
	c.Attempts += s.extra + s.served + s.refused + s.redelivered + s.hedged + s.saved
	c.Retries, c.RetrySuccesses = s.extra+s.served+s.refused, s.extra-s.retriesFail+s.served
	c.FailedAttempts = troubled + s.retriesFail + s.refused + s.lost + s.beaten
	c.FirstSuccesses = n - troubled
	c.UpstreamCalls += s.extra + s.hidden + s.redelivered + s.hedged + s.saved
	c.Hedges, c.Cancelled = s.hedged+s.saved, s.beaten
	c.HiddenCalls, c.DuplicatesServed, c.DuplicatesRefused = s.hidden, s.served, s.refused
	return c
}

// sample of a shape.
func (s shape) sample(k detect.Key, at time.Time) *detect.Sample {
	out := &detect.Sample{Key: k, At: at}
	for i := range detect.SpanSlots {
		c := s.slot(i)
		out.Slots[i] = c
		out.Window.Add(&c, 1)
		if i >= detect.SpanSlots-detect.RecentSlots {
			out.Recent.Add(&c, 1)
		}
	}
	for _, v := range []*detect.View{&out.Window, &out.Recent} {
		v.Delivered = v.Succeeded
		if v.Delivered > 0 {
			v.P50MS, v.P99MS = 2000, 12_000
			if s.p50 > 0 {
				v.P50MS = s.p50
			}
			if s.p99 > 0 {
				v.P99MS = s.p99
			}
			v.P25MS, v.AnswerP50MS, v.AnswerP99MS = v.P50MS/2, v.P50MS, v.P99MS
			v.AnswerMS = v.P50MS
			if s.p25 > 0 {
				v.P25MS = s.p25
			}
			if s.answer > 0 {
				v.AnswerP50MS, v.AnswerP99MS, v.AnswerMS = s.answer, 3*s.answer, s.answer
			}
		}
	}
	return out
}

// usual is a good day: 200 operations in 5 minutes.
var usual = shape{operations: 200}

// bad is a masked outage of 200 operations.
var bad = shape{operations: 200, extra: 4, retriesFail: 1, p50: 4000, p99: 30_000, answer: 3000}

// story feeds a detector, one evaluation after another.
type story struct {
	t  testing.TB
	d  *detect.Detector
	at time.Time
	detect.Evaluation
}

func newStory(t testing.TB, o detect.Options) *story {
	t.Helper()
	d, err := detect.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &story{t: t, d: d, at: monday}
}

// next evaluates a shape so many times; what was said last is left in the story.
func (s *story) next(what shape, times int) *story {
	s.t.Helper()
	for range times {
		s.at = s.at.Add(detect.Interval)
		e, ok, err := s.d.Evaluate(what.sample(gpt, s.at))
		if err != nil || !ok {
			s.t.Fatalf("%s: %v, %v", s.at, ok, err)
		}
		s.Evaluation = e
	}
	return s
}

// hours of a shape.
func (s *story) hours(what shape, n int) *story {
	s.t.Helper()
	return s.next(what, n*int(time.Hour/detect.Interval))
}

// says holds what was said last to a state.
func (s *story) says(want detect.State) *story {
	s.t.Helper()
	if s.State != want {
		s.t.Errorf("%s: %s, want %s; votes %v, tests %+v", s.at.Format("15:04:05"), s.State, want, s.Votes, s.Tests)
	}
	return s
}

func (s *story) votes(want ...detect.Vote) *story {
	s.t.Helper()
	if !slices.Equal(s.Votes, want) {
		s.t.Errorf("%s: votes %v, want %v; %+v", s.at.Format("15:04:05"), s.Votes, want, s.Tests)
	}
	return s
}
