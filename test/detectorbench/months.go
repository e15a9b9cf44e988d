package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/sim"
)

// harmless are the kinds of incidents that happen in a month nobody is paged in.
var harmless = []string{"flaky", "short_blip", "slow_model", "traffic_spike", "quiet_night"}

// quietMonth is a world of many series to which only harmless things happen: to each
// something about every third day, and a deploy once.
type quietMonth struct {
	seed      uint64
	series    int
	perMinute float64 // of each series
	length    time.Duration
}

// falsePage is a page in a quiet month.
type falsePage struct {
	Seed  uint64       `json:"seed"`
	At    time.Time    `json:"at"`
	Key   detect.Key   `json:"series"`
	State detect.State `json:"state"`
	Near  string       `json:"near,omitempty"` // the harmless incident that was on
}

// monthResult is what was said in a quiet month.
type monthResult struct {
	evaluations int
	pages       []falsePage
}

func (m quietMonth) incidents() (out []sim.Incident) {
	r := rand.New(rand.NewPCG(m.seed, 0x717569))
	const every = 3 * 24 * time.Hour
	for series := range m.series {
		for at := time.Duration(0); at < m.length; at += every {
			begins := at + time.Duration(r.Int64N(int64(min(every, m.length-at))))
			out = append(out, sim.Incident{Scenario: harmless[r.IntN(len(harmless))], Series: series, At: begins, Size: 1 + r.IntN(sim.Sizes)})
		}
		out = append(out, sim.Incident{Scenario: "deploy", Series: series, At: time.Duration(r.Int64N(int64(m.length))), Size: 1 + r.IntN(3)})
	}
	return out
}

func (m quietMonth) run(ctx context.Context, o detect.Options) (monthResult, error) {
	var out monthResult
	s, err := sim.Build(sim.Options{
		Seed: m.seed, Start: began, Duration: m.length, OperationsPerMinute: m.perMinute * float64(m.series),
		Series: m.series, Incidents: m.incidents(),
	})
	if err != nil {
		return out, err
	}
	for i := range s.World.Workloads { // half of them have a day and a night
		if i%2 == 0 {
			s.World.Workloads[i].Season = 0.5
		}
	}
	err = play(ctx, s, o, func(e *detect.Evaluation) {
		out.evaluations++
		if e.Changed() && e.State.Pages() && !e.Previous.Pages() {
			out.pages = append(out.pages, falsePage{m.seed, e.At, e.Key, e.State, near(s.Truth, e)})
		}
	})
	return out, err
}

// near names the incident of a series that is on, or was within a quarter of an hour.
func near(truth []sim.Truth, e *detect.Evaluation) (out string) {
	for _, t := range truth {
		if t.Provider == e.Provider && t.Model == e.Model && !e.At.Before(t.From) && e.At.Before(t.To.Add(15*time.Minute)) {
			out = fmt.Sprintf("%s size %d since %s", t.Scenario, t.Size, t.From.Format(time.RFC3339))
		}
	}
	return out
}

func runMonths(ctx context.Context, months []quietMonth, workers int, o detect.Options) (monthResult, error) {
	results, errs := make([]monthResult, len(months)), make([]error, len(months))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				results[i], errs[i] = months[i].run(ctx, o)
			}
		})
	}
	for i := range months {
		next <- i
	}
	close(next)
	wg.Wait()
	var all monthResult
	for _, r := range results {
		all.evaluations += r.evaluations
		all.pages = append(all.pages, r.pages...)
	}
	return all, errors.Join(errs...)
}
