package render

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Verdict is what one operation came to.
type Verdict struct {
	State                metrics.State          `json:"state"` // "" = no counted record
	Attempts             int                    `json:"attempts"`
	Retries              int                    `json:"retries"`
	UpstreamCalls        uint64                 `json:"upstream_calls"`
	Rescued              bool                   `json:"rescued"`
	LatencyMS            *int64                 `json:"latency_ms"`
	RetryTaxMS           *int64                 `json:"retry_tax_ms"`
	OrphanedAttempts     int                    `json:"orphaned_attempts"`
	OrphanedTokens       int64                  `json:"orphaned_tokens"`
	OrphanedCostUSD      retrylens.Money        `json:"orphaned_cost_usd"`
	OrphanReasons        []metrics.OrphanReason `json:"orphan_reasons"`
	OrphanSuspects       int                    `json:"orphan_suspects"`
	RecoveredTokens      int64                  `json:"recovered_tokens"`
	RedundantTokens      int64                  `json:"redundant_tokens"`
	RetryAfterViolations int                    `json:"retry_after_violations"`
	UnkeyedAfterSend     int                    `json:"unkeyed_after_send"`
}

// NewVerdict sums the records of an operation up.
func NewVerdict(op *metrics.Operation) Verdict {
	v := Verdict{
		State: op.State, Attempts: op.Attempts, Retries: op.Retries, Rescued: op.Rescued,
		LatencyMS: pointer(op.LatencyMS), RetryTaxMS: pointer(op.RetryTaxMS), OrphanReasons: []metrics.OrphanReason{},
	}
	for i := range op.Records {
		v.add(&op.Records[i])
	}
	return v
}

func pointer[T any](o retrylens.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

func (v *Verdict) add(r *metrics.Record) {
	if r.Inner {
		v.UpstreamCalls += uint64(r.UpstreamCalls.Value)
	}
	if r.RetryAfterViolated {
		v.RetryAfterViolations++
	}
	if r.UnkeyedAfterSend {
		v.UnkeyedAfterSend++
	}
	tokens := r.PromptTokens.Or(0) + r.CompletionTokens.Or(0)
	switch r.Fate {
	case metrics.FateOrphaned:
		v.OrphanedAttempts++
		v.OrphanedTokens += tokens
		v.OrphanedCostUSD = v.OrphanedCostUSD.Add(r.CostUSD.Value)
		if !slices.Contains(v.OrphanReasons, r.OrphanReason) {
			v.OrphanReasons = append(v.OrphanReasons, r.OrphanReason)
		}
	case metrics.FateSuspect:
		v.OrphanSuspects++
	case metrics.FateRecovered:
		v.RecoveredTokens += tokens
	case metrics.FateRedundant:
		v.RedundantTokens += tokens
	}
}

// sentences say the verdict, the main one first.
func (v Verdict) sentences() []string {
	lines := []string{v.outcome(), fmt.Sprintf("%s, %s, %s",
		plural(v.Attempts, "attempt", "attempts"), plural(v.Retries, "retry", "retries"), plural(int(v.UpstreamCalls), "upstream call", "upstream calls"))}
	lines = append(lines, v.waste()...)
	if v.RetryAfterViolations > 0 {
		lines = append(lines, "Retry-After not respected: "+plural(v.RetryAfterViolations, "time", "times"))
	}
	if v.UnkeyedAfterSend > 0 {
		lines = append(lines, "sent again without idempotency key after a send: "+plural(v.UnkeyedAfterSend, "time", "times"))
	}
	return lines
}

func (v Verdict) outcome() string {
	if v.State == "" {
		return "no counted record: its key was taken by another intent (key conflict)"
	}
	s := string(v.State)
	switch {
	case v.LatencyMS != nil:
		s += " in " + MS(*v.LatencyMS)
	case v.State == metrics.StateSucceeded:
		s += ", latency not known (no duration_ms)"
	}
	if v.RetryTaxMS != nil {
		s += ", retry tax " + MS(*v.RetryTaxMS)
	}
	if v.Rescued {
		s += ", rescued by a retry"
	}
	return s
}

func (v Verdict) waste() []string {
	var lines []string
	if v.OrphanedAttempts == 0 {
		lines = append(lines, "wasted nothing that is known")
	} else {
		lines = append(lines, fmt.Sprintf("wasted %s tokens, %s USD (%s)",
			Grouped(v.OrphanedTokens), USD(v.OrphanedCostUSD), joined(v.OrphanReasons)))
	}
	if v.OrphanSuspects > 0 {
		lines = append(lines, plural(v.OrphanSuspects, "attempt", "attempts")+" may have been executed too: usage unknown, not priced")
	}
	if v.RecoveredTokens > 0 {
		lines = append(lines, "recovered "+Grouped(v.RecoveredTokens)+" tokens from the dedupe store")
	}
	if v.RedundantTokens > 0 {
		lines = append(lines, "bought "+Grouped(v.RedundantTokens)+" tokens twice")
	}
	return lines
}

func joined[T ~string](words []T) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + many
}

// operationJSON is one operation of OperationsJSON.
type operationJSON struct {
	Tenant      string        `json:"tenant"`
	LogicalID   string        `json:"logical_id"`
	StartedAt   time.Time     `json:"started_at"`
	Service     string        `json:"service"`
	Environment string        `json:"environment"`
	Operation   string        `json:"operation"`
	Provider    string        `json:"provider"`
	Model       string        `json:"model"`
	Verdict     Verdict       `json:"verdict"`
	Attempts    []attemptJSON `json:"attempts"`
}

type attemptJSON struct {
	Fate               metrics.Fate         `json:"fate"` // "" = not executed
	OrphanReason       metrics.OrphanReason `json:"orphan_reason"`
	Counted            bool                 `json:"counted"`
	Retry              bool                 `json:"retry"`
	RetryAfterViolated bool                 `json:"retry_after_violated"`
	UnkeyedAfterSend   bool                 `json:"unkeyed_after_send"`
	Record             json.RawMessage      `json:"record"` // as it is imported
}

// OperationsJSON writes {"as_of":…,"operations":[…]}: of each operation its
// home, its verdict and its attempts, the records in the wire format.
func OperationsJSON(w io.Writer, ops []metrics.Operation, asOf time.Time) error {
	out := struct {
		AsOf       time.Time       `json:"as_of"`
		Operations []operationJSON `json:"operations"`
	}{asOf.UTC(), make([]operationJSON, len(ops))}
	for i := range ops {
		out.Operations[i] = newOperationJSON(&ops[i])
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

func newOperationJSON(op *metrics.Operation) operationJSON {
	j := operationJSON{
		Tenant: op.Tenant, LogicalID: op.LogicalID, StartedAt: op.Start.UTC(),
		Service: op.Home.Service, Environment: op.Home.Environment, Operation: op.Home.Operation,
		Provider: op.Home.Provider, Model: op.Home.Model, Verdict: NewVerdict(op),
	}
	for i := range op.Records {
		r := &op.Records[i]
		j.Attempts = append(j.Attempts, attemptJSON{
			Fate: r.Fate, OrphanReason: r.OrphanReason, Counted: r.Counted, Retry: r.Retry,
			RetryAfterViolated: r.RetryAfterViolated, UnkeyedAfterSend: r.UnkeyedAfterSend,
			Record: r.AppendJSON(nil),
		})
	}
	return j
}
