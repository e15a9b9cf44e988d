package sim

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/sim/world"
)

// Arrival is one operation that a trace asks for.
type Arrival = world.Arrival

// TraceError is a row of a trace that cannot be read.
type TraceError struct {
	Line   int    // from 1, the header's line
	Column string // "" when it is about the row
	Reason string
}

func (e *TraceError) Error() string {
	if e.Column == "" {
		return fmt.Sprintf("trace: line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("trace: line %d: %s: %s", e.Line, e.Column, e.Reason)
}

// The columns of a trace and the names they go by, in lower case.
var (
	timeNames       = []string{"timestamp"}
	promptNames     = []string{"contexttokens", "prompt tokens"}
	completionNames = []string{"generatedtokens", "completion tokens"}
)

// Limits of a trace: one of ours is an hour or a week of one fleet.
const (
	maxTraceTokens = 1_000_000_000
	maxTraceSpan   = 366 * 24 * time.Hour
)

// ParseTrace reads a CSV with a header: TIMESTAMP, ContextTokens, GeneratedTokens as
// the Azure LLM inference traces have them, or timestamp, prompt tokens,
// completion tokens; in any case and order, other columns are ignored. A timestamp is a date and
// time, taken as UTC when it has no zone, or seconds. The first bad row is a *[TraceError].
// Arrivals come back in order of time.
func ParseTrace(r io.Reader) ([]Arrival, error) {
	p := traceParser{csv: csv.NewReader(r)}
	p.csv.ReuseRecord = true
	p.csv.TrimLeadingSpace = true
	if err := p.header(); err != nil {
		return nil, err
	}
	var rows []Arrival
	for {
		row, err := p.row()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, &TraceError{Line: 2, Reason: "no rows"}
	}
	return fromFirst(rows)
}

// fromFirst sorts the rows and makes their times relative to the first.
func fromFirst(rows []Arrival) ([]Arrival, error) {
	slices.SortStableFunc(rows, func(a, b Arrival) int { return int(min(max(a.At-b.At, -1), 1)) })
	first := rows[0].At
	for i := range rows {
		rows[i].At -= first
	}
	if span := rows[len(rows)-1].At; span > maxTraceSpan {
		return nil, fmt.Errorf("trace: spans %v, more than a year", span)
	}
	return rows, nil
}

type traceParser struct {
	csv                      *csv.Reader
	time, prompt, completion int // columns
}

func (p *traceParser) header() error {
	names, err := p.csv.Read()
	if errors.Is(err, io.EOF) {
		return &TraceError{Line: 1, Reason: "empty: header expected"}
	}
	if err != nil {
		return p.csvError(err)
	}
	p.time, p.prompt, p.completion = column(names, timeNames), column(names, promptNames), column(names, completionNames)
	for _, c := range []struct {
		at    int
		names []string
	}{{p.time, timeNames}, {p.prompt, promptNames}, {p.completion, completionNames}} {
		if c.at < 0 {
			return &TraceError{Line: 1, Reason: fmt.Sprintf("no column is named %s", strings.Join(c.names, " or "))}
		}
	}
	return nil
}

func column(names, wanted []string) int {
	return slices.IndexFunc(names, func(name string) bool {
		name = strings.TrimPrefix(name, "\ufeff")
		return slices.Contains(wanted, strings.ToLower(strings.TrimSpace(name)))
	})
}

func (p *traceParser) csvError(err error) error {
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		return &TraceError{Line: pe.Line, Reason: pe.Err.Error()}
	}
	return fmt.Errorf("trace: %w", err)
}

func (p *traceParser) row() (Arrival, error) {
	cells, err := p.csv.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return Arrival{}, io.EOF
		}
		return Arrival{}, p.csvError(err)
	}
	at, ok := parseTimestamp(strings.TrimSpace(cells[p.time]))
	if !ok {
		return Arrival{}, p.cellError("timestamp", p.time, cells, "neither a time nor seconds")
	}
	prompt, ok := parseTokens(cells[p.prompt])
	if !ok {
		return Arrival{}, p.cellError("prompt tokens", p.prompt, cells, "not an integer within 0..1000000000")
	}
	completion, ok := parseTokens(cells[p.completion])
	if !ok {
		return Arrival{}, p.cellError("completion tokens", p.completion, cells, "not an integer within 0..1000000000")
	}
	return Arrival{At: at, PromptTokens: prompt, CompletionTokens: completion}, nil
}

func (p *traceParser) cellError(column string, i int, cells []string, reason string) error {
	line, _ := p.csv.FieldPos(i)
	return &TraceError{Line: line, Column: column, Reason: fmt.Sprintf("%s: %.40q", reason, cells[i])}
}

func parseTokens(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n, err == nil && n >= 0 && n <= maxTraceTokens
}

// parseTimestamp returns the time since 1970; years are bounded so that a
// duration holds it.
func parseTimestamp(s string) (time.Duration, bool) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		ok := seconds >= 0 && seconds <= 4e9 // not NaN either
		if !ok {
			return 0, false
		}
		return time.Duration(math.Round(seconds * 1e9)), true
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1970 && t.Year() <= 2100 {
			return time.Duration(t.Unix())*time.Second + time.Duration(t.Nanosecond()), true
		}
	}
	return 0, false
}
