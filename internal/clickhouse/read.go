package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
)

// Attempts returns the attempts of the operations with that logical id, of every
// tenant or of those given, one per identity, usage and cost as the overlays
// have them; sorted by tenant, hop and attempt.
func (s *Store) Attempts(ctx context.Context, logicalID string, tenants ...string) ([]retrylens.Attempt, error) {
	where, params := "logical_id = {logical_id:String}", []any{clickhouse.Named("logical_id", logicalID)}
	if len(tenants) > 0 {
		where += " AND tenant IN {tenant:Array(String)}"
		params = append(params, clickhouse.Named("tenant", tenants))
	}
	out, err := s.read(ctx, where, params)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read operation %s: %w", logicalID, err)
	}
	return out, nil
}

// notFolded are the columns that no figure depends on.
var notFolded = map[string]bool{
	"response_model": true, "endpoint": true, "stream": true, "fingerprint": true, "ttfb_ms": true, "status": true,
	"provider_error_type": true, "provider_request_id": true, "delay_ms": true, "cached_prompt_tokens": true,
	"cache_write_tokens": true, "reasoning_tokens": true, "cost_source": true, "attributes": true, "reason": true, "emitter": true, "seq": true,
}

// read returns one attempt per identity, the highest version.
func (s *Store) read(ctx context.Context, where string, params []any) ([]retrylens.Attempt, error) {
	return s.readBut(ctx, nil, where, params)
}

// readBut is read without the columns left out.
func (s *Store) readBut(ctx context.Context, leftOut map[string]bool, where string, params []any) ([]retrylens.Attempt, error) {
	text := "SELECT " + strings.Join(columnsBut(leftOut), ", ") + " FROM " + s.database + ".attempts_effective WHERE " + where +
		" ORDER BY tenant, logical_id, hop, attempt, version DESC LIMIT 1 BY tenant, logical_id, hop, attempt"
	rows, err := s.conn.Query(s.with(ctx, nil), text, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []retrylens.Attempt
	for rows.Next() {
		var r readRow
		if err := rows.Scan(r.destinationsBut(leftOut)...); err != nil {
			return nil, err
		}
		if r.cost != nil {
			if err := checkMoney(*r.cost); err != nil {
				return nil, err
			}
		}
		out = append(out, r.attempt())
	}
	return out, rows.Err()
}

func columnsBut(leftOut map[string]bool) []string {
	out := make([]string, 0, len(attemptColumns))
	for _, c := range attemptColumns {
		if !leftOut[c.name] {
			out = append(out, c.name)
		}
	}
	return out
}

func (r *readRow) destinationsBut(leftOut map[string]bool) []any {
	all := r.destinations()
	out := all[:0]
	for i, c := range attemptColumns {
		if !leftOut[c.name] {
			out = append(out, all[i])
		}
	}
	return out
}

// readRow is an attempt as its columns are scanned.
type readRow struct {
	a                                                        retrylens.Attempt
	hop, cause, outcome, delivery, class, stop, usage, costs string
	attemptN                                                 uint32
	calls                                                    uint16
	final                                                    bool
	duration, ttfb, retryAfter, delay, seq                   *uint64
	prompt, completion, cached, written, reasoning           *uint64
	status                                                   *uint16
	servedBy, replayOf                                       *uint32
	cost                                                     *decimal.Decimal
}

// destinations are in the order of attemptColumns.
func (r *readRow) destinations() []any {
	a := &r.a
	return []any{
		&a.Tenant, &a.LogicalID, &a.OperationStartedAt, &r.hop, &r.attemptN, &a.Revision, &r.cause,
		&a.Service, &a.Environment, &a.Operation, &a.Provider, &a.Model, &a.ResponseModel, &a.Endpoint, &a.Stream,
		&a.IdempotencyKey, &a.Fingerprint,
		&a.StartedAt, &r.duration, &r.ttfb, &r.outcome, &r.delivery, &r.calls, &r.status, &r.class,
		&a.ProviderErrorType, &a.ProviderRequestID, &r.retryAfter, &r.delay, &r.final, &r.stop, &r.servedBy, &r.replayOf,
		&r.prompt, &r.completion, &r.cached, &r.written, &r.reasoning, &r.usage, &r.cost, &r.costs,
		&a.Attributes, &a.Reason, &a.Emitter, &r.seq,
	}
}

func (r *readRow) attempt() retrylens.Attempt {
	a := r.a
	a.OperationStartedAt, a.StartedAt = a.OperationStartedAt.UTC(), a.StartedAt.UTC()
	a.Hop, a.Cause, a.Outcome = retrylens.Hop(r.hop), retrylens.Cause(r.cause), retrylens.Outcome(r.outcome)
	a.Delivery, a.ErrorClass, a.StopReason = retrylens.Delivery(r.delivery), retrylens.ErrorClass(r.class), retrylens.StopReason(r.stop)
	a.UsageSource, a.CostSource = retrylens.UsageSource(r.usage), retrylens.CostSource(r.costs)
	a.Attempt = int32(r.attemptN)
	a.UpstreamCalls, a.Final = retrylens.Some(r.calls), retrylens.Some(r.final)
	a.DurationMS, a.TTFBMS, a.RetryAfterMS, a.DelayMS, a.Seq = opt[int64](r.duration), opt[int64](r.ttfb), opt[int64](r.retryAfter), opt[int64](r.delay), opt[int64](r.seq)
	a.PromptTokens, a.CompletionTokens = opt[int64](r.prompt), opt[int64](r.completion)
	a.CachedPromptTokens, a.CacheWriteTokens, a.ReasoningTokens = opt[int64](r.cached), opt[int64](r.written), opt[int64](r.reasoning)
	a.Status, a.ServedBy, a.ReplayOf = opt[uint16](r.status), opt[int32](r.servedBy), opt[int32](r.replayOf)
	if r.cost != nil {
		a.CostUSD = retrylens.Some(money(*r.cost))
	}
	if len(a.Attributes) == 0 {
		a.Attributes = nil
	}
	return a
}

func opt[T, F uint64 | uint32 | uint16 | int64 | int32](v *F) retrylens.Opt[T] {
	if v == nil {
		return retrylens.Opt[T]{}
	}
	return retrylens.Some(T(*v))
}

// LocalOperations lists the operations of which this node itself holds rows, as
// "tenant/logical_id": on a cluster those of its shard. It is for checks.
func (s *Store) LocalOperations(ctx context.Context) ([]string, error) {
	var ops []string
	err := s.value(ctx, &ops, "SELECT groupUniqArray(concat(tenant, '/', logical_id)) FROM "+s.database+"."+s.local("attempts"))
	return ops, err
}
