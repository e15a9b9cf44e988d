package render

import (
	"bufio"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Series writes figures of a report with buckets for people: a line with a curve for
// each group and figure, then every value.
func Series(w io.Writer, r *metrics.Report, figures []string, s Screen) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n\n", s.paint(bold, heading(r)))
	if len(r.Rows) == 0 {
		fmt.Fprintln(b, noOperations)
	} else {
		writeCurves(b, r, figures, s)
		writeSeries(b, r, figures, s)
	}
	fmt.Fprintln(b)
	for _, line := range format.Footer(r) {
		fmt.Fprintln(b, s.paint(yellow, line))
	}
	return b.Flush()
}

// groupsOf splits the rows, sorted by key, by group.
func groupsOf(r *metrics.Report) [][]metrics.Row {
	var groups [][]metrics.Row
	for i := range r.Rows {
		if i == 0 || strings.Join(r.Rows[i].Dims, "\x00") != strings.Join(r.Rows[i-1].Dims, "\x00") {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], r.Rows[i])
	}
	return groups
}

func writeCurves(b *bufio.Writer, r *metrics.Report, figures []string, s Screen) {
	t := table.NewWriter()
	t.SetStyle(plainStyle(s))
	for _, rows := range groupsOf(r) {
		for _, name := range figures {
			cells := table.Row{}
			for _, d := range rows[0].Dims {
				cells = append(cells, format.Safe(d))
			}
			low, high := extremes(rows, name)
			t.AppendRow(append(cells, name, low, Spark(values(rows, name), s.width()/2), high))
		}
	}
	fmt.Fprintf(b, "%s\n\n", trimLines(t.Render()))
}

// values of a figure over the rows; NaN where it has none.
func values(rows []metrics.Row, name string) []float64 {
	out := make([]float64, len(rows))
	for i := range rows {
		v, _ := metrics.Figure(name, rows[i])
		f, ok := v.Float64()
		if !ok {
			f = math.NaN()
		}
		out[i] = f
	}
	return out
}

// extremes are the smallest and the largest value, as they are written in tables.
func extremes(rows []metrics.Row, name string) (low, high string) {
	least, most := math.Inf(1), math.Inf(-1)
	low, high = format.Null, format.Null
	for i, v := range values(rows, name) {
		if v < least {
			least, low = v, format.Figure(name, &rows[i])
		}
		if v > most {
			most, high = v, format.Figure(name, &rows[i])
		}
	}
	return low, high
}

// bars are the heights of a curve.
const bars = "▁▂▃▄▅▆▇█"

// Spark draws values as one line of at most width characters, from the smallest to the
// largest; a blank is a value that is not known. Of several values that share a
// character the largest is drawn.
func Spark(values []float64, width int) string {
	values = squeeze(values, max(1, width))
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			least, most = min(least, v), max(most, v)
		}
	}
	heights := []rune(bars)
	var out strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			out.WriteByte(' ')
		case most == least:
			out.WriteRune(heights[0])
		default:
			out.WriteRune(heights[int((v-least)/(most-least)*float64(len(heights)-1)+0.5)])
		}
	}
	return out.String()
}

// squeeze keeps the largest of the values that fall together.
func squeeze(values []float64, width int) []float64 {
	if len(values) <= width {
		return values
	}
	out := make([]float64, width)
	for i := range out {
		out[i] = math.NaN()
		for _, v := range values[i*len(values)/width : (i+1)*len(values)/width] {
			if math.IsNaN(out[i]) || v > out[i] {
				out[i] = v
			}
		}
	}
	return out
}

func writeSeries(b *bufio.Writer, r *metrics.Report, figures []string, s Screen) {
	t := table.NewWriter()
	t.SetStyle(plainStyle(s))
	header, keys := table.Row{}, len(keyHeader(r))
	var configs []table.ColumnConfig
	for i, name := range figures {
		header = append(header, name)
		configs = append(configs, table.ColumnConfig{Number: keys + i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(append(keyHeader(r), header...))
	t.SetColumnConfigs(configs)
	for i := range r.Rows {
		row := keyCells(r, &r.Rows[i])
		for _, name := range figures {
			row = append(row, format.Figure(name, &r.Rows[i]))
		}
		t.AppendRow(row)
	}
	fmt.Fprintln(b, trimLines(t.Render()))
}
