package export

import (
	"iter"
	"strings"

	"github.com/retrylens/retrylens/internal/metrics"
)

// operationColumns are the columns of [Operations], named as in a Summary's JSON.
var operationColumns = []struct {
	Column
	cell func(*metrics.Summary) Cell
}{
	{Column{"started_at", Time}, func(s *metrics.Summary) Cell { return instant(s.StartedAt) }},
	{Column{"tenant", Text}, func(s *metrics.Summary) Cell { return text(s.Tenant) }},
	{Column{"logical_id", Text}, func(s *metrics.Summary) Cell { return text(s.LogicalID) }},
	{Column{"service", Text}, func(s *metrics.Summary) Cell { return text(s.Service) }},
	{Column{"environment", Text}, func(s *metrics.Summary) Cell { return text(s.Environment) }},
	{Column{"operation", Text}, func(s *metrics.Summary) Cell { return text(s.Operation) }},
	{Column{"provider", Text}, func(s *metrics.Summary) Cell { return text(s.Provider) }},
	{Column{"model", Text}, func(s *metrics.Summary) Cell { return text(s.Model) }},
	{Column{"state", Text}, func(s *metrics.Summary) Cell { return text(string(s.State)) }},
	{Column{"idempotency_key", Text}, func(s *metrics.Summary) Cell { return text(s.IdempotencyKey) }},
	{Column{"provider_request_id", Text}, func(s *metrics.Summary) Cell { return text(s.ProviderRequestID) }},
	{Column{"error_class", Text}, func(s *metrics.Summary) Cell { return text(string(s.ErrorClass)) }},
	{Column{"stop_reason", Text}, func(s *metrics.Summary) Cell { return text(string(s.StopReason)) }},
	{Column{"attempts", Count}, func(s *metrics.Summary) Cell { return count(int64(s.Attempts)) }},
	{Column{"retries", Count}, func(s *metrics.Summary) Cell { return count(int64(s.Retries)) }},
	{Column{"upstream_calls", Count}, func(s *metrics.Summary) Cell { return count(int64(s.UpstreamCalls)) }},
	{Column{"rescued", Bool}, func(s *metrics.Summary) Cell { return flag(s.Rescued) }},
	{Column{"latency_ms", Count}, func(s *metrics.Summary) Cell { return pointed(s.LatencyMS) }},
	{Column{"retry_tax_ms", Count}, func(s *metrics.Summary) Cell { return pointed(s.RetryTaxMS) }},
	{Column{"billed_tokens", Count}, func(s *metrics.Summary) Cell { return count(int64(s.BilledTokens)) }},
	{Column{"billed_cost_usd", USD}, func(s *metrics.Summary) Cell { return usd(s.BilledCostUSD) }},
	{Column{"orphaned_attempts", Count}, func(s *metrics.Summary) Cell { return count(int64(s.OrphanedAttempts)) }},
	{Column{"orphaned_tokens", Count}, func(s *metrics.Summary) Cell { return count(s.OrphanedTokens) }},
	{Column{"orphaned_cost_usd", USD}, func(s *metrics.Summary) Cell { return usd(s.OrphanedCostUSD) }},
	{Column{"orphan_reasons", Text}, func(s *metrics.Summary) Cell { return text(reasons(s)) }},
	{Column{"orphan_suspects", Count}, func(s *metrics.Summary) Cell { return count(int64(s.OrphanSuspects)) }},
	{Column{"recovered_tokens", Count}, func(s *metrics.Summary) Cell { return count(s.RecoveredTokens) }},
	{Column{"redundant_tokens", Count}, func(s *metrics.Summary) Cell { return count(s.RedundantTokens) }},
	{Column{"duplicates_served", Count}, func(s *metrics.Summary) Cell { return count(int64(s.DuplicatesServed)) }},
	{Column{"retry_after_violations", Count}, func(s *metrics.Summary) Cell { return count(int64(s.RetryAfterViolations)) }},
	{Column{"unkeyed_after_send", Count}, func(s *metrics.Summary) Cell { return count(int64(s.UnkeyedAfterSend)) }},
}

// Operations is a list of operations as a table, one row each.
func Operations(list iter.Seq2[metrics.Summary, error], notes map[string]string) Table {
	t := Table{Notes: notes}
	for _, c := range operationColumns {
		t.Columns = append(t.Columns, c.Column)
	}
	t.Rows = func(yield func([]Cell, error) bool) {
		cells := make([]Cell, len(operationColumns))
		for s, err := range list {
			for i := range operationColumns {
				cells[i] = operationColumns[i].cell(&s)
			}
			if !yield(cells, err) || err != nil {
				return
			}
		}
	}
	return t
}

func pointed(n *int64) Cell {
	if n == nil {
		return Cell{}
	}
	return count(*n)
}

func reasons(s *metrics.Summary) string {
	words := make([]string, len(s.OrphanReasons))
	for i, r := range s.OrphanReasons {
		words[i] = string(r)
	}
	return strings.Join(words, " ")
}
