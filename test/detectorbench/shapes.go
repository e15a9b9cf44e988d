package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/sim"
)

// figures are what the operations of a shape are drawn from. The simulator draws no
// figure; these worlds are the opposite on purpose, so that no detector can have been made
// for the simulator alone.
type figures struct {
	PerMinute   float64
	FirstFails  float64 // share of first attempts that fail
	RetryFails  float64 // share of retries that fail, each by itself
	Attempts    int     // at most
	AnswerMS    float64 // median of an answer, log-normal
	Spread      float64 // σ of its logarithm
	FailMS      float64 // median of a failure
	BackoffMS   float64 // in the mean, before the first retry; doubles
	SlowShare   float64 // of the operations whose answers take SlowFactor as long
	SlowFactor  float64
	Duplicates  float64 // share of the operations that are sent again though nothing failed, and answered again
	Refused     float64 // share that are sent again while they are under way, and refused
	Hidden      float64 // calls below the reporting layer for each operation, in the mean
	Quota       bool    // everything is refused, finally
	FailedClass retrylens.ErrorClass
}

// well is a good day.
func well(perMinute float64) figures {
	return figures{
		PerMinute: perMinute, FirstFails: 0.01, RetryFails: 0.05, Attempts: 4, AnswerMS: 2000, Spread: 0.7, FailMS: 400, BackoffMS: 700,
		SlowFactor: 1, FailedClass: retrylens.ClassOverloaded,
	}
}

// shape is a history of figures: well, then what happens, then well again.
type shape struct {
	name   string
	truth  sim.State
	before time.Duration // 0 = it is there from the first record on
	lasts  time.Duration
	onset  time.Duration // over which it comes
	rate   float64
	change func(*figures)
	always func(*figures) // of the good day, too; nil = nothing
	seed   uint64
}

const (
	shapeAfter = 20 * time.Minute
	shapeHold  = 15 * time.Minute // operations are made one after another, their records overlap
)

// at are the figures of a moment.
func (s *shape) at(t time.Duration) figures {
	f := well(s.rate)
	if s.always != nil {
		s.always(&f)
	}
	if t < s.before || t >= s.before+s.lasts {
		return f
	}
	g := f
	s.change(&g)
	if s.onset > 0 && t < s.before+s.onset {
		g = f.towards(&g, float64(t-s.before)/float64(s.onset))
	}
	return g
}

// towards mixes the figures that make an onset.
func (f figures) towards(g *figures, share float64) figures {
	out := *g
	mix := func(a, b float64) float64 { return a + (b-a)*share }
	out.FirstFails, out.RetryFails = mix(f.FirstFails, g.FirstFails), mix(f.RetryFails, g.RetryFails)
	out.AnswerMS, out.FailMS, out.Hidden = mix(f.AnswerMS, g.AnswerMS), mix(f.FailMS, g.FailMS), mix(f.Hidden, g.Hidden)
	return out
}

// play makes the records and evaluates them.
func (s *shape) play(ctx context.Context, o detect.Options, look func(*detect.Evaluation)) error {
	d, err := detect.New(o)
	if err != nil {
		return err
	}
	f, err := replay.NewFeed(replay.Options{Hold: shapeHold, OnMoment: func(w *replay.Window) error { return w.Evaluate(d, look) }})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(s.seed, 0x73686170))
	var failed error
	for t := time.Duration(0); t < s.before+s.lasts+shapeAfter && failed == nil; {
		g := s.at(t)
		t += time.Duration(r.ExpFloat64() / g.PerMinute * float64(time.Minute))
		g.operation(r, began.Add(t), func(a *retrylens.Attempt) {
			a.Normalize()
			failed = errors.Join(failed, f.Add(a))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(failed, f.Close())
}

// operation draws one.
func (f *figures) operation(r *rand.Rand, start time.Time, emit func(*retrylens.Attempt)) {
	id := fmt.Sprintf("%016x", r.Uint64())
	slow := 1.0
	if r.Float64() < f.SlowShare {
		slow = f.SlowFactor
	}
	drawn := func(median float64) int64 { return int64(median * math.Exp(f.Spread*r.NormFloat64())) }
	record := func(attempt int32, at time.Time, ms int64) retrylens.Attempt {
		return retrylens.Attempt{
			Tenant: "t", LogicalID: id, OperationStartedAt: start.Truncate(time.Millisecond), Attempt: attempt, Provider: "p", Model: "m", Service: "s",
			StartedAt: at.Truncate(time.Millisecond), DurationMS: retrylens.Some(ms), Outcome: retrylens.OutcomeSuccess,
			UpstreamCalls: retrylens.Some(uint16(1 + poisson(r, f.Hidden))), //nolint:gosec // a few
		}
	}
	at := start
	for i := range f.Attempts {
		fails := f.FirstFails
		if i > 0 {
			fails = f.RetryFails
		}
		if !f.Quota && r.Float64() >= fails {
			a := record(int32(i), at, drawn(f.AnswerMS*slow)) //nolint:gosec // a few
			emit(&a)
			f.again(r, &a, record, emit)
			return
		}
		a := record(int32(i), at, drawn(f.FailMS)) //nolint:gosec // a few
		a.Outcome, a.ErrorClass = retrylens.OutcomeError, f.FailedClass
		if f.Quota {
			a.ErrorClass = retrylens.ClassQuotaExhausted
		}
		a.Final = retrylens.Some(f.Quota || i == f.Attempts-1)
		emit(&a)
		if f.Quota {
			return
		}
		at = at.Add(time.Duration(a.DurationMS.Value+int64(f.BackoffMS*math.Pow(2, float64(i))*(0.5+r.Float64()))) * time.Millisecond)
	}
}

// again sends a duplicate of what was answered at the first attempt.
func (f *figures) again(r *rand.Rand, first *retrylens.Attempt, record func(int32, time.Time, int64) retrylens.Attempt, emit func(*retrylens.Attempt)) {
	if first.Attempt > 0 {
		return
	}
	after := time.Duration(r.Int64N(int64(3 * time.Second)))
	if r.Float64() < f.Duplicates {
		a := record(100, first.StartedAt.Add(after), int64(float64(first.DurationMS.Value)*(0.8+0.4*r.Float64())))
		a.Cause = retrylens.CauseRedelivery
		emit(&a)
	}
	if r.Float64() < f.Refused {
		a := record(200, first.StartedAt.Add(after), 5)
		a.Cause, a.Outcome, a.UpstreamCalls, a.ErrorClass = retrylens.CauseRedelivery, retrylens.OutcomeInFlight, retrylens.Opt[uint16]{}, retrylens.ClassConflict
		emit(&a)
	}
}

func poisson(r *rand.Rand, mean float64) (n int) {
	for p := r.Float64(); p > math.Exp(-mean) && mean > 0; p *= r.Float64() {
		n++
	}
	return n
}
