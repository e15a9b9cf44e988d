package metrics

import (
	"slices"
	"strings"

	"github.com/retrylens/retrylens"
)

// Formula describes one figure: its name in JSON, CSV, Parquet, Prometheus and
// SQL, and how it is derived.
type Formula struct {
	Name  string
	Unit  Unit
	Text  string
	Label string   // of a figure with entries: what they are keyed by, such as "reason"
	Keys  []string // of a figure with entries: every key there can be
	Spend bool     // can be grouped by executed_provider and executed_model

	value   func(*Row) Value
	entries func(*Row) []Entry
}

// Entry is one entry of a figure that has several values.
type Entry struct {
	Key   string
	Value Value
}

// Formulas lists every figure in the order of every report.
var Formulas = slices.Concat(
	operationFormulas, attemptFormulas, upstreamFormulas,
	retryRatioFormulas, rescueFormulas, errorRatioFormulas, duplicateFormulas, hiddenFormulas, shedFormulas,
	billedFormulas, orphanFormulas, recoveredFormulas, redundantFormulas, costPerRescueFormulas,
	errorClassFormulas, stopFormulas, positionFormulas, layerFormulas, retryAfterFormulas, unkeyedFormulas,
	latencyFormulas,
)

// LookupFormula returns the formula of a figure, without any {key}.
func LookupFormula(name string) (Formula, bool) {
	i := slices.IndexFunc(Formulas, func(f Formula) bool { return f.Name == name })
	if i < 0 {
		return Formula{}, false
	}
	return Formulas[i], true
}

// Figure returns a figure of a row by its name; an entry of a figure with
// several as name{key}: "errors_by_class{timeout}", "latency_ms{p99}". An entry
// that a row has not is 0. False means that there is no such figure; one that
// has no value in this row (a ratio of nothing) is a null Value.
func Figure(name string, row Row) (Value, bool) {
	name, key, keyed := strings.Cut(name, "{")
	f, ok := LookupFormula(name)
	if !ok || keyed != (f.Label != "") {
		return Value{}, false
	}
	if !keyed {
		return f.value(&row), true
	}
	key, closed := strings.CutSuffix(key, "}")
	if !closed || !slices.Contains(f.Keys, key) {
		return Value{}, false
	}
	return f.entry(&row, key), true
}

func (f Formula) entry(row *Row, key string) Value {
	for _, e := range f.entries(row) {
		if e.Key == key {
			return e.Value
		}
	}
	return Value{Unit: f.Unit, Set: true}
}

// Value returns the figure of a row; for a figure without entries only.
func (f Formula) Value(row *Row) Value { return f.value(row) }

// Entries returns the entries of a row, sorted by key, zero entries left out;
// for a figure with entries only.
func (f Formula) Entries(row *Row) []Entry { return f.entries(row) }

func counter(name, text string, get func(*Counters) uint64) Formula {
	return Formula{Name: name, Unit: UnitCount, Text: text, value: func(r *Row) Value {
		return Value{Unit: UnitCount, Set: true, Count: int64(get(&r.Counters))}
	}}
}

func tokenSum(name, text string, get func(*Counters) uint64) Formula {
	f := counter(name, text, get)
	f.Unit = UnitTokens
	return f
}

func moneySum(name, text string, get func(*Counters) retrylens.Money) Formula {
	return Formula{Name: name, Unit: UnitUSD, Text: text, value: func(r *Row) Value {
		return Value{Unit: UnitUSD, Set: true, Money: get(&r.Counters)}
	}}
}

func ratioOf(name, text string, get func(Figures) retrylens.Opt[float64]) Formula {
	return Formula{Name: name, Unit: UnitRatio, Text: text, value: func(r *Row) Value {
		v := get(r.Figures())
		return Value{Unit: UnitRatio, Set: v.Set, Ratio: v.Value}
	}}
}

// countsBy is a figure with entries; its keys are the given ones.
func countsBy[K ~string](name, text, label string, keys []K, get func(*Counters) map[string]uint64) Formula {
	f := Formula{Name: name, Unit: UnitCount, Text: text, Label: label, Keys: asStrings(keys)}
	f.entries = func(r *Row) []Entry {
		return entriesOf(get(&r.Counters), func(n uint64) (Value, bool) {
			return Value{Unit: UnitCount, Set: true, Count: int64(n)}, n > 0
		})
	}
	return f
}

func moneyBy[K ~string](name, text, label string, keys []K, get func(*Counters) map[string]retrylens.Money) Formula {
	f := Formula{Name: name, Unit: UnitUSD, Text: text, Label: label, Keys: asStrings(keys)}
	f.entries = func(r *Row) []Entry {
		return entriesOf(get(&r.Counters), func(m retrylens.Money) (Value, bool) {
			return Value{Unit: UnitUSD, Set: true, Money: m}, !m.IsZero()
		})
	}
	return f
}

// entriesOf sorts a map by key and leaves out what is zero.
func entriesOf[V any](m map[string]V, value func(V) (Value, bool)) []Entry {
	entries := make([]Entry, 0, len(m))
	for k, v := range m {
		if val, nonzero := value(v); nonzero {
			entries = append(entries, Entry{k, val})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return entries
}

func asStrings[K ~string](keys []K) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = string(k)
	}
	return out
}

// spend marks figures that can be grouped by what was executed.
func spend(fs ...Formula) []Formula {
	for i := range fs {
		fs[i].Spend = true
	}
	return fs
}
