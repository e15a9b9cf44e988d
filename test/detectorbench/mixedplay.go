package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/sim"
)

// mixedWorld is one of the second family: everything about it follows from kind, history
// and seed.
type mixedWorld struct {
	kind          int
	before, lasts time.Duration
	seed          uint64

	good, event mixed
	course      course
	over        time.Duration // of an onset, a tooth, a blip
	truth       sim.State     // "" = between: neither
}

const (
	mixedLasts    = 25 * time.Minute
	mixedHarmless = time.Hour
	mixedAfter    = 20 * time.Minute
	mixedStream   = 0x6d69786564 // of random numbers, of this family alone
)

// mixedOf are so many worlds of each kind and history.
func mixedOf(first uint64, seeds int) (out []mixedWorld) {
	for kind := range mixedKinds {
		for _, before := range mixedHistories {
			for range seeds {
				out = append(out, newMixed(kind, before, first))
				first++
			}
		}
	}
	return out
}

func newMixed(kind int, before time.Duration, seed uint64) mixedWorld {
	r, k := rand.New(rand.NewPCG(seed, mixedStream)), &mixedKinds[kind]
	w := mixedWorld{kind: kind, before: before, lasts: mixedHarmless, seed: seed, course: k.course, good: goodDay(r)}
	if k.always != nil {
		k.always(r, &w.good)
	}
	w.event = w.good
	k.change(r, &w.event)
	switch k.course {
	case ramp:
		w.over = time.Duration(uniform(r, 3, 20) * float64(time.Minute))
	case saw:
		w.over = time.Duration(uniform(r, 2, 6) * float64(time.Minute))
	case blip:
		w.over = time.Duration(uniform(r, 10, 30) * float64(time.Second))
	}
	if w.truth = w.judge(); w.truth == sim.MaskedOutage {
		w.lasts = mixedLasts
	}
	return w
}

// census is what many operations come to.
type census struct{ calls, tries, caused, success, errors, p50, p99 float64 }

// caused is what was called or tried beyond the first because of a failure with a class, or
// by a layer below.
func (m *mixed) census(seed uint64) census {
	const operations = 3000
	r := rand.New(rand.NewPCG(seed, mixedStream+1))
	var records []retrylens.Attempt
	for i := range operations {
		m.operation(r, began.Add(time.Duration(i)*time.Second), func(a *retrylens.Attempt) {
			a.Normalize()
			records = append(records, *a)
		})
	}
	var c metrics.Counters
	var latencies []float64
	for _, o := range metrics.Operations(records, began.Add(24*time.Hour)) {
		o.AddTo(&c)
		if o.LatencyMS.Set {
			latencies = append(latencies, float64(o.LatencyMS.Value))
		}
	}
	out := census{
		calls: float64(c.UpstreamCalls)/operations - 1, tries: float64(c.Attempts)/operations - 1, success: 1,
		errors: float64(c.Failed) / operations, p50: 1, p99: 1,
	}
	failures := c.FailedAttempts - c.ErrorsByClass[string(retrylens.ClassCancelled)] - c.DuplicatesRefused
	out.caused = min(max(out.calls, out.tries), float64(failures+c.HiddenCalls)/operations)
	if c.Retries > 0 {
		out.success = float64(c.RetrySuccesses) / float64(c.Retries)
	}
	if n := len(latencies); n > 0 {
		slices.Sort(latencies)
		out.p50, out.p99 = latencies[n/2], latencies[n*99/100]
	}
	return out
}

// judge says what a world is by docs/metrics.md, where its figures leave no doubt. Who has no
// history is compared with the same answers without failures.
func (w *mixedWorld) judge() sim.State {
	good, bad := w.good.census(w.seed), w.event.census(w.seed+1)
	if w.before == 0 {
		plain := w.event
		plain.First, plain.Retry, plain.Rest, plain.Elsewhere, plain.Hidden = 0, 0, 0, 0, 0
		good = plain.census(w.seed)
	}
	votes := 0
	for _, held := range [...]bool{bad.success <= min(0.9, good.success)-0.1, bad.p50 >= 1.2*good.p50, bad.p99 >= 1.2*good.p99} {
		votes += one(held)
	}
	rise := bad.caused - good.caused
	switch {
	case w.course == blip:
		return sim.Healthy
	case bad.errors >= good.errors+0.08:
		return sim.Outage
	case bad.errors > flat || bad.errors > good.errors+0.015:
	case bad.caused < 0.13 && good.errors < flat:
		return sim.Flaky
	case bad.calls >= 0.3 && rise >= 0.2 && bad.caused >= 0.25 && votes >= 2:
		return sim.MaskedOutage
	}
	return ""
}

// at are the figures of a moment.
func (w *mixedWorld) at(t time.Duration) (m mixed) {
	into := t - w.before
	switch {
	case into < 0 || into >= w.lasts || w.course == blip && into >= w.over:
		m = w.good
	case w.course == ramp && into < w.over:
		m = w.good.towards(&w.event, float64(into)/float64(w.over))
	case w.course == saw:
		m = w.good.towards(&w.event, 0.5+0.5*math.Mod(float64(into)/float64(w.over), 1))
	default:
		m = w.event
	}
	phase := float64(w.seed%24)/24 + float64(t)/float64(24*time.Hour)
	m.PerMinute *= 1 + m.Season*math.Sin(2*math.Pi*phase)
	return m
}

// towards mixes what can be mixed.
func (m mixed) towards(g *mixed, share float64) mixed {
	out := *g
	for _, f := range [...]struct {
		to   *float64
		a, b float64
	}{
		{&out.First, m.First, g.First}, {&out.Retry, m.Retry, g.Retry}, {&out.Answer.MedianMS, m.Answer.MedianMS, g.Answer.MedianMS},
		{&out.Hidden, m.Hidden, g.Hidden}, {&out.Timeouts, m.Timeouts, g.Timeouts}, {&out.FailMS, m.FailMS, g.FailMS},
	} {
		*f.to = f.a + (f.b-f.a)*share
	}
	return out
}

// play makes the records and evaluates them.
func (w *mixedWorld) play(ctx context.Context, o detect.Options, look func(*detect.Evaluation)) error {
	d, err := detect.New(o)
	if err != nil {
		return err
	}
	f, err := replay.NewFeed(replay.Options{Hold: shapeHold, OnMoment: func(v *replay.Window) error { return v.Evaluate(d, look) }})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(w.seed, mixedStream+2))
	var failed error
	for t := time.Duration(0); t < w.before+w.lasts+mixedAfter && failed == nil; {
		m, home := w.at(t), r.IntN(1+w.good.Neighbours)
		if home > 0 {
			m = w.good
		}
		t += time.Duration(r.ExpFloat64() / m.PerMinute / float64(1+w.good.Neighbours) * float64(time.Minute))
		m.operation(r, began.Add(t), func(a *retrylens.Attempt) {
			a.Provider = [...]string{"p", "q", "r"}[home]
			a.Normalize()
			failed = errors.Join(failed, f.Add(a))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed, f.Close())
}
