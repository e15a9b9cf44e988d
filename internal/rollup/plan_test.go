package rollup_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/retrylens/retrylens/internal/rollup"
)

const minute, hour, day = int64(60_000), int64(3_600_000), int64(86_400_000)

// Every instant of a window is answered exactly once, what is stale or judged
// otherwise from attempts, unless these may be gone, and nothing outside the window.
func TestPlansCoverTheWindow(t *testing.T) {
	for seed := range uint64(2000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			from := r.Int64N(3*day) - day
			req := rollup.Request{
				Window:   rollup.Span{From: from, To: from + r.Int64N(4*day)},
				Coarsest: rollup.Levels[r.IntN(3)], AsOf: 5, Lookup: lookup(r.Uint64(), r.IntN(4)),
			}
			if r.IntN(2) == 0 {
				req.Expired = (from + r.Int64N(4*day)) / minute * minute
			}
			for range r.IntN(40) {
				m := (from + r.Int64N(4*day)) / minute * minute
				req.Stale = append(req.Stale, rollup.Span{From: m, To: m + 1 + r.Int64N(15*minute)})
			}
			p, err := rollup.Make(req)
			if err != nil {
				t.Fatal(err)
			}
			checkPlan(t, req, p)
		})
	}
}

// lookup knows every bucket; of the minutes some do not hold, and so do not the
// buckets around them.
func lookup(seed uint64, bad int) func(rollup.Level, []rollup.Span) ([]rollup.Bucket, error) {
	holds := func(b rollup.Bucket, width int64) bool {
		for i := range bad {
			at := int64(seed>>(8*i)%1000) * 7 * minute
			if b.Start <= at && at < b.Start+width {
				return false
			}
		}
		return true
	}
	return func(l rollup.Level, spans []rollup.Span) (out []rollup.Bucket, _ error) {
		width := l.Width().Milliseconds()
		for _, s := range spans {
			for start := s.From; start < s.To; start += width {
				b := rollup.Bucket{Start: start, Version: 1, NextLossMS: 100}
				if !holds(b, width) {
					b.NextLossMS = 3
				}
				out = append(out, b)
			}
		}
		return out, nil
	}
}

func checkPlan(t *testing.T, req rollup.Request, p rollup.Plan) {
	t.Helper()
	var all []rollup.Span
	total := int64(0)
	for l, buckets := range p.Buckets {
		width := l.Width().Milliseconds()
		if width > req.Coarsest.Width().Milliseconds() {
			t.Errorf("%s is coarser than %s", l, req.Coarsest)
		}
		for _, b := range buckets {
			s := rollup.Span{From: b.Start, To: b.Start + width}
			expired := s.To <= req.Expired
			if b.NextLossMS <= req.AsOf && !expired {
				t.Errorf("%s %d is judged otherwise", l, b.Start)
			}
			for _, st := range req.Stale {
				if !expired && st.From < s.To && s.From < st.To {
					t.Errorf("%s %d is stale", l, b.Start)
				}
			}
			all, total = append(all, s), total+width
		}
	}
	for _, s := range p.Attempts {
		all, total = append(all, s), total+s.To-s.From
		if whole := (s.From + minute - 1) / minute * minute; whole+minute <= min(s.To, req.Expired) && whole > 0 {
			t.Errorf("attempts of %v are read, before %d there may be none", s, req.Expired)
		}
	}
	joined := rollup.Join(all)
	if req.Window.Empty() {
		if len(joined) > 0 {
			t.Errorf("an empty window reads %v", joined)
		}
		return
	}
	if len(joined) != 1 || joined[0] != req.Window || total != req.Window.To-req.Window.From {
		t.Errorf("window %v, covered %v, %d ms in all", req.Window, joined, total)
	}
}

// A bucket that is not there holds nothing, unless it is stale.
func TestAbsentBucketsAreEmpty(t *testing.T) {
	nothing := func(rollup.Level, []rollup.Span) ([]rollup.Bucket, error) { return nil, nil }
	p, err := rollup.Make(rollup.Request{Window: rollup.Span{From: 30_000, To: 2 * day}, Coarsest: rollup.Day, Lookup: nothing, Stale: []rollup.Span{{From: hour, To: hour + 1}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []rollup.Span{{From: 30_000, To: minute}, {From: hour, To: hour + minute}}
	if len(p.Buckets) != 0 || fmt.Sprint(p.Attempts) != fmt.Sprint(want) {
		t.Errorf("%+v, want attempts %v", p, want)
	}
}

// Many stale minutes are read by the hour, then by the day.
func TestManyStaleMinutesAreReadTogether(t *testing.T) {
	for every, most := range map[int64]int{2 * minute: 1, 3 * hour: 1, 40 * hour: rollup.MaxAttemptSpans} {
		var stale []rollup.Span
		for m := int64(0); m < 30*day; m += every {
			stale = append(stale, rollup.Span{From: m, To: m + minute})
		}
		p, err := rollup.Make(rollup.Request{Window: rollup.Span{To: 30 * day}, Coarsest: rollup.Day, Stale: stale, Lookup: lookup(0, 0)})
		if err != nil || len(p.Attempts) > most {
			t.Errorf("stale every %d minutes: %d spans, %v", every/minute, len(p.Attempts), err)
		}
	}
}

// So are those that do not hold for the as_of, however thin they lie.
func TestManyMinutesThatDoNotHoldAreReadTogether(t *testing.T) {
	never := func(l rollup.Level, spans []rollup.Span) ([]rollup.Bucket, error) {
		var out []rollup.Bucket
		s := rollup.Span{From: spans[0].From, To: spans[len(spans)-1].To}
		step := max(7*minute, l.Width().Milliseconds())
		for at := (s.From + step - 1) / step * step; at < s.To; at += step {
			start := at / l.Width().Milliseconds() * l.Width().Milliseconds()
			if len(out) == 0 || out[len(out)-1].Start < start {
				out = append(out, rollup.Bucket{Start: start, LastLossMS: 40 * day, NextLossMS: 50 * day})
			}
		}
		return out, nil
	}
	p, err := rollup.Make(rollup.Request{Window: rollup.Span{To: 30 * day}, Coarsest: rollup.Day, AsOf: day, Lookup: never})
	if err != nil || len(p.Attempts) > rollup.MaxAttemptSpans || len(p.Buckets) > 0 {
		t.Errorf("%d spans, %d levels, %v", len(p.Attempts), len(p.Buckets), err)
	}
}
