package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// ListParams are a search for operations.
type ListParams struct {
	WindowParams
	FormatParams
	ConditionalParams
	LogicalID         []string `query:"logical_id,explode" doc:"Exactly this logical id. With it, a key or a request id the window is unbounded unless from or to say otherwise."`
	IdempotencyKey    []string `query:"idempotency_key,explode" doc:"Some attempt was sent under this key."`
	ProviderRequestID []string `query:"provider_request_id,explode" doc:"Some attempt got this request id from the provider."`
	ErrorClass        []string `query:"error_class,explode" doc:"Some attempt failed with this class."`
	Outcome           []string `query:"outcome,explode" doc:"Some attempt ended with this outcome."`
	State             []string `query:"state,explode" doc:"How the operation ended: succeeded, failed, open, lost."`
	Limit             int      `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many operations a page of JSON has. CSV and Parquet hold all."`
	Cursor            string   `query:"cursor" doc:"From next_cursor, or the Link of an earlier page."`
}

// OperationList is one page of operations.
type OperationList struct {
	From         *time.Time            `json:"from"`
	To           *time.Time            `json:"to"`
	AsOf         time.Time             `json:"as_of"`
	Completeness *metrics.Completeness `json:"completeness"`
	Operations   []metrics.Summary     `json:"operations"`
	NextCursor   *string               `json:"next_cursor" doc:"null: this is the last page."`
}

func (a *API) listOperations(ctx context.Context, p *ListParams) (*answer, error) {
	s, err := a.search(ctx, p)
	if err != nil {
		return nil, err
	}
	if media := p.media(); media != typeJSON {
		notes := export.Notes(&metrics.Report{From: s.From, To: s.To, AsOf: s.AsOf, Filters: s.Filters})
		return fileAnswer(media, "operations", export.Operations(s.Pages(ctx, a.o.Source.Operations), notes)), nil
	}
	ops, err := a.o.Source.Operations(ctx, s)
	if err != nil {
		return nil, err
	}
	list := OperationList{From: instant(s.From), To: instant(s.To), AsOf: s.AsOf, Operations: make([]metrics.Summary, len(ops))}
	for i := range ops {
		list.Operations[i] = metrics.NewSummary(&ops[i])
	}
	if list.Completeness, err = a.o.Source.Completeness(ctx, s.Filters[metrics.DimTenant]...); err != nil {
		return nil, err
	}
	return p.page(&list, s, ops)
}

// page answers with a list and the way to the next one.
func (p *ListParams) page(list *OperationList, s metrics.Search, ops []metrics.Operation) (*answer, error) {
	next := ""
	if len(ops) == s.Limit {
		text := EncodeCursor(ops[len(ops)-1].Place())
		list.NextCursor = &text
		v := p.url.values
		v.Set("cursor", text)
		for _, name := range []string{query.From, query.To, query.AsOf} { // relative times would move on
			v.Del(name)
		}
		for name, values := range query.Encode(metrics.Query{From: s.From, To: s.To, AsOf: s.AsOf}) {
			v[name] = values
		}
		next = "<" + Prefix + "/operations?" + v.Encode() + `>; rel="next"`
	}
	got, err := jsonAnswer(list, p.IfNoneMatch)
	if err == nil && next != "" {
		got.headers = map[string]string{"Link": next}
	}
	return got, err
}

// search reads what is looked for.
func (a *API) search(ctx context.Context, p *ListParams) (metrics.Search, error) {
	q, err := a.parse(ctx, &p.WindowParams)
	s := metrics.Search{Query: q, LogicalIDs: p.LogicalID, IdempotencyKeys: p.IdempotencyKey, ProviderRequestIDs: p.ProviderRequestID, Limit: p.Limit}
	if p.named() {
		s.From, s.To = unbounded(p.From, s.From), unbounded(p.To, s.To)
	}
	s.ErrorClasses, err = words[retrylens.ErrorClass](err, "error_class", p.ErrorClass, retrylens.ErrorClasses)
	s.Outcomes, err = words[retrylens.Outcome](err, "outcome", p.Outcome, retrylens.Outcomes)
	s.States, err = words[metrics.State](err, "state", p.State, metrics.States)
	if s.After, err = decodeCursor(err, p.Cursor); err != nil {
		return s, err
	}
	return s, nil
}

// named tells a search for what people copy from elsewhere, with no idea of when.
func (p *ListParams) named() bool {
	return len(p.LogicalID)+len(p.IdempotencyKey)+len(p.ProviderRequestID) > 0
}

func unbounded(given string, t time.Time) time.Time {
	if given == "" {
		return time.Time{}
	}
	return t
}

// words are values of an enum; err, or it joined with what is wrong.
func words[T ~string](err error, name string, given []string, known []T) ([]T, error) {
	var out []T
	for _, v := range given {
		switch {
		case v == "":
		case slices.Contains(known, T(v)):
			out = append(out, T(v))
		default:
			err = errors.Join(err, paramError(name, v, "is not one of "+list(known)))
		}
	}
	return out, err
}

func list[T ~string](known []T) string {
	text := ""
	for i, k := range known {
		if i > 0 {
			text += ", "
		}
		text += string(k)
	}
	return text
}

// cursorJSON is a cursor inside its base64.
type cursorJSON struct {
	StartMS   int64  `json:"s"`
	Tenant    string `json:"t"`
	LogicalID string `json:"i"`
}

// EncodeCursor writes a place in a list for a URL.
func EncodeCursor(c metrics.Cursor) string {
	b, _ := json.Marshal(cursorJSON{c.Start.UnixMilli(), c.Tenant, c.LogicalID}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeCursor(err error, text string) (metrics.Cursor, error) {
	c, bad := DecodeCursor(text)
	return c, errors.Join(err, bad)
}

// DecodeCursor reads what EncodeCursor wrote; of an empty text the place before all. The
// error is a *query.ParamError.
func DecodeCursor(text string) (metrics.Cursor, error) {
	if text == "" {
		return metrics.Cursor{}, nil
	}
	var c cursorJSON
	b, bad := base64.RawURLEncoding.DecodeString(text)
	if bad == nil {
		bad = json.Unmarshal(b, &c)
	}
	if bad != nil || c.StartMS == 0 || c.LogicalID == "" {
		return metrics.Cursor{}, paramError("cursor", text, "is not from an answer of this service")
	}
	return metrics.Cursor{Start: time.UnixMilli(c.StartMS).UTC(), Tenant: c.Tenant, LogicalID: c.LogicalID}, nil
}

// GetParams name one operation.
type GetParams struct {
	ConditionalParams
	LogicalID string   `path:"logical_id" doc:"The operation's logical id, percent-encoded."`
	Tenant    []string `query:"tenant,explode" doc:"Only of this tenant; without, every tenant that has such an id."`
	AsOf      string   `query:"as_of" doc:"Ages an unfinished operation. Default: now."`
}

// OperationDetail is the JSON of one operation, or of those of several tenants with
// the same id.
type OperationDetail struct {
	AsOf       time.Time               `json:"as_of"`
	Operations []metrics.OperationJSON `json:"operations"`
}

func (a *API) getOperation(ctx context.Context, p *GetParams) (*answer, error) {
	asOf := a.now()
	if p.AsOf != "" {
		at, err := query.ParseTime(p.AsOf, asOf)
		if err != nil {
			return nil, &query.ParamError{Param: query.AsOf, Value: p.AsOf, Err: err}
		}
		asOf = at
	}
	tenants, err := Restrict(ctx, slices.DeleteFunc(p.Tenant, func(t string) bool { return t == "" }))
	if err != nil {
		return nil, err
	}
	attempts, err := a.o.Source.Attempts(ctx, p.LogicalID, tenants...)
	if err != nil {
		return nil, err
	}
	detail := OperationDetail{AsOf: asOf, Operations: []metrics.OperationJSON{}}
	for _, op := range metrics.Operations(attempts, asOf) {
		detail.Operations = append(detail.Operations, metrics.NewOperationJSON(&op))
	}
	if len(detail.Operations) == 0 {
		return nil, errNotFound
	}
	return jsonAnswer(detail, p.IfNoneMatch)
}
