package rollup_test

import (
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/rollup"
)

// A vector holds every figure at its place.
func TestVectorHoldsEveryFigure(t *testing.T) {
	v := rollup.Vector{Counts: make([]uint64, rollup.CountFigures), Costs: make([]retrylens.Money, rollup.CostFigures)}
	var want metrics.Counters
	for seed := range uint64(10) {
		report, err := metrics.Fold(histories.Generate(seed, 2000), metrics.Query{AsOf: histories.Base})
		if err != nil {
			t.Fatal(err)
		}
		want.Add(&report.Rows[0].Counters)
		v.Add(&report.Rows[0].Counters)
	}
	for i := range rollup.Figures {
		f := &rollup.Figures[i]
		if f.Money() {
			if got := v.Costs[rollup.Place(f.Name)]; got != f.Cost(&want) {
				t.Errorf("%s: got %s, want %s", f.Name, got, f.Cost(&want))
			}
		} else if got := v.Counts[rollup.Place(f.Name)]; got != f.Count(&want) {
			t.Errorf("%s: got %d, want %d", f.Name, got, f.Count(&want))
		}
	}
}
