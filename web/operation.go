package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/web/chart"
)

type idKey struct{}

// pathID is the logical id of a path; a slash in it may come percent-encoded.
func pathID(r *http.Request) string {
	if r.URL.Path == opPath {
		return r.URL.Query().Get("logical_id")
	}
	raw := chi.URLParam(r, "id")
	if r.URL.RawPath == "" {
		return raw
	}
	if id, err := url.PathUnescape(raw); err == nil {
		return id
	}
	return raw
}

// operationBody is one operation, or those of several tenants with the same id.
type operationBody struct {
	Operations []fallBody
	JSONLink   string
}

// fallBody is an operation as a waterfall.
type fallBody struct {
	ID, Tenant string
	State      string
	Sentences  []string
	Home       []navLink
	Started    string
	Scale      string
	Lines      []fallLine
	Records    []record
	Texts      []copied
}

// fallLine is an attempt, or the wait after it.
type fallLine struct {
	Name, Result, Class, Fate       string
	Status, Offset, Duration, Waste string
	Tokens, Cost                    string
	Bar                             any
	Wait, Nested                    bool
	Remark                          string
	from                            int64
}

type record struct {
	Name, JSON string
}

// copied is something to take along.
type copied struct{ Key, Label, Text string }

func (u *UI) operation(ctx context.Context, s *state) (any, error) {
	id, _ := ctx.Value(idKey{}).(string)
	attempts, err := u.o.Source.Attempts(ctx, id, s.query.Filters[metrics.DimTenant]...)
	if err != nil {
		return nil, err
	}
	ops := metrics.Operations(attempts, s.query.AsOf)
	if len(ops) == 0 {
		return nil, errNotFound
	}
	b := &operationBody{JSONLink: apiOperation(id)}
	for i := range ops {
		b.Operations = append(b.Operations, newFall(s, &ops[i]))
	}
	return b, nil
}

// apiOperation is the API's answer about an operation, or where a path cannot name it the one to a search.
func apiOperation(id string) string {
	if dots(id) {
		return api.Prefix + "/operations?logical_id=" + id
	}
	return api.Prefix + "/operations/" + url.PathEscape(id)
}

func newFall(s *state, op *metrics.Operation) fallBody {
	f := fallBody{
		ID: format.Safe(op.LogicalID), Tenant: format.Safe(op.Tenant), State: string(op.State), Started: s.instant(op.Start),
		Sentences: format.Sentences(metrics.NewVerdict(op)), Texts: takeaways(s.origin, op),
	}
	for i, v := range []string{op.Home.Service, op.Home.Environment, op.Home.Operation, op.Home.Provider, op.Home.Model} {
		if v != "" {
			d := metrics.HomeDimensions[i+1]
			f.Home = append(f.Home, navLink{Label: format.Safe(v), Title: string(d), Href: s.to("/operations", string(d), v)})
		}
	}
	from, to := edges(op)
	f.Scale = format.MS(to - from)
	for i := range op.Records {
		r := &op.Records[i]
		f.Lines = append(f.Lines, attemptLine(op, r, from, to))
		if l, ok := waitLine(op, i, from, to); ok {
			f.Lines = append(f.Lines, l)
		}
		f.Records = append(f.Records, record{recordName(r), indented(r.AppendJSON(nil))})
	}
	slices.SortStableFunc(f.Lines, func(a, b fallLine) int { return int(max(-1, min(1, a.from-b.from))) })
	return f
}

// edges are the operation's start and the last end, Unix ms.
func edges(op *metrics.Operation) (from, to int64) {
	from = op.Start.UnixMilli()
	to = from
	for i := range op.Records {
		r := &op.Records[i]
		from, to = min(from, r.StartedAt.UnixMilli()), max(to, r.EndUnixMS(), r.StartedAt.UnixMilli())
	}
	return from, to
}

func recordName(r *metrics.Record) string {
	return fmt.Sprintf("%s %d %s", r.Hop, r.Attempt.Attempt, r.Cause)
}

func attemptLine(op *metrics.Operation, r *metrics.Record, from, to int64) fallLine {
	start := r.StartedAt.UnixMilli()
	l := fallLine{
		Name: recordName(r), Result: result(r), Fate: format.Fate(r), Status: format.Null, Offset: format.MS(start - op.Start.UnixMilli()), Duration: format.Null,
		Tokens: format.Null, Cost: format.Null, Nested: op.TwoHops && r.Inner, from: start,
	}
	if r.Status.Set {
		l.Status = fmt.Sprint(r.Status.Value)
	}
	if r.DurationMS.Set {
		l.Duration = format.MS(r.DurationMS.Value)
	} else {
		l.Remark = "its end was not reported"
	}
	if r.PromptTokens.Set || r.CompletionTokens.Set {
		l.Tokens = format.Grouped(r.PromptTokens.Or(0)) + " + " + format.Grouped(r.CompletionTokens.Or(0))
	}
	if r.CostUSD.Set {
		l.Cost = r.CostUSD.Value.String()
	}
	if r.Fate == metrics.FateOrphaned {
		l.Waste = "wasted"
	}
	l.Class = barClass(r)
	l.Bar = chart.Fall(from, to, chart.Span{From: start, To: r.EndUnixMS(), Class: l.Class})
	return l
}

func barClass(r *metrics.Record) string {
	switch {
	case r.Delivery == retrylens.DeliveryFull:
		return "full"
	case r.Outcome == retrylens.OutcomeError:
		return "failed"
	}
	return "part"
}

func result(r *metrics.Record) string {
	text := string(r.Outcome)
	switch {
	case r.ErrorClass == "":
	case r.Outcome == retrylens.OutcomeError:
		text = string(r.ErrorClass)
	default:
		text += ": " + string(r.ErrorClass)
	}
	if r.ProviderErrorType != "" {
		text += " (" + format.Safe(r.ProviderErrorType) + ")"
	}
	return text
}

// waitLine is the wait between an attempt and its successor in the run.
func waitLine(op *metrics.Operation, i int, from, to int64) (fallLine, bool) {
	r, next := &op.Records[i], successor(op, i)
	if next == nil || r.Final.Value || !r.DurationMS.Set || next.StartedAt.UnixMilli() <= r.EndUnixMS() {
		return fallLine{}, false
	}
	begin, end := r.EndUnixMS(), next.StartedAt.UnixMilli()
	l := fallLine{Name: "wait", Wait: true, Nested: op.TwoHops && r.Inner, Offset: format.MS(begin - op.Start.UnixMilli()), Duration: format.MS(end - begin), from: begin}
	span := chart.Span{From: begin, To: end, Class: "hatch"}
	var words []string
	if r.DelayMS.Set {
		words = append(words, "computed "+format.MS(r.DelayMS.Value))
	}
	if r.RetryAfterMS.Set {
		span.Mark = begin + r.RetryAfterMS.Value
		words = append(words, "Retry-After asked "+format.MS(r.RetryAfterMS.Value)+", waited "+format.MS(end-begin))
	}
	if r.RetryAfterViolated {
		words = append(words, "too early")
	}
	l.Remark, l.Bar = strings.Join(words, "; "), chart.Fall(from, to, span)
	return l, true
}

// successor is the next attempt of the same hop and run that is no copy sent on purpose and
// no redelivery.
func successor(op *metrics.Operation, i int) *metrics.Record {
	r := &op.Records[i]
	for j := i + 1; j < len(op.Records); j++ {
		next := &op.Records[j]
		if next.Hop != r.Hop || next.Run() != r.Run() {
			return nil
		}
		if next.Cause != retrylens.CauseHedge && next.Cause != retrylens.CauseRedelivery {
			return next
		}
	}
	return nil
}

func indented(b []byte) string {
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return format.Safe(string(b))
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = format.Safe(lines[i])
	}
	return strings.Join(lines, "\n")
}

// takeaways are ways to ask for the operation elsewhere. They hold the id quoted for
// their language: what they say is run by people.
func takeaways(origin string, op *metrics.Operation) []copied {
	sql := fmt.Sprintf("SELECT * FROM attempts_effective WHERE tenant = %s AND logical_id = %s ORDER BY hop, attempt", sqlText(op.Tenant), sqlText(op.LogicalID))
	return []copied{
		{"c", "curl", "curl --get " + shellText(origin+apiOperation(op.LogicalID)) + " --data-urlencode " + shellText("tenant="+op.Tenant)},
		{"s", "SQL", sql},
		{"o", "command line", "analyze op " + shellText(op.LogicalID) + " --tenant " + shellText(op.Tenant)},
	}
}

// sqlText is a string of ClickHouse's SQL, everything but plain characters escaped.
func sqlText(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, c := range []byte(s) {
		if c == '\'' || c == '\\' || c < 0x20 || c >= 0x7f {
			fmt.Fprintf(&b, `\x%02x`, c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String() + "'"
}

// shellText is a word of a POSIX shell; what cannot be seen is left to bash's own escapes.
func shellText(s string) string {
	if format.Safe(s) == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		if c == '\'' || c == '\\' || c < 0x20 || c >= 0x7f {
			fmt.Fprintf(&b, `\x%02x`, c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String() + "'"
}
