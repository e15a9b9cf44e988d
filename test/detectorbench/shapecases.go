package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/sim"
)

// shapeKinds are what happens in worlds whose figures are drawn. Of those that are masked
// amplification is 1.3 and more.
var shapeKinds = []struct {
	name   string
	truth  sim.State
	change func(*figures)
	always func(*figures)
	onset  time.Duration
}{
	{name: "masked, retries fail like first attempts, 1.3", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.25, 0.25).slower(1.5) }},
	{name: "masked, retries fail like first attempts, 1.8", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.45, 0.45).Attempts = 7 }},
	{name: "masked, retries fail, answers as fast as ever, 1.5", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.3, 0.4).Attempts = 6 }},
	{name: "masked, a zone of three, 1.4", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.36, 0.1).slower(1.8) }},
	{name: "masked, timeouts, 1.4", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.3, 0.25).FailMS = 10_000 }},
	{name: "masked, slow answers, 1.35", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.3, 0.15).slower(2.5) }},
	{name: "masked, two thirds fail, 1.9", truth: sim.MaskedOutage, change: func(f *figures) { f.fails(0.6, 0.35).slower(1.4).Attempts = 6 }},
	{name: "masked below the policy, 1.8", truth: sim.MaskedOutage, change: func(f *figures) { f.slower(1.8).Hidden = 0.8 }},
	{name: "masked, comes within 20 min, 1.6", truth: sim.MaskedOutage, onset: 20 * time.Minute, change: func(f *figures) { f.fails(0.38, 0.35).slower(2).Attempts = 6 }},
	{name: "masked, an hour of 1.3", truth: sim.MaskedOutage, onset: time.Minute, change: func(f *figures) { f.fails(0.26, 0.18).slower(1.5) }},

	{name: "flaky 3 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.03, 0.05) }},
	{name: "flaky 5 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.05, 0.05) }},
	{name: "flaky 8 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.08, 0.08) }},
	{name: "flaky 10 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.10, 0.08) }},
	{name: "flaky 12 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.12, 0.09) }},
	{name: "flaky 12 % of the retries too", truth: sim.Flaky, change: func(f *figures) { f.fails(0.12, 0.12) }},
	{name: "flaky 12 %, timeouts", truth: sim.Flaky, change: func(f *figures) { f.fails(0.12, 0.09).FailMS = 5000 }},
	{name: "flaky 12 % from 5 %", truth: sim.Flaky, always: func(f *figures) { f.fails(0.05, 0.05) }, change: func(f *figures) { f.fails(0.12, 0.09) }},
	{name: "a slow answer, no error", truth: sim.Healthy, change: func(f *figures) { f.slower(3) }},
	{name: "slow and flaky 3 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.03, 0.05).slower(2) }},
	{name: "traffic times five", truth: sim.Healthy, change: func(f *figures) { f.PerMinute *= 5 }},
	{name: "a deploy doubles traffic, flaky 3 %", truth: sim.Flaky, change: func(f *figures) { f.fails(0.03, 0.05).slower(1.3).PerMinute *= 2 }},
	{name: "a tenth of the traffic", truth: sim.Healthy, change: func(f *figures) { f.PerMinute /= 10 }},
	{name: "duplicates, answered", truth: sim.Healthy, change: func(f *figures) { f.Duplicates = 0.5 }},
	{name: "duplicates, answered, half slow", truth: sim.Healthy, change: func(f *figures) { f.Duplicates, f.SlowShare, f.SlowFactor = 1, 0.5, 5 }},
	{name: "duplicates, refused, half slow", truth: sim.Healthy, change: func(f *figures) { f.Refused, f.SlowShare, f.SlowFactor = 1, 0.5, 5 }},
	{name: "always hedged, flaky 3 %", truth: sim.Flaky, always: func(f *figures) { f.Duplicates = 0.3 }, change: func(f *figures) { f.fails(0.03, 0.05) }},
	{name: "a few hidden calls", truth: sim.Healthy, change: func(f *figures) { f.Hidden = 0.05 }},

	{name: "quota wall", truth: sim.Outage, change: func(f *figures) { f.Quota = true }},
	{name: "outage, all fail", truth: sim.Outage, change: func(f *figures) { f.fails(1, 1) }},
	{name: "outage, retries fail", truth: sim.Outage, change: func(f *figures) { f.fails(0.6, 0.9) }},
	{name: "outage, a third fails", truth: sim.Outage, change: func(f *figures) { f.fails(0.35, 1) }},
}

func (f *figures) fails(first, retry float64) *figures {
	f.FirstFails, f.RetryFails = first, retry
	return f
}

func (f *figures) slower(factor float64) *figures {
	f.AnswerMS *= factor
	return f
}

// Of the worlds of one kind.
var (
	shapeHistories = []time.Duration{0, 10 * time.Minute, 40 * time.Minute, 2 * time.Hour}
	shapeRates     = []float64{15, 45, 90} // operations a minute
)

// Masked ones last for 20 minutes, what is none for an hour.
const (
	shapeLasts    = 20 * time.Minute
	shapeHarmless = time.Hour
)

// shapesOf are so many worlds of each kind, history and rate.
func shapesOf(first uint64, seeds int) (out []shape) {
	for _, k := range shapeKinds {
		for _, before := range shapeHistories {
			for _, rate := range shapeRates {
				for range seeds {
					lasts := shapeLasts
					if k.truth == sim.Flaky || k.truth == sim.Healthy {
						lasts = shapeHarmless
					}
					out = append(out, shape{k.name, k.truth, before, lasts, k.onset, rate, k.change, k.always, first})
					first++
				}
			}
		}
	}
	return out
}

// shapeResult is what was said of a shape; times are since it began.
type shapeResult struct {
	operations, amplification float64 // of the windows that lie within
	masked, outage, reached   time.Duration
	pages                     int // begun
}

func (s *shape) run(ctx context.Context, o detect.Options) (shapeResult, error) {
	r := shapeResult{masked: never, outage: never, reached: never}
	windows := 0.0
	err := s.play(ctx, o, func(e *detect.Evaluation) {
		if e.Key == detect.All {
			return
		}
		at := e.At.Sub(began) - s.before
		switch e.State {
		case detect.MaskedOutage:
			r.masked = min(r.masked, max(at, 0))
		case detect.Outage:
			r.outage = min(r.outage, max(at, 0))
		}
		r.pages += one(e.Changed() && e.State.Pages() && !e.Previous.Pages())
		f := &e.Figures
		if at > 0 && r.reached == never && large(float64(f.Operations), float64(f.Amplification)) {
			r.reached = at
		}
		if at >= detect.Span && at <= s.lasts && f.Operations > 0 {
			windows++
			r.operations, r.amplification = r.operations+float64(f.Operations), r.amplification+float64(f.Amplification)
		}
	})
	r.operations, r.amplification = r.operations/windows, r.amplification/windows
	return r, err
}

// shapeScore is what was said of a kind of shapes.
type shapeScore struct {
	Shape        string    `json:"shape"`
	Truth        sim.State `json:"truth"`
	Cases        int       `json:"cases"`
	MaskedOutage int       `json:"masked_outage"`
	Outage       int       `json:"outage"`
	Large        int       `json:"large"` // masked, of a size that is to be found in time
	InTime       int       `json:"in_time"`
	OfSize       int       `json:"in_time_of_size"` // within 2 minutes of when a window first had that size
	MostPages    int       `json:"most_pages"`      // of one world
}

func (x *shapeScore) add(s *shape, r *shapeResult) {
	x.Cases++
	x.MaskedOutage += one(r.masked != never)
	x.Outage += one(r.outage != never)
	x.MostPages = max(x.MostPages, r.pages)
	if s.truth != sim.MaskedOutage || r.reached == never || s.onset == 0 && !large(r.operations, r.amplification) {
		return
	}
	took := r.masked
	if s.onset > 0 {
		took = after(r.masked, r.reached)
	}
	x.Large++
	x.InTime += one(took <= inTime)
	x.OfSize += one(after(r.masked, r.reached) <= inTime)
}

// runShapes plays all on so many goroutines and scores them by kind.
func runShapes(ctx context.Context, all []shape, workers int, o detect.Options) ([]shapeScore, error) {
	results, errs := make([]shapeResult, len(all)), make([]error, len(all))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				results[i], errs[i] = all[i].run(ctx, o)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	var out []shapeScore
	for i := range all {
		if n := len(out); n == 0 || out[n-1].Shape != all[i].name {
			out = append(out, shapeScore{Shape: all[i].name, Truth: all[i].truth})
		}
		out[len(out)-1].add(&all[i], &results[i])
	}
	return out, errors.Join(errs...)
}

func shapeTable(w io.Writer, all []shapeScore) {
	fmt.Fprintf(w, "\n| drawn world | truth | cases | masked_outage said | outage said | large | of them in 2 min | of that size | most pages of one |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, x := range all {
		fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", x.Shape, x.Truth, x.Cases, x.MaskedOutage, x.Outage, x.Large, x.InTime, x.OfSize, x.MostPages)
	}
}
