package clickhouse

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

//go:embed fold.sql.tmpl
var foldTemplates embed.FS

// maxRecords is the size from which an operation is folded by the reference
// fold instead of in SQL: lambdas over arrays copy what they capture, so their
// cost is quadratic in the records of one operation.
const maxRecords = 64

// doublings are enough pointer-doubling steps for a chain of maxRecords.
const doublings = 6

// The codes of an executed attempt's fate in SQL; 0 = not executed. Undelivered
// ones come last.
var fates = map[metrics.Fate]int{
	metrics.FateDelivered: 1, metrics.FateRedundant: 2, metrics.FateRecovered: 3,
	metrics.FateOrphaned: 4, metrics.FateUnspent: 5, metrics.FateSuspect: 6,
}

// gatewayIdentity is added to the ordinal of a gateway record, so that one
// integer stands for hop and attempt; a multiple of 100, so that runs (attempt
// div 100) stay whole.
const gatewayIdentity = 1_000_000_000_000

// never is later than any time of a record, in Unix milliseconds.
const never = 1 << 60

// recordField is one element of the tuple that stands for a row in SQL. What was
// not reported is -1.
type recordField struct{ Name, SQL string }

// recordFields are in sorting order first: hop and attempt, the highest version
// first; then as they come.
var recordFields = []recordField{
	{"identity", fmt.Sprintf("toInt64(attempt) + if(hop = 'gateway', %d, 0)", gatewayIdentity)},
	{"oldness", "bitNot(version)"},
	{"operation_start", "toUnixTimestamp64Milli(operation_started_at)"},
	{"started", "toUnixTimestamp64Milli(started_at)"},
	{"duration", "ifNull(toInt64(duration_ms), -1)"},
	{"outcome", "toInt16(outcome)"},
	{"full", "delivery = 'full'"},
	{"calls", "toUInt64(upstream_calls)"},
	{"cause", "toInt16(cause)"},
	{"class", "toInt16(error_class)"},
	{"retry_after", "ifNull(toInt64(retry_after_ms), -1)"},
	{"final", "final"},
	{"stop", "toInt16(stop_reason)"},
	{"keyed", "idempotency_key != ''"},
	{"served_by", "ifNull(toInt64(served_by), -1)"},
	{"replay_of", "ifNull(toInt64(replay_of), -1)"},
	{"prompt", "ifNull(toInt64(prompt_tokens), -1)"},
	{"completion", "ifNull(toInt64(completion_tokens), -1)"},
	{"usage_source", "toInt16(usage_source)"},
	{"cost", "ifNull(cost_usd, toDecimal128(-1, 12))"},
	{"service", "service"},
	{"environment", "environment"},
	{"operation", "operation"},
	{"provider", "provider"},
	{"model", "model"},
}

// refused are the classes that a provider refuses before it generates anything.
var refused = []retrylens.ErrorClass{
	retrylens.ClassRateLimited, retrylens.ClassQuotaExhausted, retrylens.ClassOverloaded, retrylens.ClassAuth,
	retrylens.ClassPermission, retrylens.ClassNotFound, retrylens.ClassInvalidRequest, retrylens.ClassPayloadTooLarge,
	retrylens.ClassContextLength, retrylens.ClassConflict,
}

// code is the number of an enum value in storage.
func code[T comparable](values []T, v T) int {
	i := slices.Index(values, v)
	if i < 0 {
		panic(fmt.Sprintf("clickhouse: no enum value %v", v))
	}
	return i + 1
}

func codes[T comparable](values, of []T) string {
	out := make([]string, len(of))
	for i, v := range of {
		out[i] = strconv.Itoa(code(values, v))
	}
	return strings.Join(out, ", ")
}

// orphanReasonSQL numbers the reasons from 1 in the order of
// metrics.OrphanReasons.
func orphanReasonSQL() string {
	reason := func(r metrics.OrphanReason) int { return code(metrics.OrphanReasons, r) }
	outcome := func(o retrylens.Outcome) int { return code(retrylens.Outcomes, o) }
	return fmt.Sprintf("toInt16(multiIf(outcome = %d, %d, outcome = %d, %d, outcome = %d, %d, full, %d, class = %d, %d, class IN (%s), %d, %d))",
		outcome(retrylens.OutcomeHedgeLost), reason(metrics.OrphanHedgeLost),
		outcome(retrylens.OutcomeInterrupted), reason(metrics.OrphanInterrupted),
		outcome(retrylens.OutcomeAbandoned), reason(metrics.OrphanAbandoned),
		reason(metrics.OrphanLostReply),
		code(retrylens.ErrorClasses, retrylens.ClassTimeout), reason(metrics.OrphanTimeout),
		codes(retrylens.ErrorClasses, []retrylens.ErrorClass{retrylens.ClassContentFilter, retrylens.ClassRefusal, retrylens.ClassEmptyResponse}),
		reason(metrics.OrphanRejectedOutput), reason(metrics.OrphanError))
}

// element is a field of a record's tuple, or of an array of them.
func element(records, field string) string {
	i := slices.IndexFunc(recordFields, func(f recordField) bool { return f.Name == field })
	if i < 0 {
		panic("clickhouse: no record field " + field)
	}
	return fmt.Sprintf("tupleElement(%s, %d)", records, i+1)
}

var foldFuncs = template.FuncMap{
	"all":     func(field string) string { return element("records", field) },
	"of":      element,
	"fate":    func(f metrics.Fate) int { return fates[f] },
	"outcome": func(v retrylens.Outcome) int { return code(retrylens.Outcomes, v) },
	"cause":   func(v retrylens.Cause) int { return code(retrylens.Causes, v) },
}

var foldSQL = template.Must(template.New("fold").Funcs(foldFuncs).ParseFS(foldTemplates, "fold.sql.tmpl"))

// column is a grouping column or a filter: its name, and what it is in the fast
// and in the slow statement.
type column struct{ Name, Fast, Slow string }

// foldShape is what the text of the fold depends on: never on a value, these go
// as parameters.
type foldShape struct {
	Database        string
	Tenants         bool
	Filters, Keys   []column
	Dimensions      []string // those that keys and filters use
	HomeNames       []string
	Fields          []recordField
	MaxRecords      int
	GatewayIdentity int
	Never           int
	Refused         string
	OrphanReason    string
	Doublings       int
	StopDelivered   int
	Losses          bool // the slow statement tells metrics.LossTimes
}

func newFoldShape(database string, q metrics.Query) foldShape {
	s := foldShape{
		Database: database, Tenants: len(q.Filters[metrics.DimTenant]) > 0,
		HomeNames: []string{"service", "environment", "operation", "provider", "model"},
		Fields:    recordFields, MaxRecords: maxRecords, GatewayIdentity: gatewayIdentity, Never: never,
		Refused: codes(retrylens.ErrorClasses, refused), OrphanReason: orphanReasonSQL(), Doublings: doublings,
		StopDelivered: code(retrylens.StopReasons, retrylens.StopDelivered),
	}
	for _, d := range metrics.Dimensions {
		if len(q.Filters[d]) > 0 {
			s.Filters = append(s.Filters, filterColumn(d))
			s.use(d)
		}
	}
	for _, d := range q.GroupBy {
		s.Keys = append(s.Keys, keyColumn(d))
		s.use(d)
	}
	if q.Bucket > 0 {
		const start = "intDiv(start, {bucket:Int64}) * {bucket:Int64}"
		s.Keys = append(s.Keys, column{"bucket_start", start, start})
	}
	return s
}

// use has the fast statement carry the table's column of a dimension.
func (s *foldShape) use(d metrics.Dimension) {
	if c := tableColumn(d); !slices.Contains(s.Dimensions, c) {
		s.Dimensions = append(s.Dimensions, c)
	}
}

// tableColumn is the column that holds a dimension of one record.
func tableColumn(d metrics.Dimension) string {
	switch d {
	case metrics.DimExecutedProvider:
		return "provider"
	case metrics.DimExecutedModel:
		return "model"
	}
	return string(d)
}

// filterColumn is evaluated where the fields of an operation are still arrays.
func filterColumn(d metrics.Dimension) column {
	if d == metrics.DimTenant {
		return column{string(d), "any_tenant", "tenant"}
	}
	return column{string(d), "any_" + string(d), element("records[home]", string(d))}
}

func keyColumn(d metrics.Dimension) column {
	name := "by_" + string(d)
	switch d {
	case metrics.DimTenant:
		return column{name, "any_tenant", "tenant"}
	case metrics.DimExecutedProvider, metrics.DimExecutedModel:
		return column{name, "any_" + tableColumn(d), string(d)}
	}
	return column{name, "any_" + string(d), "home_" + string(d)}
}

// render returns one statement of the fold: fast, slow or spend.
func (s foldShape) render(statement string) (string, error) {
	var b strings.Builder
	if err := foldSQL.ExecuteTemplate(&b, statement, s); err != nil {
		return "", fmt.Errorf("clickhouse: render %s: %w", statement, err)
	}
	return strings.TrimSpace(b.String()), nil
}
