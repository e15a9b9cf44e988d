package rollup

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Figure is one column of a rollup: a counter of [metrics.Counters], or one
// entry of a map of them, as name_key.
type Figure struct {
	Name  string // column, the figure's own word
	Spend bool   // of executed attempts: also kept by what was executed

	count func(*metrics.Counters) *uint64
	words func(*metrics.Counters) *map[string]uint64
	money func(*metrics.Counters) *retrylens.Money
	costs func(*metrics.Counters) *map[string]retrylens.Money
	key   string // of words and costs
}

// Money tells whether the column holds exact USD, Decimal(38, 12), instead of a
// count.
func (f *Figure) Money() bool { return f.money != nil || f.costs != nil }

// Count is the figure's value in c; for those that are not money.
func (f *Figure) Count(c *metrics.Counters) uint64 {
	if f.count != nil {
		return *f.count(c)
	}
	return (*f.words(c))[f.key]
}

// Cost is the figure's value in c; for money.
func (f *Figure) Cost(c *metrics.Counters) retrylens.Money {
	if f.money != nil {
		return *f.money(c)
	}
	return (*f.costs(c))[f.key]
}

// SetCount puts a count into c, which must not hold that figure yet.
func (f *Figure) SetCount(c *metrics.Counters, n uint64) {
	if f.count != nil {
		*f.count(c) = n
		return
	}
	if n == 0 {
		return
	}
	m := f.words(c)
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[f.key] = n
}

// SetCost puts an amount of pico-dollars into c; false if it is negative or above
// 128 bits.
func (f *Figure) SetCost(c *metrics.Counters, pico *big.Int) bool {
	v, ok := retrylens.MoneyFromPico(pico)
	if f.money != nil {
		*f.money(c) = v
		return ok
	}
	if v.IsZero() {
		return ok
	}
	m := f.costs(c)
	if *m == nil {
		*m = map[string]retrylens.Money{}
	}
	(*m)[f.key] = v
	return ok
}

// Figures are the columns of a rollup in their order.
var Figures = figures()

// Needed are the figures of counters by their columns' names, of maps without the key, in their order, and those
// without which no group is told; without names all. It returns an error that names what is no
// counter.
func Needed(names []string) ([]Figure, error) {
	if len(names) == 0 {
		return Figures, nil
	}
	wanted := map[string]bool{}
	for _, name := range append([]string{"operations", "open", "key_conflicts", "executed_attempts", "executed_known_usage"}, names...) {
		wanted[name] = false
	}
	var out []Figure
	for _, f := range Figures {
		name := strings.TrimSuffix(f.Name, "_"+f.key)
		if f.key == "" {
			name = f.Name
		}
		if _, ok := wanted[name]; ok {
			wanted[name] = true
			out = append(out, f)
		}
	}
	for _, name := range names {
		if !wanted[name] {
			return nil, fmt.Errorf("there is no counter %.40q", name)
		}
	}
	return out, nil
}

// Keep leaves those figures of c, and zero for others.
func Keep(c *metrics.Counters, figures []Figure) (kept metrics.Counters) {
	for i := range figures {
		f := &figures[i]
		switch {
		case f.count != nil:
			*f.count(&kept) = *f.count(c)
		case f.money != nil:
			*f.money(&kept) = *f.money(c)
		case f.words != nil:
			f.SetCount(&kept, f.Count(c))
		default:
			if v := f.Cost(c); !v.IsZero() {
				m := f.costs(&kept)
				if *m == nil {
					*m = map[string]retrylens.Money{}
				}
				(*m)[f.key] = v
			}
		}
	}
	return kept
}

type counters = metrics.Counters

func figures() []Figure {
	out := append(operationFigures(), spentFigures()...)
	out = append(out, byWord("upstream_calls_by_cause", retrylens.Causes, func(c *counters) *map[string]uint64 { return &c.UpstreamCallsByCause })...)
	out = append(out, byWord("errors_by_class", retrylens.ErrorClasses, func(c *counters) *map[string]uint64 { return &c.ErrorsByClass })...)
	out = append(out, byWord("stops_by_reason", retrylens.StopReasons, func(c *counters) *map[string]uint64 { return &c.StopsByReason })...)
	out = append(out, byWord("attempts_by_position", positions(), func(c *counters) *map[string]uint64 { return &c.AttemptsByPosition })...)
	out = append(out, byWord("successes_by_position", positions(), func(c *counters) *map[string]uint64 { return &c.SuccessesByPosition })...)
	return out
}

func count(name string, get func(*counters) *uint64) Figure { return Figure{Name: name, count: get} }

func cost(name string, get func(*counters) *retrylens.Money) Figure {
	return Figure{Name: name, money: get}
}

func operationFigures() []Figure {
	return []Figure{
		count("operations", func(c *counters) *uint64 { return &c.Operations }),
		count("succeeded", func(c *counters) *uint64 { return &c.Succeeded }),
		count("failed", func(c *counters) *uint64 { return &c.Failed }),
		count("open", func(c *counters) *uint64 { return &c.Open }),
		count("lost", func(c *counters) *uint64 { return &c.Lost }),
		count("attempts", func(c *counters) *uint64 { return &c.Attempts }),
		count("retries", func(c *counters) *uint64 { return &c.Retries }),
		count("retry_successes", func(c *counters) *uint64 { return &c.RetrySuccesses }),
		count("retried_operations", func(c *counters) *uint64 { return &c.RetriedOperations }),
		count("rescued", func(c *counters) *uint64 { return &c.Rescued }),
		count("failed_attempts", func(c *counters) *uint64 { return &c.FailedAttempts }),
		count("shed", func(c *counters) *uint64 { return &c.Shed }),
		count("upstream_calls", func(c *counters) *uint64 { return &c.UpstreamCalls }),
		count("hidden_calls", func(c *counters) *uint64 { return &c.HiddenCalls }),
		count("duplicates_served", func(c *counters) *uint64 { return &c.DuplicatesServed }),
		count("duplicates_refused", func(c *counters) *uint64 { return &c.DuplicatesRefused }),
		count("key_conflicts", func(c *counters) *uint64 { return &c.KeyConflicts }),
		count("layer_upstream_calls", func(c *counters) *uint64 { return &c.LayerUpstreamCalls }),
		count("layer_attempts", func(c *counters) *uint64 { return &c.LayerAttempts }),
		count("retry_after_violations", func(c *counters) *uint64 { return &c.RetryAfterViolations }),
		count("unkeyed_after_send", func(c *counters) *uint64 { return &c.UnkeyedAfterSend }),
		cost("rescue_cost_usd", func(c *counters) *retrylens.Money { return &c.RescueCostUSD }),
	}
}

// spentFigures must be those that [metrics.Counters.SpendOnly] keeps.
func spentFigures() []Figure {
	out := []Figure{
		count("executed_attempts", func(c *counters) *uint64 { return &c.ExecutedAttempts }),
		count("executed_known_usage", func(c *counters) *uint64 { return &c.ExecutedKnownUsage }),
		count("billed_tokens", func(c *counters) *uint64 { return &c.BilledTokens }),
		cost("billed_cost_usd", func(c *counters) *retrylens.Money { return &c.BilledCostUSD }),
		count("orphaned_attempts", func(c *counters) *uint64 { return &c.OrphanedAttempts }),
		count("orphaned_prompt_tokens", func(c *counters) *uint64 { return &c.OrphanedPromptTokens }),
		count("orphaned_completion_tokens", func(c *counters) *uint64 { return &c.OrphanedCompletionTokens }),
		cost("orphaned_cost_usd", func(c *counters) *retrylens.Money { return &c.OrphanedCostUSD }),
		count("orphan_suspects", func(c *counters) *uint64 { return &c.OrphanSuspects }),
		count("recovered_tokens", func(c *counters) *uint64 { return &c.RecoveredTokens }),
		cost("recovered_cost_usd", func(c *counters) *retrylens.Money { return &c.RecoveredCostUSD }),
		count("redundant_tokens", func(c *counters) *uint64 { return &c.RedundantTokens }),
		cost("redundant_cost_usd", func(c *counters) *retrylens.Money { return &c.RedundantCostUSD }),
	}
	out = append(out, byWord("orphaned_tokens_by_reason", metrics.OrphanReasons, func(c *counters) *map[string]uint64 { return &c.OrphanedTokensByReason })...)
	out = append(out, byWord("orphaned_tokens_by_usage_source", retrylens.UsageSources, func(c *counters) *map[string]uint64 { return &c.OrphanedTokensByUsageSource })...)
	for _, r := range metrics.OrphanReasons {
		out = append(out, Figure{
			Name: "orphaned_cost_usd_by_reason_" + string(r), key: string(r),
			costs: func(c *counters) *map[string]retrylens.Money { return &c.OrphanedCostUSDByReason },
		})
	}
	for i := range out {
		out[i].Spend = true
	}
	return out
}

func byWord[T ~string](name string, words []T, get func(*counters) *map[string]uint64) []Figure {
	out := make([]Figure, len(words))
	for i, w := range words {
		out[i] = Figure{Name: name + "_" + string(w), words: get, key: string(w)}
	}
	return out
}

func positions() []string {
	out := make([]string, 10)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}
