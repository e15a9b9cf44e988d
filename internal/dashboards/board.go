package dashboards

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// columns is the width of a dashboard.
const columns = 24

// schemaVersion is that of Grafana 11; later ones read it.
const schemaVersion = 39

// board lays panels out from left to right, row by row.
type board struct {
	source
	d       Dashboard
	id      uint32
	x, y, h uint32
}

func newBoard(s source, name, title, about string) *board {
	d := *dashboard.NewDashboard()
	d.Uid, d.Title, d.Description = ptr("retrylens-"+s.name()+"-"+name), ptr("Retrylens: "+title+" ("+s.name()+")"), &about
	d.Tags, d.Timezone, d.Editable, d.SchemaVersion = []string{"retrylens", s.name()}, ptr("utc"), ptr(true), schemaVersion
	d.GraphTooltip, d.Refresh = ptr(dashboard.DashboardCursorSyncCrosshair), ptr("30s")
	d.Time = &dashboard.DashboardDashboardTime{From: "now-6h", To: "now"}
	d.Templating.List = append(s.variables(), uiVariable())
	d.Links = append(pageLinks(), dashboard.DashboardLink{
		Title: "Dashboards", Type: dashboard.DashboardLinkTypeDashboards, Icon: "dashboard", Tags: []string{"retrylens", s.name()}, KeepTime: true, IncludeVars: true, AsDropdown: true,
	})
	return &board{source: s, d: d}
}

// variable adds one.
func (b *board) variable(v dashboard.VariableModel) {
	b.d.Templating.List = append(b.d.Templating.List, v)
}

func (b *board) nextID() uint32 { b.id++; return b.id }

// section begins a row with a heading.
func (b *board) section(title string) {
	b.y, b.x, b.h = b.y+b.h, 0, 0
	b.d.Panels = append(b.d.Panels, dashboard.PanelOrRowPanel{RowPanel: &dashboard.RowPanel{
		Type: "row", Title: &title, Id: b.nextID(), GridPos: &dashboard.GridPos{H: 1, W: columns, Y: b.y}, Panels: []dashboard.Panel{},
	}})
	b.y++
}

// put places a panel.
func (b *board) put(w, h uint32, p dashboard.Panel) {
	if b.x+w > columns {
		b.x, b.y, b.h = 0, b.y+b.h, 0
	}
	p.Id, p.GridPos = ptr(b.nextID()), &dashboard.GridPos{X: b.x, Y: b.y, W: w, H: h}
	b.d.Panels = append(b.d.Panels, dashboard.PanelOrRowPanel{Panel: &p})
	b.x, b.h = b.x+w, max(b.h, h)
}

// about is the definition of figures and what a reader must know of the source.
func (b *board) about(figures ...string) string { return describe(figures...) + "\n\n" + b.note() }

// one puts the number of a figure.
func (b *board) one(w uint32, figure string, steps ...dashboard.Threshold) {
	b.put(w, 4, panel{
		title: titleOf(figure) + b.window(), about: b.about(figure), unit: unitOf(figure), decimals: decimalsOf(figure), targets: b.source.one(figure), steps: steps,
	}.stat(b.plugin()))
}

// over puts curves of figures of one unit.
func (b *board) over(title string, figures []string, steps ...dashboard.Threshold) {
	b.put(12, 8, panel{title: title, about: b.about(figures...), unit: unitOf(figures[0]), targets: b.source.over(figures...), steps: steps}.series(b.plugin(), figures...))
}

// entries puts the entries of a figure, stacked.
func (b *board) entries(w uint32, title, figure string) {
	f := formula(figure)
	p := stacked(panel{title: title, about: b.about(figure), unit: unitOf(figure), targets: b.source.entries(figure)}.series(b.plugin(), f.Keys...))
	p.FieldConfig.Defaults.DisplayName = ptr("${__field.labels." + f.Label + "}")
	if f.Label == "error_class" {
		p.FieldConfig.Defaults.Links = []dashboard.DashboardLink{entryLink(f.Label, b.filters())}
	}
	b.put(w, 8, p)
}

// quantiles puts p50, p90 and p99 of a figure.
func (b *board) quantiles(w uint32, title, figure, note string) {
	b.put(w, 8, panel{title: title, about: b.about(figure) + "\n\n" + note, unit: b.quantileUnit(), targets: b.source.quantiles(figure)}.series(b.plugin(), "p50", "p90", "p99"))
}

// rows puts a table of figures by dimensions.
func (b *board) rows(h uint32, title string, dimensions, figures []string) {
	cols := append(groupColumns(dimensions, b.filters()), figureColumns(figures)...)
	b.put(columns, h, panel{title: title + b.window(), about: b.about(figures...), unit: unitOf(figures[0])}.table(b.plugin(), b.source.rows(dimensions, figures...), cols...))
}

// lines joins the lines of a query.
func lines(s ...string) string { return strings.Join(s, "\n") }
