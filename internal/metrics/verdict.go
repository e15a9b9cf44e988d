package metrics

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
)

// Verdict is what one operation came to.
type Verdict struct {
	State                State           `json:"state"` // "" = no counted record
	Attempts             int             `json:"attempts"`
	Retries              int             `json:"retries"`
	UpstreamCalls        uint64          `json:"upstream_calls"`
	Rescued              bool            `json:"rescued"`
	LatencyMS            *int64          `json:"latency_ms"`
	RetryTaxMS           *int64          `json:"retry_tax_ms"`
	OrphanedAttempts     int             `json:"orphaned_attempts"`
	OrphanedTokens       int64           `json:"orphaned_tokens"`
	OrphanedCostUSD      retrylens.Money `json:"orphaned_cost_usd"`
	OrphanReasons        []OrphanReason  `json:"orphan_reasons"`
	OrphanSuspects       int             `json:"orphan_suspects"`
	RecoveredTokens      int64           `json:"recovered_tokens"`
	RedundantTokens      int64           `json:"redundant_tokens"`
	RetryAfterViolations int             `json:"retry_after_violations"`
	UnkeyedAfterSend     int             `json:"unkeyed_after_send"`
}

// NewVerdict sums the records of an operation up.
func NewVerdict(op *Operation) Verdict {
	v := Verdict{
		State: op.State, Attempts: op.Attempts, Retries: op.Retries, Rescued: op.Rescued,
		LatencyMS: pointer(op.LatencyMS), RetryTaxMS: pointer(op.RetryTaxMS), OrphanReasons: []OrphanReason{},
	}
	for i := range op.Records {
		v.add(&op.Records[i])
	}
	return v
}

func (v *Verdict) add(r *Record) {
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
	case FateOrphaned:
		v.OrphanedAttempts++
		v.OrphanedTokens += tokens
		v.OrphanedCostUSD = v.OrphanedCostUSD.Add(r.CostUSD.Value)
		if !slices.Contains(v.OrphanReasons, r.OrphanReason) {
			v.OrphanReasons = append(v.OrphanReasons, r.OrphanReason)
		}
	case FateSuspect:
		v.OrphanSuspects++
	case FateRecovered:
		v.RecoveredTokens += tokens
	case FateRedundant:
		v.RedundantTokens += tokens
	}
}

// OperationJSON is an operation as JSON has it: its home, its verdict and, where they are
// asked for, its attempts.
type OperationJSON struct {
	Tenant      string        `json:"tenant"`
	LogicalID   string        `json:"logical_id"`
	StartedAt   time.Time     `json:"started_at"`
	Service     string        `json:"service"`
	Environment string        `json:"environment"`
	Operation   string        `json:"operation"`
	Provider    string        `json:"provider"`
	Model       string        `json:"model"`
	Verdict     Verdict       `json:"verdict"`
	Attempts    []AttemptJSON `json:"attempts"`
}

// AttemptJSON is one attempt of an operation and what became of it.
type AttemptJSON struct {
	Fate               Fate            `json:"fate"` // "" = not executed
	OrphanReason       OrphanReason    `json:"orphan_reason"`
	Counted            bool            `json:"counted"`
	Retry              bool            `json:"retry"`
	RetryAfterViolated bool            `json:"retry_after_violated"`
	UnkeyedAfterSend   bool            `json:"unkeyed_after_send"`
	Record             json.RawMessage `json:"record"` // as it is imported
}

// OperationsJSON writes {"as_of":…,"operations":[…]}: of each operation its
// home, its verdict and its attempts, the records in the wire format.
func OperationsJSON(w io.Writer, ops []Operation, asOf time.Time) error {
	out := struct {
		AsOf       time.Time       `json:"as_of"`
		Operations []OperationJSON `json:"operations"`
	}{asOf.UTC(), make([]OperationJSON, len(ops))}
	for i := range ops {
		out.Operations[i] = NewOperationJSON(&ops[i])
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

// NewOperationJSON is the operation with all of its attempts.
func NewOperationJSON(op *Operation) OperationJSON {
	j := OperationJSON{
		Tenant: op.Tenant, LogicalID: op.LogicalID, StartedAt: op.Start.UTC(),
		Service: op.Home.Service, Environment: op.Home.Environment, Operation: op.Home.Operation,
		Provider: op.Home.Provider, Model: op.Home.Model, Verdict: NewVerdict(op),
	}
	for i := range op.Records {
		r := &op.Records[i]
		j.Attempts = append(j.Attempts, AttemptJSON{
			Fate: r.Fate, OrphanReason: r.OrphanReason, Counted: r.Counted, Retry: r.Retry,
			RetryAfterViolated: r.RetryAfterViolated, UnkeyedAfterSend: r.UnkeyedAfterSend,
			Record: r.AppendJSON(nil),
		})
	}
	return j
}
