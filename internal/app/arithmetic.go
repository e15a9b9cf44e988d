package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/arith"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/retry"
)

// ArithmeticFormats are those of `analyze simulate` and `analyze cost`.
var ArithmeticFormats = []string{"table", "json"}

// Types of arithmetic that commands set flags of.
type (
	// Share is an exact share: see ParseShare.
	Share = arith.Share
	// Layer is something that retries: see ParseLayer.
	Layer = arith.Layer
)

// Readers of values that flags and arguments take.
var (
	ParseShare   = arith.ParseShare
	ParseLayer   = arith.ParseLayer
	ParseFactors = arith.ParseFactors
	FailureNames = arith.FailureNames
)

// Output is where a result goes, and how.
type Output struct {
	Format  string // of ArithmeticFormats; "" = table
	Streams Streams
}

func (o Output) validate() error {
	if o.Format != "" && !slices.Contains(ArithmeticFormats, o.Format) {
		return usagef("--output must be one of %s, got %.40q", strings.Join(ArithmeticFormats, ", "), o.Format)
	}
	return nil
}

// write writes doc as JSON, or the table that rows are, its header first.
func (o Output) write(doc any, rows [][]string) error {
	if o.Format != "json" {
		return writeColumns(o.Streams.Out, rows)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = o.Streams.Out.Write(append(b, '\n'))
	return err
}

// writeColumns aligns the first column to the left, the others to the right.
func writeColumns(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString(cell + pad)
				continue
			}
			b.WriteString("  " + pad + cell)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// wrongNumber makes a wrong number a usage error that names its flag.
func wrongNumber(err error) error {
	var number *arith.NumberError
	if errors.As(err, &number) {
		return usagef("--%w", number)
	}
	return err
}

// parseJitters reads names of jitters; none are all of them.
func parseJitters(names []string) ([]retry.Jitter, error) {
	out := make([]retry.Jitter, 0, len(names))
	for _, name := range names {
		var j retry.Jitter
		if err := j.UnmarshalText([]byte(name)); err != nil || slices.Contains(out, j) {
			return nil, usagef("--jitter must be some of %s, each once, got %.60q", strings.Join(JitterNames(), ","), strings.Join(names, ","))
		}
		out = append(out, j)
	}
	if len(out) == 0 {
		return nil, usagef("--jitter must name at least one of %s", strings.Join(JitterNames(), ","))
	}
	return out, nil
}

// JitterNames in the order in which they are compared.
func JitterNames() []string { return []string{"none", "equal", "full", "decorrelated"} }

// StormOptions say what storm is played; start from NewStormOptions.
type StormOptions struct {
	arith.StormOptions
	Jitters []string
	Output  Output
}

// NewStormOptions are the field's example.
func NewStormOptions(s Streams) StormOptions {
	return StormOptions{StormOptions: arith.DefaultStorm(), Jitters: JitterNames(), Output: Output{Streams: s}}
}

type stormRow struct {
	Jitter        string  `json:"jitter"`
	CompletionMS  int64   `json:"completion_ms"`
	Requests      int     `json:"requests"`
	Retries       int     `json:"retries"`
	Peak          int     `json:"peak_retries"`
	Amplification float64 `json:"amplification"`
}

// Storm plays a storm of clients with each jitter.
func Storm(ctx context.Context, o StormOptions) error {
	jitters, err := parseJitters(o.Jitters)
	if err := errors.Join(o.Output.validate(), err); err != nil {
		return err
	}
	doc := []stormRow{}
	rows := [][]string{{"jitter", "last client", "requests", "retries", "peak retries", "amplification"}}
	for _, j := range jitters {
		r, err := arith.Storm(ctx, o.StormOptions, j)
		if err != nil {
			return wrongNumber(err)
		}
		doc = append(doc, stormRow{j.String(), r.Completion.Milliseconds(), r.Requests, r.Retries, r.Peak, r.Amplification})
		rows = append(rows, []string{
			j.String(), strconv.FormatFloat(r.Completion.Seconds(), 'f', 1, 64) + " s",
			format.Grouped(r.Requests), format.Grouped(r.Retries), format.Grouped(r.Peak), format.Times(r.Amplification),
		})
	}
	return o.Output.write(map[string]any{"rows": doc}, rows)
}

// OutageOptions say what policy meets what outage; start from NewOutageOptions.
// What is set of the knobs takes the place of the preset's.
type OutageOptions struct {
	arith.OutageOptions // without Policy

	Preset          string // interactive or batch
	Attempts        retrylens.Opt[int]
	Base            retrylens.Opt[time.Duration]
	Cap             retrylens.Opt[time.Duration]
	WallClockBudget retrylens.Opt[time.Duration]
	AttemptTimeout  retrylens.Opt[time.Duration]
	NoBreaker       bool

	FailureName string
	Jitters     []string
	Output      Output
}

// Presets are the names of the policies.
var Presets = []string{"interactive", "batch"}

// NewOutageOptions are an example that shows what there is to see.
func NewOutageOptions(s Streams) OutageOptions {
	o := OutageOptions{OutageOptions: arith.DefaultOutage(), Preset: Presets[0], Jitters: JitterNames(), Output: Output{Streams: s}}
	o.FailureName = string(o.Failure)
	return o
}

// settle puts the knobs into the policy.
func (o *OutageOptions) settle() error {
	switch o.Preset {
	case "interactive":
		o.Policy = retry.Interactive()
	case "batch":
		o.Policy = retry.Batch()
	default:
		return usagef("--policy must be one of %s, got %.40q", strings.Join(Presets, ", "), o.Preset)
	}
	p := &o.Policy
	p.Attempts = o.Attempts.Or(p.Attempts)
	p.Base, p.Cap = o.Base.Or(p.Base), o.Cap.Or(p.Cap)
	p.WallClockBudget = o.WallClockBudget.Or(p.WallClockBudget)
	p.AttemptTimeout = o.AttemptTimeout.Or(p.AttemptTimeout)
	if o.NoBreaker {
		o.Limits.Breaker.MinSamples = 1 << 30 // more than there can be
	}
	o.Failure = retrylens.ErrorClass(o.FailureName)
	return nil
}

type outageRow struct {
	Jitter         string                       `json:"jitter"`
	RetryAfter     *string                      `json:"retry_after"` // null: nobody asked
	Operations     int                          `json:"operations"`
	Failed         int                          `json:"failed_operations"`
	StopReasons    map[retrylens.StopReason]int `json:"failed_by_stop_reason"`
	Calls          int                          `json:"calls"`
	PeakCalls      int                          `json:"peak_calls_per_second"`
	Amplification  *float64                     `json:"amplification"`
	Completion     completion                   `json:"completion_ms"`
	LastMS         int64                        `json:"last_operation_ms"`
	Tokens         uint64                       `json:"tokens"`
	OrphanedTokens uint64                       `json:"orphaned_tokens"`
	USD            retrylens.Money              `json:"cost_usd"`
}

// completion times of the delivered operations, null without any.
type completion struct {
	P50 *int64 `json:"p50"`
	P99 *int64 `json:"p99"`
}

// SimulateOutage plays an outage with each variant of a policy.
func SimulateOutage(ctx context.Context, o OutageOptions) error {
	jitters, err := parseJitters(o.Jitters)
	if err := errors.Join(o.Output.validate(), err); err != nil {
		return err
	}
	if err := o.settle(); err != nil {
		return err
	}
	doc := []outageRow{}
	rows := [][]string{{"jitter", "Retry-After", "operations", "failed", "calls", "amplification", "peak/s", "p50", "p99", "tokens", "orphaned", "USD"}}
	for _, v := range o.Variants(jitters) {
		r, err := arith.Outage(ctx, o.OutageOptions, v)
		if err != nil {
			return wrongNumber(err)
		}
		row := newOutageRow(r)
		doc, rows = append(doc, row), append(rows, row.cells())
	}
	return o.Output.write(map[string]any{"rows": doc}, rows)
}

func newOutageRow(r arith.OutageResult) outageRow {
	row := outageRow{
		Jitter: r.Jitter.String(), Operations: r.Operations, Failed: r.Failed, StopReasons: r.StopReasons,
		Calls: r.Calls, PeakCalls: r.PeakCalls, LastMS: r.LastAt.Milliseconds(),
		Tokens: r.Tokens, OrphanedTokens: r.OrphanedTokens, USD: r.USD,
	}
	if r.Asked {
		mode := r.Mode.String()
		row.RetryAfter = &mode
	}
	if r.Operations > 0 {
		row.Amplification = &r.Amplification
	}
	if r.Delivered > 0 {
		p50, p99 := r.P50.Milliseconds(), r.P99.Milliseconds()
		row.Completion = completion{&p50, &p99}
	}
	return row
}

func (r outageRow) cells() []string {
	return []string{
		r.Jitter, orNull(r.RetryAfter, func(s string) string { return s }), format.Grouped(r.Operations), format.Grouped(r.Failed), format.Grouped(r.Calls),
		orNull(r.Amplification, format.Times), format.Grouped(r.PeakCalls), orNull(r.Completion.P50, format.MS), orNull(r.Completion.P99, format.MS),
		format.Grouped(r.Tokens), format.Grouped(r.OrphanedTokens), format.USD(r.USD),
	}
}

func orNull[T any](v *T, write func(T) string) string {
	if v == nil {
		return format.Null
	}
	return write(*v)
}

// TimeoutCostOptions say what timed-out requests are reckoned.
type TimeoutCostOptions struct {
	arith.TimeoutOptions
	Output Output
}

// NewTimeoutCostOptions are the field's example.
func NewTimeoutCostOptions(s Streams) TimeoutCostOptions {
	return TimeoutCostOptions{TimeoutOptions: arith.DefaultTimeout(), Output: Output{Streams: s}}
}

// TimeoutCost reckons what retries after a timeout cost.
func TimeoutCost(o TimeoutCostOptions) error {
	if err := o.Output.validate(); err != nil {
		return err
	}
	c, err := arith.Timeout(o.TimeoutOptions)
	if err != nil {
		return wrongNumber(err)
	}
	return o.Output.write(c, [][]string{
		{"retries a day", format.Grouped(c.RetriesADay)},
		{"tokens a day", format.Grouped(c.TokensADay)},
		{"USD a call", usdExact(c.CallUSD)},
		{"USD a day", usdExact(c.DayUSD)},
		{fmt.Sprintf("USD in %d days", o.Days), usdExact(c.MonthUSD)},
	})
}

// HedgeCostOptions say what hedging is reckoned.
type HedgeCostOptions struct {
	arith.HedgeOptions
	Output Output
}

// NewHedgeCostOptions are the field's example.
func NewHedgeCostOptions(s Streams) HedgeCostOptions {
	return HedgeCostOptions{HedgeOptions: arith.DefaultHedge(), Output: Output{Streams: s}}
}

// HedgeCost reckons what hedging costs at most.
func HedgeCost(o HedgeCostOptions) error {
	if err := o.Output.validate(); err != nil {
		return err
	}
	c, err := arith.Hedge(o.HedgeOptions)
	if err != nil {
		return wrongNumber(err)
	}
	return o.Output.write(c, [][]string{
		{"second copies, up to", format.Grouped(c.Copies)},
		{"generations, up to", format.Grouped(c.Generations)},
		{"extra tokens, up to", format.Grouped(c.ExtraTokens)},
		{"extra USD, up to", usdExact(c.ExtraUSD)},
		{"USD in all, up to", usdExact(c.TotalUSD)},
	})
}

// usdExact writes all decimals that are there, at least two.
func usdExact(m retrylens.Money) string {
	whole, fraction, _ := strings.Cut(m.String(), ".")
	fraction = fraction[:2] + strings.TrimRight(fraction[2:], "0")
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return whole + "." + fraction
	}
	return format.Grouped(n) + "." + fraction
}

// LayerOptions say which layers retry, the outermost first: those with names, then
// the factors.
type LayerOptions struct {
	Layers  []Layer
	Factors []string // see ParseFactors
	Output  Output
}

// DefaultLayers are three attempts above four, the field's example.
const DefaultLayers = "3x4"

// LayerCost multiplies the attempts of layers.
func LayerCost(o LayerOptions) error {
	if err := o.Output.validate(); err != nil {
		return err
	}
	layers := slices.Clone(o.Layers)
	if len(layers) == 0 && len(o.Factors) == 0 {
		o.Factors = []string{DefaultLayers}
	}
	for _, f := range o.Factors {
		more, err := ParseFactors(f)
		if err != nil {
			return &UsageError{Err: err}
		}
		layers = append(layers, more...)
	}
	out, err := arith.Layers(layers)
	if err != nil {
		return &UsageError{Err: err}
	}
	worst := out[len(out)-1].Calls
	rows := [][]string{{"layer", "attempts", "calls under it"}}
	for _, l := range out {
		rows = append(rows, []string{format.Safe(l.Name), format.Grouped(l.Attempts), format.Grouped(l.Calls)})
	}
	rows = append(rows, []string{"worst case", "", format.Grouped(worst)})
	return o.Output.write(map[string]any{"layers": out, "worst_case_calls": worst}, rows)
}
