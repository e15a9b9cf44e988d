package metrics

import (
	"time"

	"github.com/retrylens/retrylens"
)

// Summary is an operation in one line of a list.
type Summary struct {
	StartedAt time.Time `json:"started_at"`
	Tenant    string    `json:"tenant"`
	LogicalID string    `json:"logical_id"`

	Service     string `json:"service"`
	Environment string `json:"environment"`
	Operation   string `json:"operation"`
	Provider    string `json:"provider"`
	Model       string `json:"model"`

	IdempotencyKey    string               `json:"idempotency_key"`     // of the first record that has one
	ProviderRequestID string               `json:"provider_request_id"` // of the delivering record, else of the last that has one
	ErrorClass        retrylens.ErrorClass `json:"error_class"`         // of the last counted record that has one
	StopReason        retrylens.StopReason `json:"stop_reason"`         // of the last counted record that has one
	BilledTokens      uint64               `json:"billed_tokens"`
	BilledCostUSD     retrylens.Money      `json:"billed_cost_usd"`
	DuplicatesServed  uint64               `json:"duplicates_served"`
	Verdict
}

// NewSummary sums an operation up.
func NewSummary(op *Operation) Summary {
	s := Summary{
		StartedAt: op.Start.UTC(), Tenant: op.Tenant, LogicalID: op.LogicalID,
		Service: op.Home.Service, Environment: op.Home.Environment, Operation: op.Home.Operation,
		Provider: op.Home.Provider, Model: op.Home.Model, Verdict: NewVerdict(op),
	}
	for i := range op.Records {
		s.see(&op.Records[i])
	}
	if op.Delivering >= 0 && op.Records[op.Delivering].ProviderRequestID != "" {
		s.ProviderRequestID = op.Records[op.Delivering].ProviderRequestID
	}
	var c Counters
	op.AddTo(&c)
	s.BilledTokens, s.BilledCostUSD, s.DuplicatesServed = c.BilledTokens, c.BilledCostUSD, c.DuplicatesServed
	return s
}

func (s *Summary) see(r *Record) {
	if s.IdempotencyKey == "" {
		s.IdempotencyKey = r.IdempotencyKey
	}
	if r.ProviderRequestID != "" {
		s.ProviderRequestID = r.ProviderRequestID
	}
	if r.Counted && r.ErrorClass != "" {
		s.ErrorClass = r.ErrorClass
	}
	if r.Counted && r.StopReason != "" {
		s.StopReason = r.StopReason
	}
}
