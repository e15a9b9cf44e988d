package render

import (
	"bufio"
	"fmt"
	"github.com/retrylens/retrylens/internal/format"
	"io"
	"strconv"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// StoreStatus is the state of a store, for people.
type StoreStatus struct {
	Store             string
	ClickHouseVersion string
	SchemaVersion     int
	RetentionDays     int
	FreeBytes         uint64
	NewestAttemptAt   time.Time // zero = there is none
	Now               time.Time

	RollupsUsable bool
	RollupLag     time.Duration
	DirtyMinutes  uint64
	LastRunAt     time.Time // zero = never

	Ingest []IngestNode
	Last   *metrics.Report // of the last minutes, in buckets without groups
	Total  *metrics.Report // of the same time as one row
}

// IngestNode is an ingest service that spoke lately.
type IngestNode struct {
	Node                       string
	ReportedAt                 time.Time
	RejectedLines, DeadLetters uint64
	SpoolAge                   time.Duration
	SpoolBytes                 int64
}

// statusFigures are the curves of a status.
var statusFigures = []string{"operations", "error_ratio", "attempt_error_ratio", "amplification", "retry_success_ratio", "latency_ms{p50}", "orphaned_cost_usd"}

// Status writes one screen: what the last minutes were like, and how the store, its
// rollups and the ingest services are.
func Status(w io.Writer, st StoreStatus, s Screen) error {
	b := bufio.NewWriter(w)
	line := func(name, value string) { fmt.Fprintf(b, "  %s %s\n", padRight(name, nameWidth), value) }
	fmt.Fprintln(b, s.paint(bold, heading(st.Total)))
	for _, name := range statusFigures {
		low, high := extremes(st.Last.Rows, name)
		line(name, padLeft(format.Figure(name, &st.Total.Rows[0]), valueWidth)+"  "+Spark(values(st.Last.Rows, name), 30)+"  "+s.paint(dim, low+" … "+high))
	}
	fmt.Fprintln(b, "\n"+s.paint(bold, "store"))
	line("store", format.Safe(st.Store))
	line("ClickHouse, schema, retention", st.ClickHouseVersion+", "+strconv.Itoa(st.SchemaVersion)+", "+format.Plural(st.RetentionDays, "day", "days"))
	line("free", format.Bytes(st.FreeBytes))
	line("newest operation", since(st.NewestAttemptAt, st.Now, "none"))
	line("rollups", rollups(st))
	fmt.Fprintln(b, "\n"+s.paint(bold, "ingest"))
	for _, n := range st.Ingest {
		line(format.Safe(n.Node), fmt.Sprintf("spool %s, %s old; rejected lines %s; dead letters %s; %s",
			format.Bytes(uint64(n.SpoolBytes)), n.SpoolAge.Round(time.Millisecond), format.Grouped(n.RejectedLines), format.Grouped(n.DeadLetters), since(n.ReportedAt, st.Now, "")))
	}
	if len(st.Ingest) == 0 {
		fmt.Fprintln(b, "  no ingest service has reported in the last 10 minutes")
	}
	fmt.Fprintln(b)
	for _, l := range format.Footer(st.Total) {
		fmt.Fprintln(b, s.paint(yellow, l))
	}
	return b.Flush()
}

func rollups(st StoreStatus) string {
	text := "not used yet"
	if st.RollupsUsable {
		text = "in use"
	}
	return fmt.Sprintf("%s, %s behind (%s), last pass %s", text, st.RollupLag.Round(time.Millisecond),
		format.Plural(int(st.DirtyMinutes), "minute", "minutes"), since(st.LastRunAt, st.Now, "never"))
}

func since(t, now time.Time, never string) string {
	if t.IsZero() {
		return never
	}
	return format.Instant(t, "") + " (" + now.Sub(t).Round(time.Second).String() + " ago)"
}
