package rollup

import (
	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Vector holds the figures of a row of a rollup: counts and costs in the order of
// [Figures], those that are money apart.
type Vector struct {
	Counts []uint64
	Costs  []retrylens.Money
}

// Lengths of a Vector.
var (
	CountFigures = len(Figures) - CostFigures
	CostFigures  = costFigures()
)

func costFigures() (n int) {
	for i := range Figures {
		if Figures[i].Money() {
			n++
		}
	}
	return n
}

// Place is where a figure is in Counts, or in Costs if it is money. It panics for
// one that there is not.
func Place(name string) int {
	counts, costs := 0, 0
	for i := range Figures {
		f := &Figures[i]
		switch {
		case f.Name == name && f.Money():
			return costs
		case f.Name == name:
			return counts
		case f.Money():
			costs++
		default:
			counts++
		}
	}
	panic("rollup: no figure " + name)
}

// family is a map of counters and where its entries are.
type family[V any] struct {
	get    func(*metrics.Counters) *map[string]V
	places map[string]int
}

// layout is how counters spread over a vector.
type layout struct {
	counts  []func(*metrics.Counters) *uint64
	at      []int
	money   []func(*metrics.Counters) *retrylens.Money
	moneyAt []int
	words   []family[uint64]
	costs   []family[retrylens.Money]
}

var spread = newLayout()

func newLayout() (l layout) {
	last := ""
	for i := range Figures {
		f, at := &Figures[i], Place(Figures[i].Name)
		fresh := f.key == "" || last != f.Name[:len(f.Name)-len(f.key)]
		last = f.Name[:len(f.Name)-len(f.key)]
		switch {
		case f.count != nil:
			l.counts, l.at = append(l.counts, f.count), append(l.at, at)
		case f.money != nil:
			l.money, l.moneyAt = append(l.money, f.money), append(l.moneyAt, at)
		case f.words != nil:
			if fresh {
				l.words = append(l.words, family[uint64]{f.words, map[string]int{}})
			}
			l.words[len(l.words)-1].places[f.key] = at
		default:
			if fresh {
				l.costs = append(l.costs, family[retrylens.Money]{f.costs, map[string]int{}})
			}
			l.costs[len(l.costs)-1].places[f.key] = at
		}
	}
	return l
}

// Add adds counters.
func (v Vector) Add(c *metrics.Counters) {
	for i, get := range spread.counts {
		v.Counts[spread.at[i]] += *get(c)
	}
	for i, get := range spread.money {
		at := spread.moneyAt[i]
		v.Costs[at] = v.Costs[at].Add(*get(c))
	}
	for _, f := range spread.words {
		for k, n := range *f.get(c) {
			v.Counts[f.places[k]] += n
		}
	}
	for _, f := range spread.costs {
		for k, m := range *f.get(c) {
			v.Costs[f.places[k]] = v.Costs[f.places[k]].Add(m)
		}
	}
}

// Join adds another vector.
func (v Vector) Join(o Vector) {
	for i, n := range o.Counts {
		v.Counts[i] += n
	}
	for i, m := range o.Costs {
		v.Costs[i] = v.Costs[i].Add(m)
	}
}
