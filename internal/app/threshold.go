package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Threshold is what a figure must not be: "amplification>1.2".
type Threshold struct {
	Figure string // as metrics.Figure names it
	Op     string // > >= < <=
	Limit  float64
	text   string
}

// operators, the longer ones first.
var operators = []string{">=", "<=", ">", "<"}

// ParseThreshold reads NAME OP NUMBER. An unknown name is refused with the
// nearest known one.
func ParseThreshold(s string) (Threshold, error) {
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return Threshold{}, fmt.Errorf("no comparison in %.80q; write such as 'amplification>1.2', with one of > >= < <=", s)
	}
	t := Threshold{Figure: strings.TrimSpace(s[:i]), text: s}
	for _, op := range operators {
		if rest, ok := strings.CutPrefix(s[i:], op); ok {
			limit, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil || math.IsNaN(limit) || math.IsInf(limit, 0) {
				return Threshold{}, fmt.Errorf("no number after %s in %.80q", op, s)
			}
			t.Op, t.Limit = op, limit
			break
		}
	}
	if _, ok := metrics.Figure(t.Figure, metrics.Row{}); !ok {
		return Threshold{}, unknownFigure(t.Figure)
	}
	return t, nil
}

// Broken tells whether the row's figure is what it must not be. A null figure
// never is.
func (t Threshold) Broken(row metrics.Row) (metrics.Value, bool) {
	v, _ := metrics.Figure(t.Figure, row)
	f, ok := v.Float64()
	return v, ok && t.compare(f)
}

func (t Threshold) compare(f float64) bool {
	switch t.Op {
	case ">":
		return f > t.Limit
	case ">=":
		return f >= t.Limit
	case "<":
		return f < t.Limit
	}
	return f <= t.Limit
}

func (t Threshold) String() string { return t.text }

// spend tells whether the figure exists in rows by what was executed.
func (t Threshold) spend() bool {
	name, _, _ := strings.Cut(t.Figure, "{")
	f, _ := metrics.LookupFormula(name)
	return f.Spend
}

// unknownFigure says what was meant, most likely.
func unknownFigure(name string) error {
	base, _, keyed := strings.Cut(name, "{")
	f, ok := metrics.LookupFormula(base)
	switch {
	case !ok:
		return fmt.Errorf("unknown figure %.80q; did you mean %s? (docs/metrics.md has all)", name, nearest(base, figureNames()))
	case !keyed:
		return fmt.Errorf("%s has a value for each %s; write such as %s{%s}", base, f.Label, base, f.Keys[0])
	case f.Label == "":
		return fmt.Errorf("%s is a single figure; write it without {}", base)
	}
	key := strings.TrimSuffix(name[len(base)+1:], "}")
	return fmt.Errorf("%s has no %s %.40q; did you mean %s{%s}?", base, f.Label, key, base, nearest(key, f.Keys))
}

func figureNames() []string {
	names := make([]string, len(metrics.Formulas))
	for i, f := range metrics.Formulas {
		names[i] = f.Name
	}
	return names
}

// nearest is the word with the smallest edit distance.
func nearest(s string, words []string) string {
	s = s[:min(len(s), 80)]
	best, distance := "", math.MaxInt
	for _, w := range words {
		if d := editDistance(s, w); d < distance {
			best, distance = w, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
