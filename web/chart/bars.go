package chart

import (
	"fmt"
	"html/template"
	"strings"
)

// Bar is a horizontal bar for a cell of a table: parts of 1, each in its series' pattern.
func Bar(width int, parts ...float64) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bar" viewBox="0 0 %d 10" width="%d" height="10" aria-hidden="true" focusable="false">`, width, width)
	x := 0.0
	for i, p := range parts {
		w := max(0, min(p, 1)) * float64(width)
		if x+w > float64(width) {
			w = float64(width) - x
		}
		if w > 0 {
			fmt.Fprintf(&b, `<rect class="f%d" x="%.1f" y="0" width="%.1f" height="10"/>`, i, x, max(w, 0.5))
		}
		x += w
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers only
}

// Span is a stretch of a waterfall.
type Span struct {
	From, To int64 // ms
	Class    string
	Mark     int64 // ms at which something was asked for, drawn as a line; below From = nothing
}

// Fall is one line of a waterfall on the scale from..to.
func Fall(from, to int64, spans ...Span) template.HTML {
	const width, height = 400, 14
	at := func(ms int64) float64 { return float64(ms-from) / float64(max(1, to-from)) * width }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="fall" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true" focusable="false">`, width, height)
	for _, s := range spans {
		x := min(at(s.From), width-2)
		if s.Class == "hatch" {
			hatch(&b, x, max(2, at(s.To)-x), height)
		} else {
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="1" width="%.1f" height="%d"/>`, s.Class, x, max(2, at(s.To)-x), height-2)
		}
		if s.Mark > s.From {
			fmt.Fprintf(&b, `<path class="mark" d="M%.1f 0V%d"/>`, min(at(s.Mark), width-1), height)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, and classes of this package's callers
}

// hatch is drawn as lines, not as a pattern: patterns need ids, and a page has many.
func hatch(b *strings.Builder, x, w float64, height int) {
	var d strings.Builder
	for i := x; i < x+w; i += 5 {
		fmt.Fprintf(&d, "M%.1f %dL%.1f 2", i, height-2, min(i+5, x+w))
	}
	fmt.Fprintf(b, `<rect class="gap" x="%.1f" y="2" width="%.1f" height="%d"/><path class="hatch" d="%s"/>`, x, w, height-4, d.String())
}
