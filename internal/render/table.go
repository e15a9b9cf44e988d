package render

import (
	"bufio"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Table writes a report for people: one row without groups in two columns with
// sections, else a table of the main figures. The last lines say what may still
// change and what cannot be known. With explain the formula and the rows
// counted stand under each figure.
func Table(w io.Writer, r *metrics.Report, explain bool, s Screen) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s\n", s.paint(bold, heading(r)))
	if single(r) {
		if r.Rows[0].Operations == 0 {
			fmt.Fprintln(b, noOperations)
		}
		writeSections(b, &r.Rows[0], explain, s)
	} else {
		writeGroups(b, r, s)
		if explain {
			explainGroups(b, r, s)
		}
	}
	fmt.Fprintln(b)
	for _, line := range format.Footer(r) {
		fmt.Fprintln(b, s.paint(yellow, line))
	}
	return b.Flush()
}

const noOperations = "no operations in this window"

// single tells the report of one row without groups.
func single(r *metrics.Report) bool {
	return len(r.GroupBy) == 0 && r.Bucket == 0 && len(r.Rows) == 1
}

func heading(r *metrics.Report) string {
	window := fmt.Sprintf("operations from %s to %s", format.Instant(r.From, "the first"), format.Instant(r.To, "the last"))
	return fmt.Sprintf("%s%s, as of %s", window, filters(r), format.Instant(r.AsOf, ""))
}

// filters says which operations were asked for.
func filters(r *metrics.Report) string {
	var out strings.Builder
	for _, d := range metrics.Dimensions {
		if values := r.Filters[d]; len(values) > 0 {
			names := make([]string, len(values))
			for i, v := range values {
				names[i] = format.Safe(v)
			}
			fmt.Fprintf(&out, ", %s %s", d, strings.Join(names, " or "))
		}
	}
	return out.String()
}

func writeSections(b *bufio.Writer, row *metrics.Row, explain bool, s Screen) {
	for _, sec := range sections {
		fmt.Fprintf(b, "\n%s\n", s.paint(bold, sec.title))
		for _, name := range sec.figures {
			writeFigure(b, name, row, s)
			if explain {
				writeExplanation(b, name, row, s)
			}
		}
	}
}

const (
	nameWidth  = 31 // of the longest name of a figure
	valueWidth = 12
)

func writeFigure(b *bufio.Writer, name string, row *metrics.Row, s Screen) {
	f, _ := metrics.LookupFormula(name)
	if f.Label != "" {
		writeEntries(b, f, row, s)
		return
	}
	line := "  " + padRight(name, nameWidth) + " " + padLeft(format.Figure(name, row), valueWidth)
	if n := note(name, row); n != "" {
		line += "  " + s.paint(dim, n)
	}
	fmt.Fprintln(b, line)
}

func writeEntries(b *bufio.Writer, f metrics.Formula, row *metrics.Row, s Screen) {
	indent := strings.Repeat(" ", 2+nameWidth+1)
	lines := wrap(entriesText(f, row), ",", indent, s.width())
	if len(lines) == 0 {
		lines = []string{indent + padLeft("none", valueWidth)}
	}
	fmt.Fprintln(b, "  "+padRight(f.Name, nameWidth)+" "+strings.TrimPrefix(lines[0], indent))
	for _, l := range lines[1:] {
		fmt.Fprintln(b, l)
	}
}

func writeExplanation(b *bufio.Writer, name string, row *metrics.Row, s Screen) {
	f, _ := metrics.LookupFormula(name)
	for _, line := range []string{f.Text, counted(name, row)} {
		for _, l := range wrap(strings.Fields(line), "", "      ", s.width()) {
			fmt.Fprintln(b, s.paint(dim, l))
		}
	}
}

// column is one of a table of groups.
type column struct{ title, figure string }

var mainColumns = []column{
	{"operations", "operations"},
	{"error\nratio", "error_ratio"},
	{"attempt\nerror\nratio", "attempt_error_ratio"},
	{"amplification", "amplification"},
	{"retry\nratio", "retry_ratio"},
	{"retry\nsuccess\nratio", "retry_success_ratio"},
	{"latency\np50", "latency_ms{p50}"},
	{"latency\np99", "latency_ms{p99}"},
	{"orphaned\ncost\nUSD", "orphaned_cost_usd"},
	{"orphaned\ntokens", "orphaned_tokens"},
	{"orphan\nsuspects", "orphan_suspects"},
}

var spendColumns = []column{
	{"billed\ncost\nUSD", "billed_cost_usd"},
	{"billed\ntokens", "billed_tokens"},
	{"orphaned\nattempts", "orphaned_attempts"},
	{"orphaned\ncost\nUSD", "orphaned_cost_usd"},
	{"orphaned\ntokens", "orphaned_tokens"},
	{"orphaned\ncost\nratio", "orphaned_cost_ratio"},
	{"orphan\nsuspects", "orphan_suspects"},
	{"recovered\ncost\nUSD", "recovered_cost_usd"},
	{"redundant\ncost\nUSD", "redundant_cost_usd"},
}

func columnsOf(r *metrics.Report) []column {
	if r.Spend() {
		return spendColumns
	}
	return mainColumns
}

func writeGroups(b *bufio.Writer, r *metrics.Report, s Screen) {
	if len(r.Rows) == 0 {
		fmt.Fprintln(b, "\n"+noOperations)
		return
	}
	t := table.NewWriter()
	t.SetStyle(plainStyle(s))
	header := table.Row{}
	for _, c := range columnsOf(r) {
		header = append(header, c.title)
	}
	t.AppendHeader(append(keyHeader(r), header...))
	for i := range r.Rows {
		row := keyCells(r, &r.Rows[i])
		for _, c := range columnsOf(r) {
			row = append(row, format.Figure(c.figure, &r.Rows[i]))
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(alignment(r))
	fmt.Fprintf(b, "\n%s\n", trimLines(t.Render()))
}

func plainStyle(s Screen) table.Style {
	style := table.StyleDefault
	style.Options = table.Options{SeparateHeader: false}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format = table.FormatOptions{Header: text.FormatDefault}
	if s.Color {
		style.Color.Header = text.Colors{text.Bold}
	}
	return style
}

// keyHeader and keyCells are the dimensions, then the bucket.
func keyHeader(r *metrics.Report) table.Row {
	var row table.Row
	for _, d := range r.GroupBy {
		row = append(row, string(d))
	}
	if r.Bucket > 0 {
		row = append(row, "bucket")
	}
	return row
}

func keyCells(r *metrics.Report, row *metrics.Row) table.Row {
	var cells table.Row
	for _, v := range keyValues(r, row) {
		if v == "" {
			v = `""`
		}
		cells = append(cells, format.Safe(v))
	}
	return cells
}

func keyValues(r *metrics.Report, row *metrics.Row) []string {
	values := append([]string(nil), row.Dims...)
	if r.Bucket > 0 {
		values = append(values, row.Bucket.UTC().Format(time.RFC3339))
	}
	return values
}

func alignment(r *metrics.Report) []table.ColumnConfig {
	keys := len(keyHeader(r))
	var configs []table.ColumnConfig
	for i := range keys {
		configs = append(configs, table.ColumnConfig{Number: i + 1, VAlignHeader: text.VAlignBottom})
	}
	for i := range columnsOf(r) {
		configs = append(configs, table.ColumnConfig{Number: keys + i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight, VAlignHeader: text.VAlignBottom})
	}
	return configs
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func explainGroups(b *bufio.Writer, r *metrics.Report, s Screen) {
	for _, c := range columnsOf(r) {
		name, _, _ := strings.Cut(c.figure, "{")
		f, _ := metrics.LookupFormula(name)
		fmt.Fprintf(b, "\n%s: %s\n", s.paint(bold, c.figure), f.Text)
		for i := range r.Rows {
			fmt.Fprintf(b, "  %s: %s\n", RowName(r, i), counted(name, &r.Rows[i]))
		}
	}
}

// RowName names a row for people: tenant=acme, model=gpt-4o.
func RowName(r *metrics.Report, i int) string {
	header, row := keyHeader(r), &r.Rows[i]
	var parts []string
	for j, v := range keyValues(r, row) {
		parts = append(parts, fmt.Sprintf("%s=%s", header[j], format.Safe(v)))
	}
	if len(parts) == 0 {
		return "the whole window"
	}
	return strings.Join(parts, ", ")
}
