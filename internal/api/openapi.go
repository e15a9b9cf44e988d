package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// The types whose JSON is made by hand say here what it looks like.

// moneyDoc stands for retrylens.Money.
type moneyDoc struct{}

// Schema of an exact amount.
func (moneyDoc) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: `^[0-9]+\.[0-9]{12}$`, Description: "An exact amount in USD with 12 decimals."}
}

// completenessDoc stands for metrics.Completeness.
type completenessDoc struct {
	RecordsMissing  *uint64              `json:"records_missing" doc:"Records that emitters counted and that never arrived; null: no record has emitter and seq."`
	CoverageRatio   *float64             `json:"coverage_ratio" doc:"Records received / records that emitters counted."`
	Emitters        []metrics.EmitterGap `json:"emitters" doc:"Those with gaps, most missing first, at most 100."`
	KnownUsageRatio *float64             `json:"known_usage_ratio" doc:"Share of the executed attempts of the report whose usage is known; null outside of a report."`
	RejectedLines   *uint64              `json:"rejected_lines"`
	DeadLetters     *uint64              `json:"dead_letters"`
	SpoolAgeMS      *int64               `json:"spool_age_ms" doc:"Age of the oldest record that an ingest service has not brought into the store yet."`
	FinaliserLagMS  *int64               `json:"finaliser_lag_ms" doc:"Age of the oldest change that the rollups do not hold yet."`
}

// reportDoc stands for metrics.Report.
type reportDoc struct{}

// Schema of a report.
func (reportDoc) Schema(r huma.Registry) *huma.Schema {
	when := &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
	return object(map[string]*huma.Schema{
		"from": when, "to": when, "as_of": {Type: huma.TypeString, Format: "date-time"},
		"group_by":       {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: dimensions()}},
		"bucket_seconds": {Type: huma.TypeInteger, Description: "Only with buckets."},
		"provisional":    {Type: huma.TypeBoolean, Description: "Figures may still change: the window reaches into the last 2 minutes before as_of, or operations are open."},
		"unknown":        {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, Description: "Figures that cannot be known for this report, null in every row; left out where there are none."},
		"completeness":   r.Schema(reflect.TypeFor[completenessDoc](), true, ""),
		"rows":           {Type: huma.TypeArray, Items: rowSchema()},
	}, "bucket_seconds", "unknown")
}

func dimensions() []any {
	var out []any
	for _, d := range metrics.Dimensions {
		out = append(out, string(d))
	}
	return out
}

// rowSchema has every dimension and every figure; which of them a row has depends on
// the question.
func rowSchema() *huma.Schema {
	props := map[string]*huma.Schema{"bucket": {Type: huma.TypeString, Format: "date-time"}}
	for _, d := range metrics.Dimensions {
		props[string(d)] = &huma.Schema{Type: huma.TypeString}
	}
	optional := []string{"bucket"}
	for _, d := range metrics.Dimensions {
		optional = append(optional, string(d))
	}
	for _, f := range metrics.Formulas {
		props[f.Name] = figureSchema(f)
		if !f.Spend {
			optional = append(optional, f.Name)
		}
	}
	return object(props, optional...)
}

func figureSchema(f metrics.Formula) *huma.Schema {
	if f.Label == "" {
		return valueSchema(f.Unit, f.Text)
	}
	s := object(map[string]*huma.Schema{})
	s.Description = f.Text + ", by " + f.Label
	for _, k := range f.Keys {
		s.Properties[k] = valueSchema(f.Unit, "")
	}
	return s
}

func valueSchema(u metrics.Unit, text string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: text}
	switch u {
	case metrics.UnitRatio:
		s.Type, s.Format, s.Nullable = huma.TypeNumber, "double", true
	case metrics.UnitUSD:
		s = moneyDoc{}.Schema(nil)
		s.Description, s.Nullable = text, true
	case metrics.UnitMS:
		s.Nullable = true
	}
	return s
}

// object has all its properties, but for the optional ones.
func object(props map[string]*huma.Schema, optional ...string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: props, AdditionalProperties: false}
	may := map[string]bool{}
	for _, name := range optional {
		may[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !may[name] {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// registry knows the types whose JSON is made by hand.
func (a *API) registry() huma.Registry {
	r := a.huma.OpenAPI().Components.Schemas
	r.RegisterTypeAlias(reflect.TypeFor[retrylens.Money](), reflect.TypeFor[moneyDoc]())
	r.RegisterTypeAlias(reflect.TypeFor[metrics.Completeness](), reflect.TypeFor[completenessDoc]())
	r.RegisterTypeAlias(reflect.TypeFor[metrics.Report](), reflect.TypeFor[reportDoc]())
	return r
}

// answers documents what a route answers with: T as JSON, files as well, a Link to the
// next page.
func answers[T any](a *API, files, link bool) map[string]*huma.Response {
	text := &huma.Schema{Type: huma.TypeString}
	ok := &huma.Response{
		Description: "The answer.",
		Content:     map[string]*huma.MediaType{typeJSON: {Schema: a.registry().Schema(reflect.TypeFor[T](), true, "")}},
		Headers:     map[string]*huma.Param{"ETag": {Schema: text, Description: "Of JSON; to be sent in If-None-Match."}},
	}
	if files {
		ok.Content[typeCSV] = &huma.MediaType{Schema: text}
		ok.Content[typeParquet] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	if link {
		ok.Headers["Link"] = &huma.Param{Schema: text, Description: `The next page, rel="next".`}
	}
	return map[string]*huma.Response{
		strconv.Itoa(http.StatusOK):          ok,
		strconv.Itoa(http.StatusNotModified): {Description: "The answer that If-None-Match names is still right."},
	}
}

func (a *API) reportAnswers() map[string]*huma.Response {
	return answers[metrics.Report](a, true, false)
}
func (a *API) seriesAnswers() map[string]*huma.Response { return answers[Series](a, true, false) }
func (a *API) listAnswers() map[string]*huma.Response   { return answers[OperationList](a, true, true) }
func (a *API) completenessAnswers() map[string]*huma.Response {
	return answers[metrics.Completeness](a, false, false)
}
func (a *API) figuresAnswers() map[string]*huma.Response { return answers[FigureList](a, false, false) }
func (a *API) statusAnswers() map[string]*huma.Response  { return answers[Status](a, false, false) }

func (a *API) operationAnswers() map[string]*huma.Response {
	m := answers[OperationDetail](a, false, false)
	m[strconv.Itoa(http.StatusNotFound)] = &huma.Response{
		Description: "There is no such operation.",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: a.registry().Schema(reflect.TypeFor[huma.ErrorModel](), true, "")}},
	}
	return m
}
