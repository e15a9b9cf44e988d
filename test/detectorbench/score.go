package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
	"github.com/retrylens/retrylens/internal/sim"
)

// inTime is how long a detector may take.
const inTime = 2 * time.Minute

// flat is the most of an error ratio that a masked outage has: the simulator's own
// scenarios stay below it.
const flat = 0.025

// found counts the cases that had to be found, and those that were, in time.
type found struct {
	Cases     int      `json:"cases"`
	InTime    int      `json:"in_time"`
	Ever      int      `json:"ever"`
	Share     float64  `json:"share"`
	MedianS   float64  `json:"median_seconds"`
	LatestS   float64  `json:"latest_seconds"`
	Missed    []string `json:"missed"`
	latencies []time.Duration
}

func (f *found) add(r *result, took time.Duration) {
	f.Cases++
	if took <= inTime {
		f.InTime++
	} else {
		f.Missed = append(f.Missed, fmt.Sprintf("%s size %d, %.0f/min, seed %d: %s", r.kind, r.size, r.perMinute, r.seed, seconds(took)))
	}
	if took != never {
		f.Ever++
		f.latencies = append(f.latencies, took)
	}
}

func (f *found) close() {
	if f.Cases > 0 {
		f.Share = float64(f.InTime) / float64(f.Cases)
	}
	if n := len(f.latencies); n > 0 {
		slices.Sort(f.latencies)
		f.MedianS, f.LatestS = f.latencies[n/2].Seconds(), f.latencies[n-1].Seconds()
	}
}

func seconds(d time.Duration) string {
	if d == never {
		return "never"
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// cell of the power curve: masked outages that begin at once, by size.
type cell struct {
	Operations    string `json:"operations"`
	Amplification string `json:"amplification"`
	found
}

// Edges of the cells.
var (
	operationEdges    = []float64{0, 60, 200, 400}
	amplificationEdge = []float64{1, 1.3, 1.5, 1.8}
)

func edgeOf(edges []float64, v float64) int {
	i := 0
	for i+1 < len(edges) && v >= edges[i+1] {
		i++
	}
	return i
}

func between(edges []float64, i int) string {
	if i+1 == len(edges) {
		return fmt.Sprintf("≥ %g", edges[i])
	}
	return fmt.Sprintf("%g–%g", edges[i], edges[i+1])
}

// saidOf counts what was said in the cases of a kind that is no masked outage.
type saidOf struct {
	Kind         string    `json:"kind"`
	Truth        sim.State `json:"truth"`
	Cases        int       `json:"cases"`
	MaskedOutage int       `json:"masked_outage"`
	Outage       int       `json:"outage"`
	Metastable   int       `json:"metastable"`
	HiddenLayer  int       `json:"hidden_layer"`
}

// score is all of it.
type score struct {
	Half      string   `json:"half"`
	Scenarios int      `json:"scenarios"`
	Step      found    `json:"step_onset"` // ≥ 200 operations and 1.3, or ≥ 60 and 1.8; since it began
	Slow      found    `json:"slow_onset"` // since it reached that size
	Never     int      `json:"masked_said_of_healthy_or_flaky"`
	Power     []cell   `json:"power"`
	Others    []saidOf `json:"others"`
	visible   int      // masked worlds whose error ratio was not flat
}

func scoreOf(half string, results []result) *score {
	s := &score{Half: half, Scenarios: len(results)}
	cells := map[[2]int]*cell{}
	said := map[string]*saidOf{}
	for i := range results {
		r := &results[i]
		switch truth := truthOf(r.kind); {
		case truth != sim.MaskedOutage:
			s.other(said, r, truth)
		case r.errorRatio > flat:
			s.visible++
		case slowKinds[r.kind]:
			if r.reached != never {
				s.Slow.add(r, after(r.masked, r.reached))
			}
		default:
			if large(r.operations, r.amplification) {
				s.Step.add(r, r.masked)
			}
			at := [2]int{edgeOf(operationEdges, r.operations), edgeOf(amplificationEdge, r.amplification)}
			if cells[at] == nil {
				cells[at] = &cell{Operations: between(operationEdges, at[0]), Amplification: between(amplificationEdge, at[1])}
			}
			cells[at].add(r, r.masked)
		}
	}
	s.close(cells, said)
	return s
}

// after is how much later a is than b: 0 if it came before.
func after(a, b time.Duration) time.Duration {
	if a == never {
		return never
	}
	return max(0, a-b)
}

func truthOf(kind string) sim.State {
	if kind == wide {
		return sim.MaskedOutage
	}
	s, err := sim.Build(sim.Options{Scenario: kind, Start: began, Duration: time.Hour})
	if err != nil || len(s.Truth) == 0 {
		return sim.Healthy
	}
	return s.Truth[0].State
}

func (s *score) other(said map[string]*saidOf, r *result, truth sim.State) {
	k := said[r.kind]
	if k == nil {
		k = &saidOf{Kind: r.kind, Truth: truth}
		said[r.kind] = k
	}
	k.Cases++
	k.MaskedOutage += one(r.masked != never)
	k.Outage += one(r.outage != never)
	k.Metastable += one(r.signs[detect.SignMetastable])
	k.HiddenLayer += one(r.signs[detect.SignHiddenLayer])
	if truth == sim.Healthy || truth == sim.Flaky {
		s.Never += one(r.masked != never)
	}
}

func (s *score) close(cells map[[2]int]*cell, said map[string]*saidOf) {
	s.Step.close()
	s.Slow.close()
	for o := range operationEdges {
		for a := range amplificationEdge {
			if c := cells[[2]int{o, a}]; c != nil {
				c.close()
				c.Missed = nil
				s.Power = append(s.Power, *c)
			}
		}
	}
	for _, kind := range otherKinds() {
		if k := said[kind]; k != nil {
			s.Others = append(s.Others, *k)
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// table for people.
func (s *score) table(w io.Writer) {
	fmt.Fprintf(w, "masked outages by operations in 5 minutes and amplification, %s half of the seeds\n\n", s.Half)
	fmt.Fprintf(w, "| operations | amplification | cases | within 2 min | ever | median | latest |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, c := range s.Power {
		fmt.Fprintf(w, "| %s | %s | %d | %.1f %% | %d | %.0f s | %.0f s |\n", c.Operations, c.Amplification, c.Cases, 100*c.Share, c.Ever, c.MedianS, c.LatestS)
	}
	fmt.Fprintf(w, "\n| kind | truth | cases | masked_outage said | outage said | metastable | hidden_layer |\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, k := range s.Others {
		fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %d | %d |\n", k.Kind, k.Truth, k.Cases, k.MaskedOutage, k.Outage, k.Metastable, k.HiddenLayer)
	}
	fmt.Fprintf(w, "\n%d worlds meant to be masked had an error ratio above %g: left out, they are visible.\n", s.visible, flat)
}
