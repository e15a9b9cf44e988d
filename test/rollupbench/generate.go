package main

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// benchDays is how long the simulated time is.
const benchDays = 90

// firstDay is the start of the simulated time: its end lies some days back.
var firstDay = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -benchDays-5)

// attemptsPerOperation is what the shapes below come to.
const attemptsPerOperation = 1.1

// generateSQL makes the operations [first, first + count) of a span of time that
// begins at start: 92 % are one successful attempt, 6 % are rescued by a second, 2 %
// need a third, which fails half of the time. One in 2,000 never ends. Five providers
// and models, a tenth of the retries on another one; tenants as a fleet has them, few
// large and many small, each with three services of one or two operations.
const generateSQL = `
INSERT INTO %s.attempts (tenant, logical_id, operation_started_at, hop, attempt, cause, service, environment, operation,
    provider, model, idempotency_key, started_at, duration_ms, outcome, delivery, upstream_calls, status, error_class, provider_request_id,
    retry_after_ms, delay_ms, final, stop_reason, prompt_tokens, completion_tokens, usage_source, cost_usd, cost_source, version)
SELECT
    concat('tenant-', leftPad(toString(tenant_number), 4, '0')), lower(hex(sipHash128(op))), fromUnixTimestamp64Milli(start, 'UTC'), 'client', n, if(n = 0, 'first', 'policy'),
    ['checkout', 'search', 'agent'][1 + tenant_number %% 3], 'prod', ['plan', 'rerank', 'summarise', 'plan'][1 + r1 %% 4],
    ['openai', 'openai', 'anthropic', 'gemini', 'azure_openai'][choice], ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet', 'gemini-pro', 'gpt-4o'][choice],
    lower(hex(sipHash64(op))), fromUnixTimestamp64Milli(start + n * 2500, 'UTC'), if(ok, latency, 400 + r3 %% 800),
    if(ok, 'success', 'error'), if(ok, 'full', 'none'), 1, if(ok, 200, 503), if(ok, '', if(r3 %% 3 = 0, 'rate_limited', 'unavailable')), concat('req_', lower(hex(sipHash64(op, n)))),
    if(ok, NULL, 1000), if(ok OR n = tries - 1, NULL, 1500), ok OR (n = tries - 1 AND NOT endless), if(ok, 'delivered', if(n = tries - 1 AND NOT endless, 'max_attempts', '')),
    if(ok OR r3 %% 5 = 0, tokens, NULL), if(ok OR r3 %% 5 = 0, intDiv(tokens, 3), NULL), if(ok OR r3 %% 5 = 0, 'provider', 'unknown'),
    if(ok OR r3 %% 5 = 0, toDecimal128(tokens, 12) / 400000, NULL), if(ok OR r3 %% 5 = 0, 'provider', 'none'), bitShiftRight(cityHash64(op, n), 8)
FROM
(
    SELECT op, n, start, tries, endless, r1, cityHash64(op, n, 3) AS r3, tenant_number, tokens, latency,
        NOT endless AND n = tries - 1 AND NOT (tries = 3 AND r2 %% 2 = 0) AS ok,
        1 + (home + if(n > 0 AND r3 %% 10 = 0, 1, 0)) %% 5 AS choice
    FROM
    (
        SELECT {first:UInt64} + number AS op, cityHash64(op, 1) AS r1, cityHash64(op, 2) AS r2,
            {start:Int64} + toInt64(number * {span:UInt64} / {count:UInt64}) AS start,
            multiIf(r1 %% 100 < 92, 1, r1 %% 100 < 98, 2, 3) AS tries, intDiv(r1, 100) %% 2000 = 0 AS endless,
            toUInt32(pow((intDiv(r2, 7) %% 10000) / 10000, 2) * {tenants:UInt32}) AS tenant_number,
            [0, 0, 0, 1, 1, 2, 2, 3, 4, 0][1 + r2 %% 10] AS home,
            50 + intDiv(r1, 17) %% 2000 AS tokens, toUInt64(300 * exp((intDiv(r2, 13) %% 10000) / 2500)) AS latency
        FROM numbers({count:UInt64})
    )
    ARRAY JOIN arrayMap(i -> toUInt32(i), range(tries)) AS n
)`

// generate fills span of time with about n attempts of that many tenants, day by
// day.
func generate(ctx context.Context, conn driver.Conn, database string, n, tenants, days int) error {
	perDay := uint64(float64(n) / attemptsPerOperation / float64(days))
	const day = 24 * time.Hour
	for d := range days {
		err := conn.Exec(ctx, fmt.Sprintf(generateSQL, database),
			ch.Named("first", uint64(d)*perDay), ch.Named("count", perDay), ch.Named("tenants", uint32(tenants)),
			ch.Named("start", firstDay.Add(time.Duration(d)*day).UnixMilli()), ch.Named("span", uint64(day.Milliseconds())))
		if err != nil {
			return fmt.Errorf("day %d: %w", d, err)
		}
	}
	return nil
}
