package web

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

const (
	operationsPage = 50
	operationsPath = "/operations"
)

// operationsBody is one page of the log of operations.
type operationsBody struct {
	Form      []field
	Hidden    []param
	Table     *table
	Next      string // "" = the last page
	First     string // the first page, "" = this is it
	Wider     []navLink
	Culprit   string // what emptied the list
	Unbounded bool
}

type field struct {
	Name, Label, Value string
	Choices            []string
}

func (u *UI) operations(ctx context.Context, s *state) (any, error) {
	search, err := s.search()
	if err != nil {
		return nil, err
	}
	ops, err := u.o.Source.Operations(ctx, search)
	if err != nil {
		return nil, err
	}
	b := &operationsBody{Form: s.fields(), Hidden: s.outside(searchParams), Table: operationTable(s, ops), Unbounded: search.From.IsZero()}
	if len(ops) == search.Limit {
		b.Next = s.page(api.EncodeCursor(ops[len(ops)-1].Place()))
	}
	if s.values.Get(paramCursor) != "" {
		b.First = s.with(paramCursor, "")
	}
	if len(ops) == 0 {
		b.Culprit, b.Wider = u.emptied(ctx, s, search), wider(s)
	}
	return b, nil
}

// search is what the URL looks for. Errors are *query.ParamError, joined.
func (s *state) search() (metrics.Search, error) {
	q := s.query
	q.GroupBy, q.Bucket = nil, 0
	out := metrics.Search{Query: q, Limit: operationsPage, LogicalIDs: s.values["logical_id"], IdempotencyKeys: s.values["idempotency_key"], ProviderRequestIDs: s.values["provider_request_id"]}
	if s.named() {
		if s.values.Get(query.From) == "" {
			out.From = time.Time{}
		}
		if s.values.Get(query.To) == "" {
			out.To = time.Time{}
		}
	}
	var errs [4]error
	out.ErrorClasses, errs[0] = words(s, "error_class", retrylens.ErrorClasses)
	out.Outcomes, errs[1] = words(s, "outcome", retrylens.Outcomes)
	out.States, errs[2] = words(s, "state", metrics.States)
	out.After, errs[3] = api.DecodeCursor(s.values.Get(paramCursor))
	return out, errors.Join(errs[:]...)
}

func words[T ~string](s *state, name string, known []T) ([]T, error) {
	var out []T
	for _, v := range s.values[name] {
		if !slices.Contains(known, T(v)) {
			return nil, &query.ParamError{Param: name, Value: v, Err: errors.New("is not one of those that can be chosen")}
		}
		out = append(out, T(v))
	}
	return out, nil
}

// page is the address of the list from a place on; its times are absolute, as in the API.
func (s *state) page(cursor string) string {
	next := *s
	next.values = cloned(s.values)
	next.values.Set(paramCursor, cursor)
	next.values.Del(paramRefresh)
	return next.frozen()
}

func (s *state) fields() []field {
	return []field{
		{Name: "logical_id", Label: "logical id", Value: s.values.Get("logical_id")},
		{Name: "idempotency_key", Label: "idempotency key", Value: s.values.Get("idempotency_key")},
		{Name: "provider_request_id", Label: "provider request id", Value: s.values.Get("provider_request_id")},
		{Name: "error_class", Label: "error class", Value: s.values.Get("error_class"), Choices: texts(retrylens.ErrorClasses)},
		{Name: "outcome", Label: "outcome", Value: s.values.Get("outcome"), Choices: texts(retrylens.Outcomes)},
		{Name: "state", Label: "state", Value: s.values.Get("state"), Choices: texts(metrics.States)},
	}
}

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// outside are the parameters that a form of some others must carry along.
func (s *state) outside(names []string) []param {
	var out []param
	for name, values := range s.values {
		if slices.Contains(names, name) || name == paramCursor {
			continue
		}
		for _, v := range values {
			out = append(out, param{name, v})
		}
	}
	slices.SortFunc(out, func(a, b param) int {
		if a.Name != b.Name {
			return compareText(a.Name, b.Name)
		}
		return compareText(a.Value, b.Value)
	})
	return out
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// dots are ids that a browser takes out of a path: such an operation's page has its id as a parameter.
func dots(id string) bool { return id == "." || id == ".." }

// opPath is the page of operations whose ids are dots.
const opPath = "/op"

// op is a link to the page of an operation.
func (s *state) op(id string, pairs ...string) string {
	if dots(id) {
		return s.to(opPath, append(pairs, "logical_id", id)...)
	}
	return s.to(opPath+"/"+url.PathEscape(id), pairs...)
}

func operationTable(s *state, ops []metrics.Operation) *table {
	t := &table{Caption: "Operations, the latest first", Empty: "No operation matches.", Columns: []column{
		{Label: "started (" + s.zoneName() + ")"}, {Label: "logical id"}, {Label: "state"}, {Label: "attempts", Num: true}, {Label: "calls", Num: true, Title: "upstream calls"},
		{Label: "class", Title: "error class of the last attempt that has one"}, {Label: "provider"}, {Label: "model"}, {Label: "latency", Num: true}, {Label: "tokens", Num: true, Title: "billed: a lower bound"},
		{Label: "USD", Num: true, Title: "billed: a lower bound"}, {Label: "orphaned USD", Num: true}, {Label: "key"}, {Label: "provider request id"}, {Label: "tenant"},
	}}
	for i := range ops {
		sum := metrics.NewSummary(&ops[i])
		t.Rows = append(t.Rows, operationRow(s, &sum))
	}
	return t
}

func operationRow(s *state, sum *metrics.Summary) row {
	href := s.op(sum.LogicalID, string(metrics.DimTenant), sum.Tenant)
	stateText := string(sum.State)
	if sum.Rescued {
		stateText += ", rescued"
	}
	if sum.DuplicatesServed > 0 {
		stateText += ", replayed"
	}
	latency := cell{Text: format.Null, Class: "null"}
	if sum.LatencyMS != nil {
		latency = cell{Text: format.MS(*sum.LatencyMS), Title: format.Grouped(*sum.LatencyMS) + " ms"}
	}
	id := textCell(sum.LogicalID)
	id.Href, id.Class = href, "id name"
	return row{Href: href, Cells: []cell{
		{Text: s.instant(sum.StartedAt)}, id, {Text: stateText, Class: stateClass(sum.State)}, {Text: format.Grouped(sum.Attempts)}, {Text: format.Grouped(sum.UpstreamCalls)},
		{Text: format.Safe(string(sum.ErrorClass))}, named(sum.Provider), named(sum.Model), latency, {Text: format.Grouped(sum.BilledTokens)},
		{Text: sum.BilledCostUSD.String()}, {Text: sum.OrphanedCostUSD.String()}, named(sum.IdempotencyKey), named(sum.ProviderRequestID), named(sum.Tenant),
	}}
}

// named is foreign text that may be long, "" shown as nothing.
func named(text string) cell {
	safe := format.Safe(text)
	return cell{Text: safe, Title: safe, Class: "name"}
}

func stateClass(st metrics.State) string {
	switch st {
	case metrics.StateSucceeded:
		return "good"
	case metrics.StateFailed, metrics.StateLost:
		return "bad"
	}
	return ""
}

// instant is a time with its milliseconds.
func (s *state) instant(t time.Time) string {
	return t.In(s.zone).Format("2006-01-02T15:04:05.000Z07:00")
}

// wider are longer windows for a page that found nothing.
func wider(s *state) []navLink {
	var out []navLink
	for _, w := range windows {
		if d, err := query.ParseDuration(w.from[len("now-"):]); err == nil && (d > s.now.Sub(s.query.From)) {
			out = append(out, navLink{Label: w.label, Href: s.with(query.From, w.from, query.To, "now", query.AsOf, "")})
		}
	}
	return out
}

// culprit names the filter that emptied a page about reports, "" if none did.
func (u *UI) culprit(ctx context.Context, s *state) string {
	report := *s
	report.values = cloned(s.values)
	for _, name := range append([]string{paramCursor}, searchParams...) { // no report is searched by these
		report.values.Del(name)
	}
	search, err := report.search()
	if err != nil {
		return ""
	}
	return u.emptied(ctx, &report, search)
}

// emptied names the first filter without which something would be found, "" if the window
// itself is empty.
func (u *UI) emptied(ctx context.Context, s *state, search metrics.Search) string {
	for _, name := range s.filtering() {
		less := *s
		less.values = cloned(s.values)
		less.values.Del(name)
		less.query.Filters = cloneFilters(s.query.Filters)
		delete(less.query.Filters, metrics.Dimension(name))
		if tenants, err := api.Restrict(ctx, less.query.Filters[metrics.DimTenant]); err == nil && len(tenants) > 0 {
			less.query.Filters[metrics.DimTenant] = tenants
		}
		without, err := less.search()
		without.From, without.To, without.Limit = search.From, search.To, 1
		if err != nil {
			continue
		}
		if ops, err := u.o.Source.Operations(ctx, without); err == nil && len(ops) > 0 {
			return name
		}
	}
	return ""
}

// filtering are the parameters that leave operations out.
func (s *state) filtering() []string {
	var out []string
	for _, name := range searchParams {
		if len(s.values[name]) > 0 {
			out = append(out, name)
		}
	}
	for _, d := range metrics.HomeDimensions {
		if len(s.asked[d]) > 0 {
			out = append(out, string(d))
		}
	}
	return out
}
