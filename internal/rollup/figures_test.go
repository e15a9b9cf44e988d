package rollup_test

import (
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/rollup"
)

// Columns hold everything that adds up: taken apart into columns and put
// together again, counters are the same. A counter without a column fails here.
func TestFiguresHoldEveryCounter(t *testing.T) {
	var whole metrics.Counters
	for seed := range uint64(20) {
		report, err := metrics.Fold(histories.Generate(seed, 2000), metrics.Query{AsOf: histories.Base})
		if err != nil {
			t.Fatal(err)
		}
		whole.Add(&report.Rows[0].Counters)
	}
	mustBeSet(t, reflect.ValueOf(whole))
	if got := through(t, rollup.Figures, &whole); !reflect.DeepEqual(got, whole) {
		t.Errorf("got  %+v\nwant %+v", got, whole)
	}
	ofSpend := slices.DeleteFunc(slices.Clone(rollup.Figures), func(f rollup.Figure) bool { return !f.Spend })
	if got, want := through(t, ofSpend, &whole), whole.SpendOnly(); !reflect.DeepEqual(got, want) {
		t.Errorf("spend: got  %+v\nwant %+v", got, want)
	}
}

// Of counters that are named, maps among them, all entries are kept, and of others only
// those that tell whether a group is there.
func TestNeededCountersAreKept(t *testing.T) {
	report, err := metrics.Fold(histories.Generate(1, 2000), metrics.Query{AsOf: histories.Base})
	if err != nil {
		t.Fatal(err)
	}
	whole := report.Rows[0].Counters
	figures, err := rollup.Needed([]string{"errors_by_class", "billed_cost_usd", "orphaned_cost_usd_by_reason", "attempts"})
	if err != nil {
		t.Fatal(err)
	}
	want := metrics.Counters{
		Operations: whole.Operations, Open: whole.Open, KeyConflicts: whole.KeyConflicts, ExecutedAttempts: whole.ExecutedAttempts, ExecutedKnownUsage: whole.ExecutedKnownUsage,
		ErrorsByClass: whole.ErrorsByClass, BilledCostUSD: whole.BilledCostUSD, OrphanedCostUSDByReason: whole.OrphanedCostUSDByReason, Attempts: whole.Attempts,
	}
	if got := rollup.Keep(&whole, figures); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(through(t, figures, &whole), want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, name := range []string{"errors_by_class_timeout", "amplification", "", "errors"} {
		if _, err := rollup.Needed([]string{name}); err == nil {
			t.Errorf("%q is taken for a counter", name)
		}
	}
}

// mustBeSet: a counter that no history has would not be tested.
func mustBeSet(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("no history has %s", v.Type().Field(i).Name)
		}
	}
}

func through(t *testing.T, figures []rollup.Figure, c *metrics.Counters) (out metrics.Counters) {
	t.Helper()
	for i := range figures {
		f := &figures[i]
		if !f.Money() {
			f.SetCount(&out, f.Count(c))
		} else if !f.SetCost(&out, f.Cost(c).Pico()) {
			t.Errorf("%s refused", f.Name)
		}
	}
	return out
}

func TestNegativeMoneyIsRefused(t *testing.T) {
	for i := range rollup.Figures {
		if f := &rollup.Figures[i]; f.Money() && f.SetCost(new(metrics.Counters), big.NewInt(-1)) {
			t.Errorf("%s takes -1", f.Name)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range rollup.Figures {
		if seen[f.Name] {
			t.Errorf("%s twice", f.Name)
		}
		seen[f.Name] = true
	}
}
