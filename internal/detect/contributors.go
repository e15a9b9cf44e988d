package detect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Contributor is a part of the operations of a series that has more than its share of
// what goes wrong.
type Contributor struct {
	Dimension string `json:"dimension"` // provider, model, service or error_class
	Value     string `json:"value"`
	Share     Number `json:"share"` // of the series' failed attempts
	Lift      Number `json:"lift"`  // that share over its share of attempts; of a class over what is usual. null = not known
}

// Part is what a contributor is made of.
type Part struct {
	Dimension, Value         string
	FailedAttempts, Attempts int64
}

const mostContributors = 8

// Contributors are the parts with the largest shares of failed attempts, at most eight, of
// a dimension none where all is one part. Classes come from an evaluation.
func Contributors(parts []Part, classes []ClassShare) []Contributor {
	failed, all, values := map[string]int64{}, map[string]int64{}, map[string]int{}
	for _, p := range parts {
		failed[p.Dimension] += p.FailedAttempts
		all[p.Dimension] += p.Attempts
		values[p.Dimension]++
	}
	var out []Contributor
	for _, p := range parts {
		if p.FailedAttempts == 0 || values[p.Dimension] < 2 {
			continue
		}
		share := ratio(p.FailedAttempts, failed[p.Dimension])
		out = append(out, Contributor{p.Dimension, p.Value, Number(share), Number(share / ratio(p.Attempts, all[p.Dimension]))})
	}
	for _, c := range classes {
		out = append(out, Contributor{"error_class", c.Class, c.Share, c.Lift})
	}
	slices.SortFunc(out, func(a, b Contributor) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Dimension, b.Dimension), strings.Compare(a.Value, b.Value))
	})
	return out[:min(len(out), mostContributors)]
}

// PartsOf takes the parts of a dimension from rows of a report that are grouped by it
// alone, or by it at the given place among others.
func PartsOf(dimension metrics.Dimension, place int, rows []metrics.Row) []Part {
	byValue := map[string]*Part{}
	for i := range rows {
		r := &rows[i]
		p := byValue[r.Dims[place]]
		if p == nil {
			p = &Part{Dimension: string(dimension), Value: r.Dims[place]}
			byValue[p.Value] = p
		}
		c := CountsOf(&r.Counters)
		p.FailedAttempts, p.Attempts = p.FailedAttempts+c.FailedAttempts, p.Attempts+c.Attempts
	}
	out := make([]Part, 0, len(byValue))
	for _, p := range byValue {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Value, b.Value) })
	return out
}

// ClassShare is an error class of a window.
type ClassShare struct {
	Class string `json:"class"`
	Count int64  `json:"count"`
	Share Number `json:"share"` // of all that have a class
	Lift  Number `json:"lift"`  // its errors an attempt over what is usual; null = not known yet
}

// classRates are the usual errors an attempt by class: an exponential mean over a day.
type classRates struct {
	Rates   map[string]float64
	Samples int
}

const (
	classMemory = 1.0 / float64(day)
	maxClasses  = 64
)

func (r *classRates) learn(s *Sample) {
	if s.Window.Attempts == 0 {
		return
	}
	r.Samples = min(r.Samples+1, day)
	weight := max(classMemory, 1/float64(r.Samples))
	for class := range r.Rates {
		r.Rates[class] *= 1 - weight
	}
	for class, n := range s.ErrorsByClass {
		if r.Rates == nil {
			r.Rates = map[string]float64{}
		}
		if _, ok := r.Rates[class]; ok || len(r.Rates) < maxClasses {
			r.Rates[class] += weight * ratio(n, s.Window.Attempts)
		}
	}
}

func (r *classRates) shares(s *Sample) []ClassShare {
	out := make([]ClassShare, 0, len(s.ErrorsByClass))
	total := int64(0)
	for _, n := range s.ErrorsByClass {
		total += n
	}
	for class, n := range s.ErrorsByClass {
		c := ClassShare{Class: class, Count: n, Share: quotient(n, total), Lift: null}
		if usual := r.Rates[class]; usual > 0 && r.Samples >= warm {
			c.Lift = Number(ratio(n, s.Window.Attempts) / usual)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b ClassShare) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Class, b.Class))
	})
	return out
}
