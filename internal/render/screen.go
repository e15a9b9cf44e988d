package render

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Screen is what text is written for. The zero value is a file or a pipe: no
// colour, a width that is not known.
type Screen struct {
	Width int // columns, 0 = not known
	Color bool
}

// defaultWidth is the width of what is no terminal.
const defaultWidth = 120

func (s Screen) width() int {
	if s.Width <= 0 {
		return defaultWidth
	}
	return s.Width
}

// ANSI styles.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
)

// paint wraps s in a style, where there are colours.
func (s Screen) paint(style, text string) string {
	if !s.Color || text == "" || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// padRight and padLeft fill up to a width on the screen.
func padRight(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-text.StringWidthWithoutEscSequences(s)))
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-text.StringWidthWithoutEscSequences(s))) + s
}

// wrap breaks words at the width and indents every line.
func wrap(words []string, separator, indent string, width int) []string {
	var lines []string
	line := ""
	for i, w := range words {
		if i < len(words)-1 {
			w += separator
		}
		if line != "" && len(indent)+text.StringWidthWithoutEscSequences(line+" "+w) > width {
			lines = append(lines, indent+line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	if line != "" {
		lines = append(lines, indent+line)
	}
	return lines
}
