package script

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// quantileTolerance is how far a quantile may be from the nearest rank.
const quantileTolerance = 0.005

func (c Check) hold(r *metrics.Report) error {
	switch args := c.Words[1:]; c.Words[0] {
	case "rows":
		return same(args[0], fmt.Sprint(len(r.Rows)))
	case "provisional":
		return same(args[0], fmt.Sprint(r.Provisional))
	case "completeness":
		return checkCompleteness(r.Completeness, args)
	case "gap":
		return checkGap(r.Completeness, args)
	default:
		return checkFigure(r, args)
	}
}

func same(want, got string) error {
	if got != want {
		return fmt.Errorf("got %s", got)
	}
	return nil
}

func checkCompleteness(c *metrics.Completeness, args []string) error {
	if c == nil || len(args) != 2 {
		return fmt.Errorf("needs a field and a value, got %v of %v", args, c)
	}
	var v metrics.Value
	switch args[0] {
	case "records_missing":
		v = metrics.Value{Unit: metrics.UnitCount, Set: c.RecordsMissing.Set, Count: int64(c.RecordsMissing.Value)}
	case "known_usage_ratio":
		v = metrics.Value{Unit: metrics.UnitRatio, Set: c.KnownUsageRatio.Set, Ratio: c.KnownUsageRatio.Value}
	default:
		return fmt.Errorf("no such field")
	}
	return checkValue(v, args[1])
}

func checkGap(c *metrics.Completeness, args []string) error {
	if c == nil || len(args) != 2 {
		return fmt.Errorf("needs an emitter and a number, got %v of %v", args, c)
	}
	missing := uint64(0)
	for _, g := range c.Emitters {
		if g.Emitter == args[0] {
			missing += g.Missing
		}
	}
	return same(args[1], fmt.Sprint(missing))
}

// checkFigure holds [DIM=VALUE...] FIGURE VALUE.
func checkFigure(r *metrics.Report, args []string) error {
	n := slices.IndexFunc(args, func(w string) bool { return !strings.Contains(w, "=") })
	if n < 0 || n+1 >= len(args) {
		return fmt.Errorf("needs a figure and a value")
	}
	row, err := selectRow(r, args[:n])
	if err != nil {
		return err
	}
	name, want := args[n], args[n+1:]
	if f, ok := metrics.LookupFormula(name); ok && f.Label != "" {
		return checkEntries(f.Entries(&row), want)
	}
	v, ok := metrics.Figure(name, row)
	if !ok || len(want) != 1 {
		return fmt.Errorf("no such figure, or not one value")
	}
	return checkValue(v, want[0])
}

func selectRow(r *metrics.Report, dims []string) (metrics.Row, error) {
	rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row metrics.Row) bool {
		return slices.ContainsFunc(dims, func(d string) bool { return !hasDim(r, row, d) })
	})
	if len(rows) != 1 {
		return metrics.Row{}, fmt.Errorf("%d rows are like that", len(rows))
	}
	return rows[0], nil
}

func hasDim(r *metrics.Report, row metrics.Row, pair string) bool {
	k, v, _ := strings.Cut(pair, "=")
	if k == "bucket" {
		t, err := parseTime(v)
		return err == nil && row.Bucket.Equal(t) && row.Bucket.Location() == time.UTC
	}
	i := slices.Index(r.GroupBy, metrics.Dimension(k))
	return i >= 0 && row.Dims[i] == v
}

// checkEntries compares all entries of a figure.
func checkEntries(entries []metrics.Entry, want []string) error {
	if slices.Equal(want, []string{"none"}) {
		want = nil
	}
	if len(entries) != len(want) {
		return fmt.Errorf("got %v", entries)
	}
	for _, pair := range want {
		k, v, _ := strings.Cut(pair, "=")
		i := slices.IndexFunc(entries, func(e metrics.Entry) bool { return e.Key == k })
		if i < 0 {
			return fmt.Errorf("got %v", entries)
		}
		if err := checkValue(entries[i].Value, v); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

// checkValue compares exactly; a ratio with the float nearest to the fraction,
// a quantile within its tolerance.
func checkValue(v metrics.Value, want string) error {
	if want == "null" || !v.Set {
		return same(want, v.String())
	}
	w, ok := new(big.Rat).SetString(want)
	if !ok {
		return fmt.Errorf("%q is no number", want)
	}
	if !equal(v, w) {
		return fmt.Errorf("got %s", v)
	}
	return nil
}

func equal(v metrics.Value, want *big.Rat) bool {
	f, _ := want.Float64()
	switch v.Unit {
	case metrics.UnitRatio:
		return v.Ratio == f
	case metrics.UnitMS:
		return math.Abs(float64(v.Count)-f) <= quantileTolerance*math.Abs(f)
	}
	got, ok := new(big.Rat).SetString(v.String())
	return ok && got.Cmp(want) == 0
}
