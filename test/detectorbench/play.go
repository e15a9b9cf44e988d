package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/detect/replay"
	"github.com/retrylens/retrylens/internal/sim"
)

// holds is for how long a record waits for others: the simulator sends in order.
const holds = time.Minute

// play runs a world and evaluates it as it goes on.
func play(ctx context.Context, s *sim.Simulation, o detect.Options, look func(*detect.Evaluation)) error {
	d, err := detect.New(o)
	if err != nil {
		return err
	}
	f, err := replay.NewFeed(replay.Options{Hold: holds, OnMoment: func(w *replay.Window) error { return w.Evaluate(d, look) }})
	if err != nil {
		return err
	}
	_, err = s.World.Run(ctx, func(a *retrylens.Attempt) error {
		a.Normalize()
		return f.Add(a)
	})
	return errors.Join(err, f.Close())
}

// result is what came of a case.
type result struct {
	job
	operations, amplification, errorRatio float64 // of the series it happens to, of all its windows that lie within
	masked, outage                        time.Duration
	reached                               time.Duration // when the window first held 200 operations and 1.3, or 60 and 1.8
	signs                                 map[detect.Sign]bool
}

// never is when something did not happen.
const never = time.Duration(1<<63 - 1)

// run plays a case; times are since its incident began.
func (j job) run(ctx context.Context, o detect.Options) (result, error) {
	r := result{job: j, masked: never, outage: never, reached: never, signs: map[detect.Sign]bool{}}
	s, err := j.build()
	if err != nil {
		return r, err
	}
	windows := 0.0
	err = play(ctx, s.Simulation, o, func(e *detect.Evaluation) {
		at := e.At.Sub(began) - s.at
		if at < 0 && e.State.Pages() { // a false page is one whenever it comes
			at = 0
		}
		switch {
		case e.State == detect.MaskedOutage && e.Key != detect.All:
			if s.happensTo(e.Key) || !s.masked() {
				r.masked = min(r.masked, at)
			}
		case e.State == detect.Outage && e.Key != detect.All:
			r.outage = min(r.outage, at)
		}
		for _, sign := range e.Signs {
			r.signs[sign] = true
		}
		if !s.happensTo(e.Key) || at < 0 {
			return
		}
		f := &e.Figures
		if r.reached == never && large(float64(f.Operations), float64(f.Amplification)) {
			r.reached = at
		}
		if at >= detect.Span+30*time.Second && at < 15*time.Minute && f.Operations > 0 {
			windows++
			r.operations, r.amplification = r.operations+float64(f.Operations), r.amplification+float64(f.Amplification)
			if !f.ErrorRatio.Null() {
				r.errorRatio += float64(f.ErrorRatio)
			}
		}
	})
	r.operations, r.amplification, r.errorRatio = r.operations/windows, r.amplification/windows, r.errorRatio/windows
	return r, err
}

// masked tells whether the truth is a masked outage.
func (s *scene) masked() bool { return len(s.Truth) > 0 && s.Truth[0].State == sim.MaskedOutage }

// happensTo tells whether a series is the one that the incident happens to; without any
// it is the one of all.
func (s *scene) happensTo(k detect.Key) bool {
	if len(s.Truth) == 0 || s.Truth[0].Provider == "" {
		return k == detect.All
	}
	t := &s.Truth[0]
	return k.Provider == t.Provider && (t.Model == "" || k.Model == t.Model)
}

// large is what must be found in time.
func large(operations, amplification float64) bool {
	return operations >= 200 && amplification >= 1.3 || operations >= 60 && amplification >= 1.8
}

// runAll plays cases on so many goroutines; results are in the order of the jobs.
func runAll(ctx context.Context, jobs []job, workers int, o detect.Options) ([]result, error) {
	results, errs := make([]result, len(jobs)), make([]error, len(jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				results[i], errs[i] = jobs[i].run(ctx, o)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	return results, errors.Join(errs...)
}
