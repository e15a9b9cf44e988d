package clickhouse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// giant names an operation that has too many records for the fold in SQL.
type giant struct{ tenant, logicalID string }

// foldRow is one row of a statement's result: what one group adds. It is scanned
// into again and again; what add keeps of it must be its own.
type foldRow struct {
	giant  giant
	dims   []string
	bucket int64

	metrics.Counters
	counts map[string]*uint64
	money  map[string]*decimal.Decimal
	codes  map[string]*map[int16]uint64
	costs  map[int16]decimal.Decimal // orphaned_cost_usd_by_reason

	untaxed, stopsDelivered uint64
	latency, retryTax       []uint16
	slowKeys                []uint64

	nextLossMS, lastLossMS int64 // see metrics.LossTimes; of rollups only
}

func newFoldRow() *foldRow {
	r := &foldRow{money: map[string]*decimal.Decimal{}, codes: map[string]*map[int16]uint64{}}
	c := &r.Counters
	r.counts = map[string]*uint64{
		"operations": &c.Operations, "succeeded": &c.Succeeded, "failed": &c.Failed, "open": &c.Open, "lost": &c.Lost,
		"attempts": &c.Attempts, "retries": &c.Retries, "retry_successes": &c.RetrySuccesses,
		"retried_operations": &c.RetriedOperations, "rescued": &c.Rescued, "failed_attempts": &c.FailedAttempts, "shed": &c.Shed,
		"upstream_calls": &c.UpstreamCalls, "hidden_calls": &c.HiddenCalls, "duplicates_served": &c.DuplicatesServed,
		"duplicates_refused": &c.DuplicatesRefused, "key_conflicts": &c.KeyConflicts,
		"executed_attempts": &c.ExecutedAttempts, "executed_known_usage": &c.ExecutedKnownUsage, "billed_tokens": &c.BilledTokens,
		"orphaned_attempts": &c.OrphanedAttempts, "orphaned_prompt_tokens": &c.OrphanedPromptTokens,
		"orphaned_completion_tokens": &c.OrphanedCompletionTokens, "orphan_suspects": &c.OrphanSuspects,
		"recovered_tokens": &c.RecoveredTokens, "redundant_tokens": &c.RedundantTokens,
		"layer_upstream_calls": &c.LayerUpstreamCalls, "layer_attempts": &c.LayerAttempts,
		"retry_after_violations": &c.RetryAfterViolations, "unkeyed_after_send": &c.UnkeyedAfterSend,
		"untaxed": &r.untaxed, "stops_delivered": &r.stopsDelivered,
	}
	for _, name := range []string{"billed_cost_usd", "orphaned_cost_usd", "recovered_cost_usd", "redundant_cost_usd", "rescue_cost_usd"} {
		r.money[name] = new(decimal.Decimal)
	}
	for _, name := range []string{
		"first_calls_by_cause", "errors_by_class", "stops_by_reason", "attempts_by_position", "successes_by_position",
		"orphaned_tokens_by_reason", "orphaned_tokens_by_usage_source",
	} {
		r.codes[name] = new(map[int16]uint64)
	}
	return r
}

// destinations are where the columns of a result go, by their names: giant_…
// and by_… keys, n_… figures.
func (r *foldRow) destinations(columns []string) []any {
	out := make([]any, len(columns))
	for _, name := range columns {
		if strings.HasPrefix(name, "by_") {
			r.dims = append(r.dims, "")
		}
	}
	dim := 0
	for i, name := range columns {
		switch {
		case name == "giant_tenant":
			out[i] = &r.giant.tenant
		case name == "giant_logical_id":
			out[i] = &r.giant.logicalID
		case name == "slow_keys":
			out[i] = &r.slowKeys
		case name == "bucket_start":
			out[i] = &r.bucket
		case strings.HasPrefix(name, "by_"):
			out[i] = &r.dims[dim]
			dim++
		default:
			out[i] = r.figure(strings.TrimPrefix(name, "n_"))
		}
	}
	return out
}

// scan reads the next row.
func (r *foldRow) scan(rows driver.Rows, to []any) error {
	r.Counters = metrics.Counters{}
	if err := rows.Scan(to...); err != nil {
		return err
	}
	for _, d := range r.money {
		if err := checkMoney(*d); err != nil {
			return err
		}
	}
	for _, d := range r.costs {
		if err := checkMoney(d); err != nil {
			return err
		}
	}
	return nil
}

// checkMoney refuses what is no amount: before schema 9 such settlements and prices were
// taken.
func checkMoney(d decimal.Decimal) error {
	if d.Sign() < 0 {
		return fmt.Errorf("a cost of %s USD: a settlement or a price is negative; insert it again with a higher version", d)
	}
	return nil
}

func (r *foldRow) figure(name string) any {
	switch name {
	case "next_loss_ms":
		return &r.nextLossMS
	case "last_loss_ms":
		return &r.lastLossMS
	case "latency":
		return &r.latency
	case "retry_tax":
		return &r.retryTax
	case "orphaned_cost_usd_by_reason":
		return &r.costs
	}
	if p, ok := r.counts[name]; ok {
		return p
	}
	if p, ok := r.money[name]; ok {
		return p
	}
	if p, ok := r.codes[name]; ok {
		return p
	}
	panic("clickhouse: the fold returned a column nobody asked for: " + name)
}

// key is the group that the row adds to.
func (r *foldRow) key(q metrics.Query) metrics.Key { return keyOf(q, r.dims, r.bucket) }

// keyOf is a group of a report; a bucket may start at 0, as 1970 did.
func keyOf(q metrics.Query, dims []string, bucketMS int64) metrics.Key {
	k := metrics.Key{Dims: slices.Clone(dims)}
	if q.Bucket > 0 {
		k.Bucket = time.UnixMilli(bucketMS).UTC()
	}
	return k
}

// complete fills in what the SQL leaves to be derived: amounts, words for codes
// and, for the fast statement, what follows from "one successful first attempt".
func (r *foldRow) complete(statement string) {
	c := &r.Counters
	for name, to := range map[string]*retrylens.Money{
		"billed_cost_usd": &c.BilledCostUSD, "orphaned_cost_usd": &c.OrphanedCostUSD, "recovered_cost_usd": &c.RecoveredCostUSD,
		"redundant_cost_usd": &c.RedundantCostUSD, "rescue_cost_usd": &c.RescueCostUSD,
	} {
		*to = money(*r.money[name])
	}
	if statement == "fast" {
		r.completeFast()
	}
	c.UpstreamCallsByCause = words(*r.codes["first_calls_by_cause"], retrylens.Causes)
	put(&c.UpstreamCallsByCause, string(retrylens.CauseTransport), c.HiddenCalls)
	c.ErrorsByClass = words(*r.codes["errors_by_class"], retrylens.ErrorClasses)
	c.StopsByReason = words(*r.codes["stops_by_reason"], retrylens.StopReasons)
	put(&c.StopsByReason, string(retrylens.StopDelivered), r.stopsDelivered)
	c.AttemptsByPosition = positions(*r.codes["attempts_by_position"])
	c.SuccessesByPosition = positions(*r.codes["successes_by_position"])
	c.OrphanedTokensByReason = words(*r.codes["orphaned_tokens_by_reason"], metrics.OrphanReasons)
	c.OrphanedTokensByUsageSource = words(*r.codes["orphaned_tokens_by_usage_source"], retrylens.UsageSources)
	for code, cost := range r.costs {
		if m := money(cost); !m.IsZero() {
			if c.OrphanedCostUSDByReason == nil {
				c.OrphanedCostUSDByReason = map[string]retrylens.Money{}
			}
			c.OrphanedCostUSDByReason[string(metrics.OrphanReasons[code-1])] = m
		}
	}
}

func (r *foldRow) completeFast() {
	c := &r.Counters
	n := c.Operations
	c.Succeeded, c.Attempts, c.ExecutedAttempts = n, n, n
	c.HiddenCalls = c.UpstreamCalls - n
	*r.codes["first_calls_by_cause"] = map[int16]uint64{1: n}
	*r.codes["attempts_by_position"] = map[int16]uint64{0: n}
	*r.codes["successes_by_position"] = map[int16]uint64{0: n}
}

// money converts a sum of Decimal(38,12) that checkMoney has seen.
func money(d decimal.Decimal) retrylens.Money {
	m, ok := retrylens.MoneyFromPico(d.Shift(12).BigInt())
	if !ok {
		panic("clickhouse: a sum of money that is negative or above 128 bits: " + d.String())
	}
	return m
}

// words names the codes of an enum, which are numbered from 1.
func words[T ~string](counts map[int16]uint64, values []T) map[string]uint64 {
	var out map[string]uint64
	for code, n := range counts {
		put(&out, string(values[code-1]), n)
	}
	return out
}

func positions(counts map[int16]uint64) map[string]uint64 {
	var out map[string]uint64
	for p, n := range counts {
		put(&out, strconv.Itoa(int(p)), n)
	}
	return out
}

// put adds to an entry; zero entries are never made.
func put(m *map[string]uint64, key string, n uint64) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key] += n
}
