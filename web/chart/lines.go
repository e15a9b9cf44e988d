package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"time"
)

// Line is one curve: a value for each time of the chart, NaN = none.
type Line struct {
	Name   string
	Values []float64
}

// Lines is a chart of curves over time. At most six lines can be told apart.
type Lines struct {
	From, To      time.Time
	Times         []time.Time // ascending
	Lines         []Line
	Low, High     float64 // of the band of usual values; NaN = no band
	Zero          bool    // the scale begins at 0
	Top           float64 // the scale ends here at the latest where above 0: 1 for shares
	Width, Height int
	Format        func(float64) string // of the values on the scale
	Clock         func(time.Time, time.Duration) string
}

// The room around the plot, and how many marks the scales have.
const (
	left, right, top, bottom = 58, 8, 8, 20
	yMarks, xMarks           = 4, 6
)

// SVG draws the chart. It is hidden from screen readers: what it shows stands beside it
// as a summary and a table.
func (c *Lines) SVG() template.HTML {
	var b strings.Builder
	low, high := c.scale()
	fmt.Fprintf(&b, `<svg class="lines" viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true" focusable="false">`, c.Width, c.Height, c.Width, c.Height)
	c.grid(&b, low, high)
	c.band(&b, low, high)
	for i := range c.Lines {
		c.line(&b, i, low, high)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // every text in it was escaped
}

// scale is from the smallest to the largest of what is drawn.
func (c *Lines) scale() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	see := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	for _, l := range c.Lines {
		for _, v := range l.Values {
			see(v)
		}
	}
	see(c.Low)
	see(c.High)
	if low > high {
		low, high = 0, 1
	}
	if c.Zero {
		low = min(low, 0)
	}
	pad := (high - low) * 0.05
	if pad == 0 {
		pad = max(math.Abs(high)*0.05, 1e-9)
	}
	if low >= 0 { // nothing that is drawn here is negative unless a value is
		low = max(0, low-pad)
	} else {
		low -= pad
	}
	if high += pad; c.Top > 0 {
		high = min(high, max(c.Top, low+1e-9))
	}
	return low, high
}

func (c *Lines) x(t time.Time) float64 {
	span := max(1, c.To.Sub(c.From).Seconds())
	return left + t.Sub(c.From).Seconds()/span*float64(c.Width-left-right)
}

func (c *Lines) y(v, low, high float64) float64 {
	return top + (high-v)/(high-low)*float64(c.Height-top-bottom)
}

func (c *Lines) grid(b *strings.Builder, low, high float64) {
	for i := range yMarks {
		v := low + (high-low)*float64(i)/(yMarks-1)
		y := c.y(v, low, high)
		fmt.Fprintf(b, `<path class="grid" d="M%d %.1fH%d"/><text class="y" x="%d" y="%.1f">%s</text>`,
			left, y, c.Width-right, left-6, y+4, html.EscapeString(c.Format(v)))
	}
	step := timeStep(c.To.Sub(c.From))
	for t := c.From.Truncate(step).Add(step); t.Before(c.To); t = t.Add(step) {
		if x := c.x(t); x < left+20 || x > float64(c.Width-right-24) {
			continue // it would be cut off
		}
		fmt.Fprintf(b, `<text class="x" x="%.1f" y="%d">%s</text>`, c.x(t), c.Height-5, html.EscapeString(c.Clock(t, c.To.Sub(c.From))))
	}
}

// timeSteps are the distances of marks that people read.
var timeSteps = []time.Duration{
	time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// timeStep is the shortest of them that makes at most xMarks marks.
func timeStep(window time.Duration) time.Duration {
	for _, s := range timeSteps {
		if window/s <= xMarks {
			return s
		}
	}
	return max(window/xMarks, time.Hour)
}

func (c *Lines) band(b *strings.Builder, low, high float64) {
	if math.IsNaN(c.Low) || math.IsNaN(c.High) {
		return
	}
	y1, y2 := c.y(min(c.High, high), low, high), c.y(max(c.Low, low), low, high)
	fmt.Fprintf(b, `<rect class="band" x="%d" y="%.1f" width="%d" height="%.1f"/>`, left, y1, c.Width-left-right, max(1, y2-y1))
}

// line is one path; a value without neighbours is a dot.
func (c *Lines) line(b *strings.Builder, i int, low, high float64) {
	var d, dots strings.Builder
	drawing := false
	values := c.Lines[i].Values
	for j, v := range values {
		if math.IsNaN(v) {
			drawing = false
			continue
		}
		x, y := c.x(c.Times[j]), c.y(min(v, high), low, high)
		command := "L"
		if !drawing {
			command = "M"
			if j == len(values)-1 || math.IsNaN(values[j+1]) {
				fmt.Fprintf(&dots, `<circle class="s%d" cx="%.1f" cy="%.1f" r="2"/>`, i, x, y)
			}
		}
		drawing = true
		fmt.Fprintf(&d, "%s%.1f %.1f", command, x, y)
	}
	fmt.Fprintf(b, `<path class="line s%d" d="%s"/>%s`, i, d.String(), dots.String())
}

// Spark is a small curve without scales, its last value marked, with the band of usual
// values behind it where there is one.
func Spark(values []float64, low, high float64) template.HTML {
	const width, height, pad = 120, 26, 3
	c := Lines{Lines: []Line{{Values: values}}, Low: low, High: high}
	least, most := c.scale()
	y := func(v float64) float64 { return pad + (most-v)/(most-least)*(height-2*pad) }
	x := func(i int) float64 { return 1 + float64(i)/float64(max(1, len(values)-1))*(width-4) }
	var b, d strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true" focusable="false">`, width, height, width, height)
	if !math.IsNaN(low) && !math.IsNaN(high) {
		fmt.Fprintf(&b, `<rect class="band" x="0" y="%.1f" width="%d" height="%.1f"/>`, y(high), width, max(1, y(low)-y(high)))
	}
	command, last := "M", -1
	for i, v := range values {
		if math.IsNaN(v) {
			command = "M"
			continue
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", command, x(i), y(v))
		command, last = "L", i
	}
	fmt.Fprintf(&b, `<path class="line s0" d="%s"/>`, d.String())
	if last >= 0 {
		fmt.Fprintf(&b, `<circle class="s0" cx="%.1f" cy="%.1f" r="2"/>`, x(last), y(values[last]))
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers only
}
