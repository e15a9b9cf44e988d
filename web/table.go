package web

import (
	"cmp"
	"html/template"
	"slices"
	"strings"

	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web/chart"
)

// mostRows is how many rows a table shows; exports hold all.
const mostRows = 200

// table is a table of any page.
type table struct {
	Caption string
	Columns []column
	Rows    []row
	More    int    // rows that are not shown
	Empty   string // what is said without rows
}

type column struct {
	Label, Title string
	Num          bool
	Sort         string // a link that sorts by it, "" = none
	Sorted       string // ascending or descending, "" = neither
}

type row struct {
	Cells []cell
	Href  string // where Enter goes
}

// cell is a value: short, with the exact one on hover. Text was made safe.
type cell struct {
	Text, Title, Href, Class string
	Bar                      template.HTML
}

// textCell is foreign text.
func textCell(s string) cell {
	if s == "" {
		return cell{Text: `""`, Class: "null", Title: "empty"}
	}
	safe := format.Safe(s)
	return cell{Text: safe, Title: safe, Class: "name"}
}

// figureCell is a figure of a row as tables show it: exact but for ratios, whose exact
// value is on hover.
func figureCell(name string, r *metrics.Row) cell {
	base, _, _ := strings.Cut(name, "{")
	f, known := metrics.LookupFormula(base)
	v, ok := metrics.Figure(name, *r)
	if !known || !ok {
		return cell{Text: format.Null, Class: "null"}
	}
	return valueCell(f, v)
}

func valueCell(f metrics.Formula, v metrics.Value) cell {
	if !v.Set {
		return cell{Text: format.Null, Class: "null", Title: "no value: " + f.Text}
	}
	c := cell{Text: format.Short(f, v), Title: v.String()}
	switch f.Unit {
	case metrics.UnitTokens:
		c.Text = format.Grouped(v.Count)
	case metrics.UnitMS:
		c.Title += " ms"
	case metrics.UnitUSD:
		c.Text, c.Title = v.Money.String(), format.USD(v.Money)+" USD"
	}
	return c
}

// figureColumn is a column of a figure, with its formula on hover.
func figureColumn(label, name string) column {
	base, _, _ := strings.Cut(name, "{")
	f, _ := metrics.LookupFormula(base)
	return column{Label: label, Title: name + ": " + f.Text, Num: true}
}

// figureTable is a table of the rows of a report: its dimensions, then figures. It is
// sorted by what the URL says, else by the figure given, the largest first.
type figureTable struct {
	groups  []metrics.Dimension
	figures []metricColumn
	sort    string // default: name, or -name for the largest first

	more  []column // further columns, and their cells
	cells func(*metrics.Row) []cell
}

type metricColumn struct{ label, figure string }

func (t figureTable) make(s *state, rows []metrics.Row, caption string) *table {
	rows = slices.Clone(rows)
	order := cmp.Or(s.values.Get(paramSort), t.sort)
	t.order(rows, order)
	out := &table{Caption: caption, Empty: "no operations"}
	for _, d := range t.groups {
		out.Columns = append(out.Columns, sortable(s, column{Label: strings.ReplaceAll(string(d), "_", " ")}, string(d), order))
	}
	for _, f := range t.figures {
		out.Columns = append(out.Columns, sortable(s, figureColumn(f.label, f.figure), f.figure, order))
	}
	out.Columns = append(out.Columns, t.more...)
	for i := range rows[:min(len(rows), mostRows)] {
		out.Rows = append(out.Rows, t.line(s, &rows[i]))
	}
	out.More = len(rows) - len(out.Rows)
	return out
}

func (t figureTable) line(s *state, r *metrics.Row) row {
	line := row{Href: s.drill(t.groups, r.Dims)}
	for j := range t.groups {
		c := textCell(r.Dims[j])
		c.Href = line.Href
		line.Cells = append(line.Cells, c)
	}
	for _, f := range t.figures {
		line.Cells = append(line.Cells, figureCell(f.figure, r))
	}
	if t.cells != nil {
		line.Cells = append(line.Cells, t.cells(r)...)
	}
	return line
}

func sortable(s *state, c column, name, order string) column {
	next := "-" + name
	switch order {
	case "-" + name:
		c.Sorted, next = "descending", name
	case name:
		c.Sorted = "ascending"
	}
	c.Sort = s.with(paramSort, next)
	return c
}

// order sorts rows; an order that names nothing leaves them as they are. What has no
// value comes last.
func (t figureTable) order(rows []metrics.Row, order string) {
	name, descending := strings.CutPrefix(order, "-")
	if i := slices.Index(t.groups, metrics.Dimension(name)); i >= 0 {
		slices.SortStableFunc(rows, func(a, b metrics.Row) int { return signed(cmp.Compare(a.Dims[i], b.Dims[i]), descending) })
		return
	}
	slices.SortStableFunc(rows, func(a, b metrics.Row) int {
		x, okX := number(name, &a)
		y, okY := number(name, &b)
		if !okX || !okY {
			return signed(cmp.Compare(btoi(okX), btoi(okY)), true)
		}
		return signed(cmp.Compare(x, y), descending)
	})
}

func signed(c int, descending bool) int {
	if descending {
		return -c
	}
	return c
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// number is a figure of a row as a float; false where it has no value.
func number(name string, r *metrics.Row) (float64, bool) {
	v, _ := metrics.Figure(name, *r)
	return v.Float64()
}

// drill is a link to the page about one group only. Executed dimensions cannot be
// filtered by; their names' home ones are not the same.
func (s *state) drill(groups []metrics.Dimension, values []string) string {
	v := cloned(s.values)
	for i, d := range groups {
		if !d.Executed() && i < len(values) && values[i] != "" {
			v[string(d)] = []string{values[i]}
		}
	}
	return s.link(s.path, v)
}

// about is a link to another page about one group.
func (s *state) about(path string, groups []metrics.Dimension, values []string, pairs ...string) string {
	v := s.kept()
	for i, d := range groups {
		if !d.Executed() && i < len(values) && values[i] != "" {
			v[string(d)] = []string{values[i]}
		}
	}
	return s.link(path, v, pairs...)
}

// share is a cell of a share of 1 with a bar.
func share(f float64) cell {
	return cell{Text: format.Percent(f), Bar: chart.Bar(80, f)}
}
