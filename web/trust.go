package web

import (
	"slices"
	"strings"

	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
)

// trust says how much of the truth a page can have seen.
type trust struct {
	Level string // complete, gaps, unknown
	Word  string
	Lines []string
}

// trustOf reads what stands beside a report.
func trustOf(r *metrics.Report) trust {
	t := trust{Lines: format.Footer(r)}
	c := r.Completeness
	switch {
	case c == nil || !c.RecordsMissing.Set:
		t.Level, t.Word = "unknown", "Cannot be known: no emitter numbers its records"
	case c.RecordsMissing.Value > 0 || c.DeadLetters.Or(0) > 0 || c.RejectedLines.Or(0) > 0:
		t.Level, t.Word = "gaps", "Records are missing"
	default:
		t.Level, t.Word = "complete", "Every numbered record arrived"
	}
	if r.Provisional {
		t.Word += "; provisional"
	}
	return t
}

// trustOfAll is of all that was ever received: no report, so nothing of it is provisional and
// what was executed was not counted.
func trustOfAll(c *metrics.Completeness) trust {
	t := trustOf(&metrics.Report{Completeness: c})
	t.Lines = slices.DeleteFunc(t.Lines, func(line string) bool {
		return strings.HasPrefix(line, "provisional: ") || strings.HasPrefix(line, "usage of executed attempts known: ")
	})
	return t
}

// counters is a report whose quantiles nobody misses: its page shows none.
func counters(r *metrics.Report) *metrics.Report {
	c := *r
	c.Unknown = nil
	return &c
}
