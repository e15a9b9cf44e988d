package format

import (
	"fmt"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// unknowable stands for what nobody can tell from here.
const unknowable = "cannot be known"

// maxNamedEmitters is how many emitters with gaps the footer names.
const maxNamedEmitters = 3

// Footer says what may still change and how much of the truth the report can
// have seen. It is never empty: no figure is to look green when it cannot be
// known.
func Footer(r *metrics.Report) []string {
	lines := []string{provisional(r)}
	if len(r.Unknown) > 0 {
		lines = append(lines, strings.Join(r.Unknown, ", ")+": "+unknowable+" for these groups or filters over a window so long, or beyond the retention; take a shorter or later one, or group by tenant, provider and model")
	}
	return append(lines, completeness(r.Completeness)...)
}

func provisional(r *metrics.Report) string {
	if !r.Provisional {
		return "provisional: no"
	}
	var why []string
	open := uint64(0)
	for i := range r.Rows {
		open += r.Rows[i].Open
	}
	if open > 0 {
		why = append(why, Plural(int(open), "operation is open", "operations are open"))
	}
	if (metrics.Query{To: r.To, AsOf: r.AsOf}).Provisional(0) {
		why = append(why, "the window reaches into the last 2 minutes before as_of")
	}
	if len(why) == 0 { // a report of spend has no count of them
		why = append(why, "operations are open")
	}
	return "provisional: yes, figures may still change (" + strings.Join(why, "; ") + ")"
}

func completeness(c *metrics.Completeness) []string {
	if c == nil {
		return []string{"completeness: " + unknowable}
	}
	missing := "records missing: " + unknowable + " (no record has emitter and seq)"
	if c.RecordsMissing.Set {
		missing = "records missing: " + Grouped(c.RecordsMissing.Value) + emitters(c.Emitters)
		if c.RecordsMissing.Value > 0 && c.CoverageRatio.Set {
			missing += ", coverage " + Percent(c.CoverageRatio.Value)
		}
	}
	usage := "usage of executed attempts known: " + unknowable + " (none was executed)"
	if c.KnownUsageRatio.Set {
		usage = "usage of executed attempts known: " + Percent(c.KnownUsageRatio.Value)
	}
	lines := []string{missing, usage, transit(c)}
	if c.FinaliserLagMS.Set {
		lines = append(lines, "rollups lag behind: "+MS(c.FinaliserLagMS.Value))
	}
	return lines
}

func emitters(gaps []metrics.EmitterGap) string {
	if len(gaps) == 0 {
		return ""
	}
	var names []string
	for i, g := range gaps {
		if i == maxNamedEmitters {
			names = append(names, fmt.Sprintf("%d emitters more", len(gaps)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s/%s %s of %s", Safe(g.Tenant), Safe(g.Emitter), Grouped(g.Missing), Grouped(g.MaxSeq+1)))
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// transit is what never reached the store.
func transit(c *metrics.Completeness) string {
	words := []string{"rejected lines: " + unknowable, "dead letters: " + unknowable, "spool age: " + unknowable}
	if c.RejectedLines.Set {
		words[0] = "rejected lines: " + Grouped(c.RejectedLines.Value)
	}
	if c.DeadLetters.Set {
		words[1] = "dead letters: " + Grouped(c.DeadLetters.Value)
	}
	if c.SpoolAgeMS.Set {
		words[2] = "spool age: " + MS(c.SpoolAgeMS.Value)
	}
	return strings.Join(words, "; ")
}
