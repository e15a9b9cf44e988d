package export

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Report is a report as a table: its dimensions, the start of the bucket where it
// has them, then the figures in the order of metrics.Formulas; one of several
// values as columns name.key, all of them always, zero where JSON leaves an entry
// out.
func Report(r *metrics.Report) Table {
	figures := figuresOf(r)
	t := Table{Columns: keyColumns(r), Notes: Notes(r)}
	for _, f := range figures {
		t.Columns = append(t.Columns, f.Column)
	}
	t.Rows = reportRows(r, figures)
	return t
}

// figure is a column and how its value is named.
type figure struct {
	Column
	name string // see metrics.Figure
}

func figuresOf(r *metrics.Report) []figure {
	var out []figure
	for _, f := range metrics.Formulas {
		if r.Spend() && !f.Spend {
			continue
		}
		if f.Label == "" {
			out = append(out, figure{Column{f.Name, kindOf(f.Unit)}, f.Name})
		}
		for _, key := range f.Keys {
			out = append(out, figure{Column{f.Name + "." + key, kindOf(f.Unit)}, f.Name + "{" + key + "}"})
		}
	}
	return out
}

func kindOf(u metrics.Unit) Kind {
	switch u {
	case metrics.UnitRatio:
		return Ratio
	case metrics.UnitUSD:
		return USD
	}
	return Count
}

func keyColumns(r *metrics.Report) []Column {
	var out []Column
	for _, d := range r.GroupBy {
		out = append(out, Column{string(d), Text})
	}
	if r.Bucket > 0 {
		out = append(out, Column{"bucket", Time})
	}
	return out
}

func reportRows(r *metrics.Report, figures []figure) iter.Seq2[[]Cell, error] {
	return func(yield func([]Cell, error) bool) {
		for i := range r.Rows {
			if !yield(reportCells(r, &r.Rows[i], figures), nil) {
				return
			}
		}
	}
}

func reportCells(r *metrics.Report, row *metrics.Row, figures []figure) []Cell {
	cells := make([]Cell, 0, len(figures)+len(row.Dims)+1)
	for _, d := range row.Dims {
		cells = append(cells, text(d))
	}
	if r.Bucket > 0 {
		cells = append(cells, instant(row.Bucket))
	}
	for _, f := range figures {
		v, _ := metrics.Figure(f.name, *row)
		cells = append(cells, Cell{Set: v.Set, Count: v.Count, Ratio: v.Ratio, USD: v.Money})
	}
	return cells
}

// Notes say what was asked and how far the answer can be trusted.
func Notes(r *metrics.Report) map[string]string {
	notes := map[string]string{
		"retrylens.from": stamp(r.From), "retrylens.to": stamp(r.To), "retrylens.as_of": stamp(r.AsOf),
		"retrylens.provisional": fmt.Sprint(r.Provisional),
	}
	if b, err := r.Completeness.MarshalJSON(); err == nil {
		notes["retrylens.completeness"] = string(b)
	}
	for d, values := range r.Filters {
		notes["retrylens."+string(d)] = strings.Join(values, "\n")
	}
	return notes
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
