package render

import (
	"bufio"
	"cmp"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Waterfall writes operations for people: a line for each attempt, gateway
// attempts under the client's, the sleeps between them hatched, and the verdict.
func Waterfall(w io.Writer, ops []metrics.Operation, s Screen) error {
	b := bufio.NewWriter(w)
	for i := range ops {
		if i > 0 {
			fmt.Fprintln(b)
		}
		f := &fall{Operation: &ops[i], s: s}
		f.measure()
		f.writeTitle(b)
		f.writeLines(b)
		f.writeVerdict(b)
	}
	return b.Flush()
}

// fall is one operation on its way to the screen.
type fall struct {
	*metrics.Operation
	s        Screen
	from, to int64 // Unix ms of the left and right edge of the bars
}

// line is an attempt, or the sleep after it.
type line struct {
	cells      [fallColumns]string
	from, to   int64 // of the bar
	open       bool  // the end is not known
	fill       string
	style      string
	remark     string // instead of tokens, cost and fate
	remarkOnly bool
}

// The columns left of the bar, then those right of it.
const (
	colTry = iota
	colResult
	colStatus
	colOffset
	colDuration
	colTokens
	colCost
	colFate
	fallColumns
)

var fallHeader = [fallColumns]string{"attempt", "outcome", "status", "offset", "duration", "tokens in+out", "USD", "fate"}

// measure finds the edges: the operation's start and the last end.
func (f *fall) measure() {
	f.from = f.Start.UnixMilli()
	f.to = f.from
	for i := range f.Records {
		r := &f.Records[i]
		f.from = min(f.from, r.StartedAt.UnixMilli())
		f.to = max(f.to, r.EndUnixMS(), r.StartedAt.UnixMilli())
	}
}

func (f *fall) writeTitle(b *bufio.Writer) {
	fmt.Fprintln(b, f.s.paint(bold, fmt.Sprintf("operation %s of tenant %s", format.Safe(f.LogicalID), format.Safe(f.Tenant))))
	var home []string
	for _, v := range []string{f.Home.Service, f.Home.Environment, f.Home.Operation, f.Home.Provider, f.Home.Model} {
		if v != "" {
			home = append(home, format.Safe(v))
		}
	}
	fmt.Fprintf(b, "%s, started %s\n\n", strings.Join(home, " · "), format.Instant(f.Start, ""))
}

// lines are the attempts and the sleeps between them in the order of their
// start, gateway attempts under the client attempt during which they began.
func (f *fall) lines() []line {
	var lines []line
	for i := range f.Records {
		lines = append(lines, f.attempt(&f.Records[i]))
		if l, ok := f.sleep(i); ok {
			lines = append(lines, l)
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.from, b.from) })
	return lines
}

func (f *fall) attempt(r *metrics.Record) line {
	l := line{
		from: r.StartedAt.UnixMilli(), to: r.EndUnixMS(), open: !r.DurationMS.Set,
		fill: "█", style: styleOf(r.Attempt),
	}
	l.cells = [fallColumns]string{
		colTry:    f.indent(r) + fmt.Sprintf("%s %d %s", r.Hop, r.Attempt.Attempt, r.Cause),
		colResult: result(r.Attempt), colStatus: optional(r.Status), colOffset: format.MS(l.from - f.Start.UnixMilli()),
		colDuration: format.Null, colTokens: usage(r.Attempt), colCost: format.Null, colFate: f.fate(r),
	}
	if r.DurationMS.Set {
		l.cells[colDuration] = format.MS(r.DurationMS.Value)
	}
	if r.CostUSD.Set {
		l.cells[colCost] = format.USD(r.CostUSD.Value)
	}
	return l
}

func (f *fall) indent(r *metrics.Record) string {
	if f.TwoHops && r.Inner {
		return "└ "
	}
	return ""
}

func styleOf(a *retrylens.Attempt) string {
	switch {
	case a.Delivery == retrylens.DeliveryFull:
		return green
	case a.Outcome == retrylens.OutcomeError:
		return red
	}
	return yellow
}

func result(a *retrylens.Attempt) string {
	switch {
	case a.ErrorClass == "":
		return string(a.Outcome)
	case a.Outcome == retrylens.OutcomeError:
		return string(a.ErrorClass)
	}
	return string(a.Outcome) + ": " + string(a.ErrorClass)
}

func optional[T uint16 | int64](o retrylens.Opt[T]) string {
	if !o.Set {
		return format.Null
	}
	return fmt.Sprint(o.Value)
}

// usage is prompt + completion tokens.
func usage(a *retrylens.Attempt) string {
	if !a.PromptTokens.Set && !a.CompletionTokens.Set {
		return format.Null
	}
	part := func(o retrylens.Opt[int64]) string {
		if !o.Set {
			return "?"
		}
		return format.Grouped(o.Value)
	}
	return part(a.PromptTokens) + "+" + part(a.CompletionTokens)
}

// fate is what became of an attempt, in words.
func (f *fall) fate(r *metrics.Record) string {
	words := format.Fate(r)
	if words == format.FateReceived {
		words += servedBy(r)
	}
	return words
}

func servedBy(r *metrics.Record) string {
	if !r.ServedBy.Set {
		return ""
	}
	return " from gateway " + strconv.Itoa(int(r.ServedBy.Value))
}

// sleep is the wait between an attempt and its successor in the run; after the
// last one of a hop there is none, whatever the caller sends next.
func (f *fall) sleep(i int) (line, bool) {
	r := &f.Records[i]
	next := f.successor(i)
	if next == nil || r.Final.Value || !r.DurationMS.Set || next.StartedAt.UnixMilli() <= r.EndUnixMS() {
		return line{}, false
	}
	l := line{from: r.EndUnixMS(), to: next.StartedAt.UnixMilli(), fill: "╱", style: dim, remarkOnly: true}
	waited := l.to - l.from
	indent := f.indent(r)
	if indent != "" {
		indent = "  "
	}
	l.cells[colTry], l.cells[colOffset], l.cells[colDuration] = indent+"  sleep", format.MS(l.from-f.Start.UnixMilli()), format.MS(waited)
	l.remark = sleepRemark(r, waited)
	if r.RetryAfterViolated {
		l.style = red
	}
	return l, true
}

func sleepRemark(r *metrics.Record, waited int64) string {
	var words []string
	if r.DelayMS.Set {
		words = append(words, "computed "+format.MS(r.DelayMS.Value))
	}
	if r.RetryAfterMS.Set {
		words = append(words, fmt.Sprintf("Retry-After asked %s, waited %s", format.MS(r.RetryAfterMS.Value), format.MS(waited)))
	}
	if r.RetryAfterViolated {
		words = append(words, "too early")
	}
	return strings.Join(words, "; ")
}

// successor is the next attempt of the same hop and run that is no copy sent on
// purpose and no redelivery.
func (f *fall) successor(i int) *metrics.Record {
	r := &f.Records[i]
	for j := i + 1; j < len(f.Records); j++ {
		next := &f.Records[j]
		if next.Hop != r.Hop || next.Run() != r.Run() {
			return nil
		}
		if next.Cause != retrylens.CauseHedge && next.Cause != retrylens.CauseRedelivery {
			return next
		}
	}
	return nil
}

const (
	minBar  = 12
	maxBar  = 60
	columns = 2 // between columns
)

// writeLines lays the lines out: what is left of the bar, the bar, what is right
// of it; on a narrow screen the right part on a line of its own.
func (f *fall) writeLines(b *bufio.Writer) {
	lines := f.lines()
	widths := columnWidths(lines)
	left, right := sum(widths[:colTokens]), sum(widths[colTokens:])
	bar := f.s.width() - left - right
	narrow := bar < minBar
	if narrow {
		bar = f.s.width() - left
	}
	bar = min(max(bar, minBar), maxBar)
	f.writeHeader(b, widths, bar, narrow)
	for i := range lines {
		f.writeLine(b, &lines[i], widths, bar, narrow)
	}
	fmt.Fprintln(b)
}

func columnWidths(lines []line) [fallColumns]int {
	var widths [fallColumns]int
	for c, title := range fallHeader {
		widths[c] = text.StringWidthWithoutEscSequences(title)
	}
	for i := range lines {
		for c, cell := range lines[i].cells {
			widths[c] = max(widths[c], text.StringWidthWithoutEscSequences(cell))
		}
	}
	return widths
}

func sum(widths []int) int {
	n := 0
	for _, w := range widths {
		n += w + columns
	}
	return n
}

func (f *fall) writeHeader(b *bufio.Writer, widths [fallColumns]int, bar int, narrow bool) {
	scale := padRight("0", bar-1)
	end := format.MS(f.to - f.from)
	if w := text.StringWidthWithoutEscSequences(end); w < bar-1 {
		scale = padRight("0", bar-w) + end
	}
	out := cellsText(fallHeader, widths, colTry, colTokens) + scale
	if !narrow {
		out += strings.Repeat(" ", columns) + cellsText(fallHeader, widths, colTokens, fallColumns)
	}
	fmt.Fprintln(b, f.s.paint(bold, strings.TrimRight(out, " ")))
}

// rightAligned are the columns of numbers.
var rightAligned = [fallColumns]bool{colStatus: true, colOffset: true, colDuration: true, colTokens: true, colCost: true}

func cellsText(cells [fallColumns]string, widths [fallColumns]int, from, to int) string {
	var b strings.Builder
	for c := from; c < to; c++ {
		if rightAligned[c] {
			b.WriteString(padLeft(cells[c], widths[c]))
		} else {
			b.WriteString(padRight(cells[c], widths[c]))
		}
		b.WriteString(strings.Repeat(" ", columns))
	}
	return b.String()
}

func (f *fall) writeLine(b *bufio.Writer, l *line, widths [fallColumns]int, bar int, narrow bool) {
	right := l.remark
	if !l.remarkOnly {
		right = cellsText(l.cells, widths, colTokens, fallColumns)
	}
	right = strings.TrimRight(right, " ")
	left := cellsText(l.cells, widths, colTry, colTokens)
	drawn, rest := f.bar(l, bar)
	if narrow {
		fmt.Fprintln(b, left+drawn)
		if details := l.details(); details != "" {
			fmt.Fprintln(b, "    "+f.s.paint(dim, details))
		}
		return
	}
	if right == "" {
		fmt.Fprintln(b, left+drawn)
		return
	}
	fmt.Fprintln(b, left+drawn+strings.Repeat(" ", rest+columns)+right)
}

// details are what is right of the bar, as a sentence.
func (l *line) details() string {
	if l.remarkOnly {
		return l.remark
	}
	var words []string
	if v := l.cells[colTokens]; v != format.Null {
		words = append(words, v+" tokens")
	}
	if v := l.cells[colCost]; v != format.Null {
		words = append(words, v+" USD")
	}
	if v := l.cells[colFate]; v != "" {
		words = append(words, v)
	}
	return strings.Join(words, ", ")
}

// bar draws a line on the scale and returns how much room is left behind it.
func (f *fall) bar(l *line, width int) (string, int) {
	span := max(1, f.to-f.from)
	at := func(ms int64) int { return int((ms - f.from) * int64(width) / span) }
	begin := min(at(l.from), width-1)
	end := min(max(at(l.to), begin+1), width)
	fill := strings.Repeat(l.fill, end-begin)
	if l.open {
		fill = "?"
		end = begin + 1
	}
	return strings.Repeat(" ", begin) + f.s.paint(l.style, fill), width - end
}

func (f *fall) writeVerdict(b *bufio.Writer) {
	v := metrics.NewVerdict(f.Operation)
	for i, l := range format.Sentences(v) {
		label := "         "
		if i == 0 {
			label = f.s.paint(bold, "verdict") + "  "
			l = f.s.paint(stateStyle[f.State], l)
		}
		fmt.Fprintln(b, label+l)
	}
}

var stateStyle = map[metrics.State]string{
	metrics.StateSucceeded: green, metrics.StateFailed: red, metrics.StateLost: red, metrics.StateOpen: yellow,
}
