package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/sim"
)

// mixedResult is what was said of a world; times are since it began.
type mixedResult struct {
	operations, amplification float64 // of the windows that lie within
	masked, outage, reached   time.Duration
	wrong                     bool // a neighbour was called masked, or the world of none
	pages                     int  // begun
}

func (w *mixedWorld) run(ctx context.Context, o detect.Options) (mixedResult, error) {
	r := mixedResult{masked: never, outage: never, reached: never}
	windows := 0.0
	err := w.play(ctx, o, func(e *detect.Evaluation) {
		at := e.At.Sub(began) - w.before
		if e.Key == detect.All || e.Provider != "p" {
			r.wrong = r.wrong || e.State == detect.MaskedOutage && (w.truth != sim.MaskedOutage || e.Key != detect.All)
			return
		}
		switch e.State {
		case detect.MaskedOutage:
			r.masked = min(r.masked, max(at, 0))
			r.wrong = r.wrong || at < 0
		case detect.Outage:
			r.outage = min(r.outage, max(at, 0))
		}
		r.pages += one(e.Changed() && e.State.Pages() && !e.Previous.Pages())
		f := &e.Figures
		if at > 0 && r.reached == never && large(float64(f.Operations), float64(f.Amplification)) {
			r.reached = at
		}
		if at >= detect.Span && at <= w.lasts && f.Operations > 0 {
			windows++
			r.operations, r.amplification = r.operations+float64(f.Operations), r.amplification+float64(f.Amplification)
		}
	})
	r.operations, r.amplification = r.operations/max(windows, 1), r.amplification/max(windows, 1)
	return r, err
}

// mixedScore is what was said of a kind.
type mixedScore struct {
	World        string   `json:"world"`
	Cases        int      `json:"cases"`
	Between      int      `json:"between"`     // neither the one nor the other by their figures
	Masked       int      `json:"masked"`      // true masked outages
	MaskedFound  int      `json:"found"`       // of them, ever
	Large        int      `json:"large"`       // of them, of a size that is to be found in time
	InTime       int      `json:"in_time"`     // of them, within 2 minutes of reaching it
	SinceBegun   int      `json:"since_begun"` // of them, within 2 minutes of their beginning
	None         int      `json:"none"`        // healthy or flaky
	SaidMasked   int      `json:"none_called_masked"`
	SaidOutage   int      `json:"none_called_outage"`
	Outages      int      `json:"outages"`
	OutagesFound int      `json:"outages_found"`
	MaskedFirst  int      `json:"outages_masked_first"`
	MostPages    int      `json:"most_pages"` // of one world
	Wrong        []string `json:"wrong,omitempty"`
}

func (x *mixedScore) add(w *mixedWorld, r *mixedResult) {
	x.Cases++
	x.MostPages = max(x.MostPages, r.pages)
	switch w.truth {
	case sim.MaskedOutage:
		x.maskedOutage(w, r)
	case sim.Outage:
		x.Outages++
		x.OutagesFound += one(r.outage != never)
		x.MaskedFirst += one(r.masked < r.outage)
	case "":
		x.Between++
		return
	default:
		x.None++
		x.SaidMasked += one(r.masked != never || r.wrong)
		x.SaidOutage += one(r.outage != never)
	}
	if said := r.masked != never; r.wrong || said && w.truth != sim.MaskedOutage || r.outage != never && w.truth != sim.Outage {
		x.wrong(w, r, "false")
	}
}

func (x *mixedScore) maskedOutage(w *mixedWorld, r *mixedResult) {
	x.Masked++
	x.MaskedFound += one(r.masked != never)
	if r.reached == never || w.course == step && !large(r.operations, r.amplification) {
		return
	}
	x.Large++
	x.SinceBegun += one(r.masked <= inTime)
	if after(r.masked, r.reached) <= inTime {
		x.InTime++
		return
	}
	x.wrong(w, r, "missed")
}

func (x *mixedScore) wrong(w *mixedWorld, r *mixedResult, what string) {
	x.Wrong = append(x.Wrong, fmt.Sprintf("%s: seed %d, %v before, %.0f operations, amplification %.2f: masked %s, outage %s, reached %s",
		what, w.seed, w.before, r.operations, r.amplification, seconds(r.masked), seconds(r.outage), seconds(r.reached)))
}

// runMixed plays all on so many goroutines and scores them by kind.
func runMixed(ctx context.Context, all []mixedWorld, workers int, o detect.Options) ([]mixedScore, error) {
	results, errs := make([]mixedResult, len(all)), make([]error, len(all))
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
	var out []mixedScore
	for i := range all {
		name := mixedKinds[all[i].kind].name
		if n := len(out); n == 0 || out[n-1].World != name {
			out = append(out, mixedScore{World: name})
		}
		out[len(out)-1].add(&all[i], &results[i])
	}
	return out, errors.Join(errs...)
}

// sum of all kinds.
func sumMixed(all []mixedScore) (sum mixedScore) {
	sum.World = "all"
	for _, x := range all {
		for i, n := range x.counts() {
			*sum.counts()[i] += *n
		}
		sum.MostPages = max(sum.MostPages, x.MostPages)
	}
	return sum
}

func (x *mixedScore) counts() []*int {
	return []*int{&x.Cases, &x.Between, &x.Masked, &x.MaskedFound, &x.Large, &x.InTime, &x.SinceBegun, &x.None, &x.SaidMasked, &x.SaidOutage, &x.Outages, &x.OutagesFound, &x.MaskedFirst}
}

func (x *mixedScore) share() float64 {
	if x.Large == 0 {
		return math.NaN()
	}
	return float64(x.InTime) / float64(x.Large)
}

func mixedTable(w io.Writer, all []mixedScore) {
	fmt.Fprintf(w, "\n| mixed world | cases | between | masked | ever found | large | in 2 min of that size | of the beginning | none | called masked | called outage | outages | found | masked first | most pages of one |\n|---|%s\n", slices.Repeat([]byte("---:|"), 14))
	for _, x := range append(slices.Clone(all), sumMixed(all)) {
		fmt.Fprintf(w, "| %s |", x.World)
		c := x
		for _, n := range append(slices.Clone(c.counts()), &c.MostPages) {
			fmt.Fprintf(w, " %d |", *n)
		}
		fmt.Fprintln(w)
	}
}
