package web

import (
	"encoding/json"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web/chart"
)

// figure is a chart with its summary, its legend and its table.
type figure struct {
	ID, Title, Summary string
	SVG                template.HTML
	Legend             []legend
	Band               string
	Table              *table
	Data               string // JSON for the script: times, values, names; "" = none
	Permalink          string
}

type legend struct {
	Class int
	Name  string
}

// curve is one line of a figure.
type curve struct {
	name, figure string
	flip         bool // 1 − value
}

// write is a number of a figure's unit as people read it.
func write(f metrics.Formula, v float64) string {
	switch {
	case math.IsNaN(v):
		return format.Null
	case f.Unit == metrics.UnitUSD:
		return format.USD(retrylens.PicoUSD(uint64(math.Round(max(0, v) * 1e12))))
	}
	return format.Short(f, metrics.Value{Unit: f.Unit, Set: true, Ratio: v, Count: int64(math.Round(v))})
}

func values(rows []metrics.Row, name string, flip bool) []float64 {
	out := make([]float64, len(rows))
	for i := range rows {
		v, ok := number(name, &rows[i])
		switch {
		case !ok:
			v = math.NaN()
		case flip:
			v = 1 - v
		}
		out[i] = v
	}
	return out
}

func times(rows []metrics.Row) []time.Time {
	out := make([]time.Time, len(rows))
	for i := range rows {
		out[i] = rows[i].Bucket
	}
	return out
}

func spark(rows []metrics.Row, name string, b band, flip bool) template.HTML {
	if len(rows) == 0 {
		return ""
	}
	low, high := b.Low, b.High
	if flip {
		low, high = 1-b.High, 1-b.Low
	}
	return chart.Spark(values(rows, name, flip), low, high)
}

func triageCharts(s *state, r *metrics.Report, bands func(string) band) []figure {
	none := band{Low: math.NaN(), High: math.NaN()}
	latency := chartOf(s, r, "latency", "Latency of what was delivered", none, curve{"p50", "latency_ms{p50}", false}, curve{"p99", "latency_ms{p99}", false})
	return []figure{
		chartOf(s, r, "success", "Success, effective and actual", none, curve{"effective (operations)", "error_ratio", true}, curve{"actual (attempts)", "attempt_error_ratio", true}),
		chartOf(s, r, "amplification", "Amplification: upstream calls an operation", bands("amplification"), curve{"amplification", "amplification", false}),
		latency,
	}
}

// chartOf draws figures of a report with buckets.
func chartOf(s *state, r *metrics.Report, id, title string, b band, curves ...curve) figure {
	base, _, _ := strings.Cut(curves[0].figure, "{")
	f, _ := metrics.LookupFormula(base)
	c := chart.Lines{
		From: r.From, To: r.To, Times: times(r.Rows), Low: b.Low, High: b.High, Width: 560, Height: 190,
		Format: func(v float64) string { return write(f, v) }, Clock: s.axis, Zero: f.Unit == metrics.UnitMS || f.Unit == metrics.UnitUSD,
	}
	fig := figure{ID: id, Title: title, Permalink: s.frozen() + "#" + id, Table: &table{Caption: title, Columns: []column{{Label: "bucket (" + s.zoneName() + ")"}}}}
	var said []string
	for i, cv := range curves {
		vs := values(r.Rows, cv.figure, cv.flip)
		if cv.flip {
			c.Top = 1
		}
		c.Lines = append(c.Lines, chart.Line{Name: cv.name, Values: vs})
		fig.Legend = append(fig.Legend, legend{i, cv.name})
		col := figureColumn(cv.name, cv.figure)
		if cv.flip {
			col.Title = "1 − " + col.Title
		}
		fig.Table.Columns = append(fig.Table.Columns, col)
		said = append(said, cv.name+": "+extremes(f, vs))
	}
	if b.Set {
		fig.Band = write(f, b.Low) + " – " + write(f, b.High)
	}
	fig.Summary = strings.Join(said, "; ")
	fig.SVG = c.SVG()
	fig.Table.Rows = chartRows(s, r.Rows, f, curves, c.Lines)
	fig.Data = chartData(f, r, c.Lines)
	return fig
}

func extremes(f metrics.Formula, vs []float64) string {
	low, high, last := math.Inf(1), math.Inf(-1), math.NaN()
	for _, v := range vs {
		if !math.IsNaN(v) {
			low, high, last = min(low, v), max(high, v), v
		}
	}
	if math.IsNaN(last) {
		return "no values"
	}
	return "from " + write(f, low) + " to " + write(f, high) + ", last " + write(f, last)
}

func chartRows(s *state, rows []metrics.Row, f metrics.Formula, curves []curve, lines []chart.Line) []row {
	out := make([]row, len(rows))
	for i := range rows {
		out[i].Cells = []cell{{Text: s.clock(rows[i].Bucket)}}
		for j, cv := range curves {
			c := figureCell(cv.figure, &rows[i])
			if cv.flip {
				c = cell{Text: write(f, lines[j].Values[i])}
			}
			out[i].Cells = append(out[i].Cells, c)
		}
	}
	return out
}

// chartData is what a script draws the same chart from.
func chartData(f metrics.Formula, r *metrics.Report, lines []chart.Line) string {
	type series struct {
		Name   string     `json:"name"`
		Values []*float64 `json:"values"`
	}
	data := struct {
		Unit   metrics.Unit `json:"unit"`
		Factor bool         `json:"factor"`
		From   int64        `json:"from"`
		To     int64        `json:"to"`
		Times  []int64      `json:"times"`
		Series []series     `json:"series"`
	}{Unit: f.Unit, Factor: strings.HasPrefix(write(f, 1), "×"), From: r.From.Unix(), To: r.To.Unix(), Times: []int64{}}
	for i := range r.Rows {
		data.Times = append(data.Times, r.Rows[i].Bucket.Unix())
	}
	for _, l := range lines {
		x := series{Name: l.Name, Values: make([]*float64, len(l.Values))}
		for i := range l.Values {
			if !math.IsNaN(l.Values[i]) {
				x.Values[i] = &l.Values[i]
			}
		}
		data.Series = append(data.Series, x)
	}
	b, err := json.Marshal(data)
	if err != nil {
		return "" // an infinite value: the SVG shows the rest
	}
	return string(b)
}
