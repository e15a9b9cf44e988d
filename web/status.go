package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
)

// statusBody is how the service and its store are.
type statusBody struct {
	Facts    []fact
	Ingest   *table
	Emitters *table
	Trust    trust
}

type fact struct{ Name, Value, Title string }

func (u *UI) status(ctx context.Context, s *state) (any, error) {
	st, err := u.o.Source.Status(ctx)
	if err != nil {
		return nil, err
	}
	c, err := u.o.Source.Completeness(ctx, s.query.Filters[metrics.DimTenant]...)
	if err != nil {
		return nil, err
	}
	st = api.VisibleStatus(ctx, st)
	b := &statusBody{Facts: facts(s, &st), Ingest: ingestTable(s, st.Ingest), Emitters: emitterTable(c), Trust: trustOfAll(c)}
	if _, restricted := api.Tenants(ctx); restricted {
		b.Facts = slices.DeleteFunc(b.Facts, func(f fact) bool { return slices.Contains(sharedFacts, f.Name) })
		b.Ingest = nil
	}
	return b, nil
}

// sharedFacts are of all tenants together, which one of them is not to see.
var sharedFacts = []string{"store", "free disk", "newest operation", "minutes to compute anew"}

func facts(s *state, st *api.Status) []fact {
	lag, dirty := format.Null, format.Null
	if st.Finaliser.LagMS != nil {
		lag = format.MS(*st.Finaliser.LagMS)
	}
	if st.Finaliser.DirtyMinutes != nil {
		dirty = format.Grouped(*st.Finaliser.DirtyMinutes)
	}
	usable := "not used: reports read attempts; figures are exact all the same"
	if st.Finaliser.Usable {
		usable = "used by long reports"
	}
	return []fact{
		{"Retrylens", st.Version, ""}, {"running since", s.clock(st.StartedAt.Truncate(time.Second)), ""}, {"store", format.Safe(st.Store), ""},
		{"ClickHouse", st.ClickHouseVersion, ""}, {"schema", fmt.Sprint(st.SchemaVersion), ""}, {"retention", format.Plural(st.RetentionDays, "day", "days"), ""},
		{"free disk", format.Bytes(st.FreeBytes), format.Grouped(st.FreeBytes) + " bytes"}, {"newest operation", ago(s, st.NewestAttemptAt, "none"), ""},
		{"rollups", usable, ""}, {"rollups are behind", lag, "age of the oldest change that no rollup holds yet"}, {"minutes to compute anew", dirty, ""},
		{"last pass of the finaliser", ago(s, st.Finaliser.LastRunAt, "never"), ""},
	}
}

// ago is a time and how long ago it was.
func ago(s *state, t *time.Time, never string) string {
	if t == nil {
		return never
	}
	return s.clock(t.Truncate(time.Second)) + ", " + format.MS(max(0, s.now.Sub(*t)).Milliseconds()) + " ago"
}

func ingestTable(s *state, all []api.IngestStatus) *table {
	t := &table{Caption: "Ingest services", Empty: "no ingest service has reported in the last 10 minutes", Columns: []column{
		{Label: "node"}, {Label: "reported"}, {Label: "running since"}, {Label: "oldest record in the spool", Num: true}, {Label: "spool", Num: true}, {Label: "rejected lines", Num: true}, {Label: "dead letters", Num: true},
	}}
	for _, n := range all {
		t.Rows = append(t.Rows, row{Cells: []cell{
			textCell(n.Node), {Text: ago(s, &n.ReportedAt, "")}, {Text: s.clock(n.StartedAt.Truncate(time.Second))}, {Text: format.MS(n.SpoolAgeMS)},
			{Text: format.Bytes(uint64(max(0, n.SpoolBytes)))}, {Text: format.Grouped(n.RejectedLines)}, {Text: format.Grouped(n.DeadLetters)},
		}})
	}
	return t
}

func emitterTable(c *metrics.Completeness) *table {
	t := &table{Caption: "Emitters with gaps", Empty: "no gaps are known", Columns: []column{
		{Label: "tenant"}, {Label: "emitter"}, {Label: "missing", Num: true}, {Label: "received", Num: true}, {Label: "highest seq", Num: true},
	}}
	if c == nil {
		return t
	}
	for _, g := range c.Emitters {
		t.Rows = append(t.Rows, row{Cells: []cell{
			textCell(g.Tenant), textCell(g.Emitter), {Text: format.Grouped(g.Missing)}, {Text: format.Grouped(g.Distinct)}, {Text: format.Grouped(g.MaxSeq)},
		}})
	}
	return t
}
