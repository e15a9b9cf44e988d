package render

import (
	"bufio"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"io"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// JSON writes a report exactly as package metrics does, and a line end.
func JSON(w io.Writer, r *metrics.Report) error {
	b, err := r.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// Markdown writes a report as tables, values exact: every figure of one row
// without groups, else the main ones.
func Markdown(w io.Writer, r *metrics.Report, explain bool) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "**%s**\n", heading(r))
	if single(r) {
		markdownSections(b, &r.Rows[0], explain)
	} else {
		markdownGroups(b, r)
	}
	fmt.Fprintln(b)
	for _, line := range format.Footer(r) {
		fmt.Fprintf(b, "- %s\n", markdownCell(line))
	}
	return b.Flush()
}

func markdownSections(b *bufio.Writer, row *metrics.Row, explain bool) {
	for _, sec := range sections {
		fmt.Fprintf(b, "\n### %s\n\n", sec.title)
		if explain {
			fmt.Fprint(b, "| figure | value | formula | counted |\n|---|---:|---|---|\n")
		} else {
			fmt.Fprint(b, "| figure | value |\n|---|---:|\n")
		}
		for _, name := range sec.figures {
			markdownFigure(b, name, row, explain)
		}
	}
}

func markdownFigure(b *bufio.Writer, name string, row *metrics.Row, explain bool) {
	f, _ := metrics.LookupFormula(name)
	fmt.Fprintf(b, "| `%s` | %s |", name, markdownCell(exact(f, row)))
	if explain {
		fmt.Fprintf(b, " %s | %s |", markdownCell(f.Text), markdownCell(counted(name, row)))
	}
	fmt.Fprintln(b)
}

// exact is a figure as JSON has it, its entries in a row.
func exact(f metrics.Formula, row *metrics.Row) string {
	if f.Label == "" {
		return f.Value(row).String()
	}
	var words []string
	for _, e := range f.Entries(row) {
		words = append(words, e.Key+" "+e.Value.String())
	}
	return strings.Join(words, ", ")
}

func markdownGroups(b *bufio.Writer, r *metrics.Report) {
	var header, rule []string
	for _, h := range keyHeader(r) {
		header, rule = append(header, fmt.Sprint(h)), append(rule, "---")
	}
	for _, c := range columnsOf(r) {
		header, rule = append(header, "`"+c.figure+"`"), append(rule, "---:")
	}
	fmt.Fprintf(b, "\n| %s |\n|%s|\n", strings.Join(header, " | "), strings.Join(rule, "|"))
	for i := range r.Rows {
		var cells []string
		for _, v := range keyValues(r, &r.Rows[i]) {
			cells = append(cells, markdownCell(v))
		}
		for _, c := range columnsOf(r) {
			v, _ := metrics.Figure(c.figure, r.Rows[i])
			cells = append(cells, v.String())
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// markdownCell keeps foreign text inside its cell, and text.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "!", `\!`)

func markdownCell(s string) string { return markdownEscapes.Replace(format.Safe(s)) }
