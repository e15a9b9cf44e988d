-- 0001 attempts
-- The attempt records. JSON key = column. One row per identity (tenant,
-- logical_id, hop, attempt) and start after merges; the highest version wins:
-- revision << 56 | content hash >> 8. Rows of one identity whose start a
-- revision moved are de-duplicated by every reader again.
CREATE TABLE IF NOT EXISTS retrylens.attempts
(
    tenant               LowCardinality(String) CODEC(ZSTD(1)),
    logical_id           String CODEC(ZSTD(1)),
    operation_started_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    hop                  Enum8('client' = 1, 'gateway' = 2) CODEC(ZSTD(1)),
    attempt              UInt32 CODEC(ZSTD(1)),
    revision             UInt8 CODEC(ZSTD(1)),
    cause                Enum8('first' = 1, 'policy' = 2, 'sdk' = 3, 'transport' = 4, 'hedge' = 5, 'failover' = 6, 'redelivery' = 7) CODEC(ZSTD(1)),

    service              LowCardinality(String) CODEC(ZSTD(1)),
    environment          LowCardinality(String) CODEC(ZSTD(1)),
    operation            LowCardinality(String) CODEC(ZSTD(1)),
    provider             LowCardinality(String) CODEC(ZSTD(1)),
    model                LowCardinality(String) CODEC(ZSTD(1)),
    response_model       LowCardinality(String) CODEC(ZSTD(1)),
    endpoint             LowCardinality(String) CODEC(ZSTD(1)),
    stream               Bool CODEC(ZSTD(1)),
    idempotency_key      String CODEC(ZSTD(1)),
    fingerprint          String CODEC(ZSTD(1)),

    started_at           DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    duration_ms          Nullable(UInt64) CODEC(T64, ZSTD(1)),
    ttfb_ms              Nullable(UInt64) CODEC(T64, ZSTD(1)),
    outcome              Enum8('success' = 1, 'error' = 2, 'replayed' = 3, 'in_flight' = 4, 'key_mismatch' = 5, 'shed' = 6, 'abandoned' = 7, 'interrupted' = 8, 'hedge_lost' = 9) CODEC(ZSTD(1)),
    delivery             Enum8('full' = 1, 'partial' = 2, 'none' = 3) CODEC(ZSTD(1)),
    upstream_calls       UInt16 CODEC(ZSTD(1)),
    status               Nullable(UInt16) CODEC(ZSTD(1)),
    error_class          Enum8('' = 0, 'rate_limited' = 1, 'overloaded' = 2, 'server_error' = 3, 'bad_gateway' = 4, 'unavailable' = 5, 'gateway_timeout' = 6, 'timeout' = 7, 'transport_unknown' = 8, 'conflict' = 9, 'transport_presend' = 10, 'quota_exhausted' = 11, 'auth' = 12, 'permission' = 13, 'not_found' = 14, 'invalid_request' = 15, 'payload_too_large' = 16, 'context_length' = 17, 'content_filter' = 18, 'refusal' = 19, 'empty_response' = 20, 'stream_interrupted' = 21, 'cancelled' = 22, 'unclassified' = 23) CODEC(ZSTD(1)),
    provider_error_type  LowCardinality(String) CODEC(ZSTD(1)),
    provider_request_id  String CODEC(ZSTD(1)),
    retry_after_ms       Nullable(UInt64) CODEC(ZSTD(1)),
    delay_ms             Nullable(UInt64) CODEC(ZSTD(1)),
    final                Bool CODEC(ZSTD(1)),
    stop_reason          Enum8('' = 0, 'delivered' = 1, 'not_retryable' = 2, 'max_attempts' = 3, 'deadline' = 4, 'budget_exhausted' = 5, 'unkeyed' = 6, 'breaker_open' = 7, 'partial_stream' = 8, 'caller_gone' = 9, 'repeated_identically' = 10) CODEC(ZSTD(1)),
    served_by            Nullable(UInt32) CODEC(ZSTD(1)),
    replay_of            Nullable(UInt32) CODEC(ZSTD(1)),

    prompt_tokens        Nullable(UInt64) CODEC(T64, ZSTD(1)),
    completion_tokens    Nullable(UInt64) CODEC(T64, ZSTD(1)),
    cached_prompt_tokens Nullable(UInt64) CODEC(T64, ZSTD(1)),
    cache_write_tokens   Nullable(UInt64) CODEC(ZSTD(1)),
    reasoning_tokens     Nullable(UInt64) CODEC(ZSTD(1)),
    usage_source         Enum8('provider' = 1, 'partial' = 2, 'estimated' = 3, 'unknown' = 4) CODEC(ZSTD(1)),
    cost_usd             Nullable(Decimal(38, 12)) CODEC(ZSTD(1)),
    cost_source          Enum8('provider' = 1, 'price_book' = 2, 'none' = 3) CODEC(ZSTD(1)),
    attributes           Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    reason               String CODEC(ZSTD(1)),
    emitter              LowCardinality(String) CODEC(ZSTD(1)),
    seq                  Nullable(UInt64) CODEC(T64, ZSTD(1)),

    version              UInt64 CODEC(ZSTD(1)),

    INDEX by_logical_id          logical_id          TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_provider_request_id provider_request_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_idempotency_key     idempotency_key     TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(operation_started_at)
ORDER BY (toStartOfHour(operation_started_at), tenant, toStartOfMinute(operation_started_at), logical_id, hop, attempt)
TTL toDateTime(operation_started_at) + toIntervalDay(400)
SETTINGS non_replicated_deduplication_window = 0, ttl_only_drop_parts = 1;

-- 0002 emitter_seqs
-- Completeness: every (emitter, seq) ever received, as a set per emitter. A set
-- survives repeats, so resends, revisions and a re-run of an insert change nothing.
CREATE TABLE IF NOT EXISTS retrylens.emitter_seqs
(
    tenant   LowCardinality(String),
    emitter  String CODEC(ZSTD(1)),
    seqs     AggregateFunction(groupBitmap, UInt64),
    max_seq  SimpleAggregateFunction(max, UInt64),
    first_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
    last_at  SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree()
ORDER BY (tenant, emitter)
TTL toDateTime(last_at) + toIntervalDay(400);

CREATE MATERIALIZED VIEW IF NOT EXISTS retrylens.emitter_seqs_of_attempts TO retrylens.emitter_seqs AS
SELECT
    tenant,
    emitter,
    groupBitmapState(assumeNotNull(seq)) AS seqs,
    max(assumeNotNull(seq)) AS max_seq,
    min(started_at) AS first_at,
    max(started_at) AS last_at
FROM retrylens.attempts
WHERE emitter != '' AND seq IS NOT NULL
GROUP BY tenant, emitter;

-- 0003 overlays
-- What finance knows better, laid over the attempts at read time. Nothing
-- computed is ever written into attempts.
CREATE TABLE IF NOT EXISTS retrylens.settlements
(
    provider            LowCardinality(String),
    provider_request_id String,
    prompt_tokens       Nullable(UInt64),
    completion_tokens   Nullable(UInt64),
    cost_usd            Nullable(Decimal(38, 12)),
    version             UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (provider, provider_request_id);

-- USD per million tokens: six decimals times tokens over a million is exact in
-- twelve. valid_from is the start of the price; it holds until the next one.
CREATE TABLE IF NOT EXISTS retrylens.prices
(
    provider                      LowCardinality(String),
    model                         LowCardinality(String),
    valid_from                    DateTime64(3, 'UTC'),
    prompt_usd_per_million        Decimal(18, 6),
    cached_prompt_usd_per_million Decimal(18, 6),
    cache_write_usd_per_million   Decimal(18, 6),
    completion_usd_per_million    Decimal(18, 6),
    version                       UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (provider, model, valid_from);

-- Usage and cost as every fold reads them: as settled, else as reported, else
-- (cost only) tokens at the price of that moment.
CREATE VIEW IF NOT EXISTS retrylens.attempts_effective AS
SELECT
    a.* EXCEPT (prompt_tokens, completion_tokens, usage_source, cost_usd, cost_source),
    ifNull(settled_prompt_tokens, a.prompt_tokens) AS prompt_tokens,
    ifNull(settled_completion_tokens, a.completion_tokens) AS completion_tokens,
    if(settled_prompt_tokens IS NULL AND settled_completion_tokens IS NULL, a.usage_source, CAST('provider' AS Enum8('provider' = 1, 'partial' = 2, 'estimated' = 3, 'unknown' = 4))) AS usage_source,
    coalesce(settled_cost_usd, a.cost_usd, if(price_version = 0 OR (a.prompt_tokens IS NULL AND a.completion_tokens IS NULL), NULL,
        toDecimal128(
              price_prompt * toDecimal128(ifNull(a.prompt_tokens, 0) - least(ifNull(a.prompt_tokens, 0), ifNull(a.cached_prompt_tokens, 0) + ifNull(a.cache_write_tokens, 0)), 0)
            + price_cached_prompt * toDecimal128(ifNull(a.cached_prompt_tokens, 0), 0)
            + price_cache_write * toDecimal128(ifNull(a.cache_write_tokens, 0), 0)
            + price_completion * toDecimal128(ifNull(a.completion_tokens, 0), 0), 12) / 1000000)) AS cost_usd,
    multiIf(settled_cost_usd IS NOT NULL, CAST('provider' AS Enum8('provider' = 1, 'price_book' = 2, 'none' = 3)),
        a.cost_usd IS NULL AND price_version > 0, CAST('price_book' AS Enum8('provider' = 1, 'price_book' = 2, 'none' = 3)), a.cost_source) AS cost_source
FROM retrylens.attempts AS a
GLOBAL ANY LEFT JOIN
(
    SELECT settled_provider, settled_request_id,
        tupleElement(latest, 1) AS settled_prompt_tokens, tupleElement(latest, 2) AS settled_completion_tokens, tupleElement(latest, 3) AS settled_cost_usd
    FROM
    (
        SELECT provider AS settled_provider, provider_request_id AS settled_request_id, argMax(tuple(prompt_tokens, completion_tokens, cost_usd), version) AS latest
        FROM retrylens.settlements
        WHERE provider_request_id != ''
        GROUP BY provider, provider_request_id
    )
) AS s ON settled_provider = a.provider AND settled_request_id = a.provider_request_id
GLOBAL ASOF LEFT JOIN
(
    SELECT price_provider, price_model, price_from, price_version,
        tupleElement(latest, 1) AS price_prompt, tupleElement(latest, 2) AS price_cached_prompt,
        tupleElement(latest, 3) AS price_cache_write, tupleElement(latest, 4) AS price_completion
    FROM
    (
        SELECT provider AS price_provider, model AS price_model, valid_from AS price_from, max(version) AS price_version,
            argMax(tuple(prompt_usd_per_million, cached_prompt_usd_per_million, cache_write_usd_per_million, completion_usd_per_million), version) AS latest
        FROM retrylens.prices
        GROUP BY provider, model, valid_from
    )
) AS p ON price_provider = a.provider AND price_model = a.model AND price_from <= a.started_at;

-- 0004 ingest_status
-- What the ingest nodes say of themselves: one row per run of a node, the latest
-- wins. Counts are since that run began.
CREATE TABLE IF NOT EXISTS retrylens.ingest_status
(
    node           String,
    started_at     DateTime64(3, 'UTC'),
    at             DateTime64(3, 'UTC'),
    rejected_lines UInt64,
    dead_letters   UInt64,
    spool_bytes    UInt64,
    spool_age_ms   UInt64
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (node, started_at)
TTL toDateTime(at) + toIntervalDay(400);

-- 0005 rollups
-- Sums of the fold by minute, hour and day (docs/adr/0007). The rows of a bucket
-- are inserted as one block and carry one version; those of an older version
-- than the bucket's row of kind 'bucket' are dead, whether merged away yet or
-- not. kind: 'bucket' one a bucket, even an empty one; 'home' the counters by
-- home dimensions; 'spend' what moves spend from the home provider and model to
-- those executed (with sign: counts are modulo 2^64). Latencies are histograms of
-- metrics.SketchIndexSigned by tenant, provider and model only: one of the rows of
-- kind 'home' that share these carries them for all.
CREATE TABLE IF NOT EXISTS retrylens.rollups
(
    level             Enum8('minute' = 1, 'hour' = 2, 'day' = 3) CODEC(ZSTD(1)),
    kind              Enum8('bucket' = 1, 'home' = 2, 'spend' = 3) CODEC(ZSTD(1)),
    bucket            DateTime('UTC') CODEC(Delta(4), ZSTD(1)),
    tenant            LowCardinality(String) CODEC(ZSTD(1)),
    service           LowCardinality(String) CODEC(ZSTD(1)),
    environment       LowCardinality(String) CODEC(ZSTD(1)),
    operation         LowCardinality(String) CODEC(ZSTD(1)),
    provider          LowCardinality(String) CODEC(ZSTD(1)),
    model             LowCardinality(String) CODEC(ZSTD(1)),
    executed_provider LowCardinality(String) CODEC(ZSTD(1)),
    executed_model    LowCardinality(String) CODEC(ZSTD(1)),
    version           UInt64 CODEC(ZSTD(1)),

    -- Of kind 'bucket': when the next open operation becomes lost (Unix
    -- milliseconds, the largest Int64 = none is open), and when the last one did.
    next_loss_ms      Int64 DEFAULT 9223372036854775807 CODEC(ZSTD(1)),
    last_loss_ms      Int64 CODEC(ZSTD(1)),

    latency_idx       Array(UInt16) CODEC(ZSTD(1)),
    latency_n         Array(UInt64) CODEC(ZSTD(1)),
    retry_tax_idx     Array(UInt16) CODEC(ZSTD(1)),
    retry_tax_n       Array(UInt64) CODEC(ZSTD(1)),
    operations UInt64 CODEC(ZSTD(1)),
    succeeded UInt64 CODEC(ZSTD(1)),
    failed UInt64 CODEC(ZSTD(1)),
    open UInt64 CODEC(ZSTD(1)),
    lost UInt64 CODEC(ZSTD(1)),
    attempts UInt64 CODEC(ZSTD(1)),
    retries UInt64 CODEC(ZSTD(1)),
    retry_successes UInt64 CODEC(ZSTD(1)),
    retried_operations UInt64 CODEC(ZSTD(1)),
    rescued UInt64 CODEC(ZSTD(1)),
    failed_attempts UInt64 CODEC(ZSTD(1)),
    shed UInt64 CODEC(ZSTD(1)),
    upstream_calls UInt64 CODEC(ZSTD(1)),
    hidden_calls UInt64 CODEC(ZSTD(1)),
    duplicates_served UInt64 CODEC(ZSTD(1)),
    duplicates_refused UInt64 CODEC(ZSTD(1)),
    key_conflicts UInt64 CODEC(ZSTD(1)),
    layer_upstream_calls UInt64 CODEC(ZSTD(1)),
    layer_attempts UInt64 CODEC(ZSTD(1)),
    retry_after_violations UInt64 CODEC(ZSTD(1)),
    unkeyed_after_send UInt64 CODEC(ZSTD(1)),
    rescue_cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
    executed_attempts UInt64 CODEC(ZSTD(1)),
    executed_known_usage UInt64 CODEC(ZSTD(1)),
    billed_tokens UInt64 CODEC(ZSTD(1)),
    billed_cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_attempts UInt64 CODEC(ZSTD(1)),
    orphaned_prompt_tokens UInt64 CODEC(ZSTD(1)),
    orphaned_completion_tokens UInt64 CODEC(ZSTD(1)),
    orphaned_cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
    orphan_suspects UInt64 CODEC(ZSTD(1)),
    recovered_tokens UInt64 CODEC(ZSTD(1)),
    recovered_cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
    redundant_tokens UInt64 CODEC(ZSTD(1)),
    redundant_cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_hedge_lost UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_interrupted UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_abandoned UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_lost_reply UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_timeout UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_rejected_output UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_reason_error UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_usage_source_provider UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_usage_source_partial UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_usage_source_estimated UInt64 CODEC(ZSTD(1)),
    orphaned_tokens_by_usage_source_unknown UInt64 CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_hedge_lost Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_interrupted Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_abandoned Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_lost_reply Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_timeout Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_rejected_output Decimal(38, 12) CODEC(ZSTD(1)),
    orphaned_cost_usd_by_reason_error Decimal(38, 12) CODEC(ZSTD(1)),
    upstream_calls_by_cause_first UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_policy UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_sdk UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_transport UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_hedge UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_failover UInt64 CODEC(ZSTD(1)),
    upstream_calls_by_cause_redelivery UInt64 CODEC(ZSTD(1)),
    errors_by_class_rate_limited UInt64 CODEC(ZSTD(1)),
    errors_by_class_overloaded UInt64 CODEC(ZSTD(1)),
    errors_by_class_server_error UInt64 CODEC(ZSTD(1)),
    errors_by_class_bad_gateway UInt64 CODEC(ZSTD(1)),
    errors_by_class_unavailable UInt64 CODEC(ZSTD(1)),
    errors_by_class_gateway_timeout UInt64 CODEC(ZSTD(1)),
    errors_by_class_timeout UInt64 CODEC(ZSTD(1)),
    errors_by_class_transport_unknown UInt64 CODEC(ZSTD(1)),
    errors_by_class_conflict UInt64 CODEC(ZSTD(1)),
    errors_by_class_transport_presend UInt64 CODEC(ZSTD(1)),
    errors_by_class_quota_exhausted UInt64 CODEC(ZSTD(1)),
    errors_by_class_auth UInt64 CODEC(ZSTD(1)),
    errors_by_class_permission UInt64 CODEC(ZSTD(1)),
    errors_by_class_not_found UInt64 CODEC(ZSTD(1)),
    errors_by_class_invalid_request UInt64 CODEC(ZSTD(1)),
    errors_by_class_payload_too_large UInt64 CODEC(ZSTD(1)),
    errors_by_class_context_length UInt64 CODEC(ZSTD(1)),
    errors_by_class_content_filter UInt64 CODEC(ZSTD(1)),
    errors_by_class_refusal UInt64 CODEC(ZSTD(1)),
    errors_by_class_empty_response UInt64 CODEC(ZSTD(1)),
    errors_by_class_stream_interrupted UInt64 CODEC(ZSTD(1)),
    errors_by_class_cancelled UInt64 CODEC(ZSTD(1)),
    errors_by_class_unclassified UInt64 CODEC(ZSTD(1)),
    stops_by_reason_delivered UInt64 CODEC(ZSTD(1)),
    stops_by_reason_not_retryable UInt64 CODEC(ZSTD(1)),
    stops_by_reason_max_attempts UInt64 CODEC(ZSTD(1)),
    stops_by_reason_deadline UInt64 CODEC(ZSTD(1)),
    stops_by_reason_budget_exhausted UInt64 CODEC(ZSTD(1)),
    stops_by_reason_unkeyed UInt64 CODEC(ZSTD(1)),
    stops_by_reason_breaker_open UInt64 CODEC(ZSTD(1)),
    stops_by_reason_partial_stream UInt64 CODEC(ZSTD(1)),
    stops_by_reason_caller_gone UInt64 CODEC(ZSTD(1)),
    stops_by_reason_repeated_identically UInt64 CODEC(ZSTD(1)),
    attempts_by_position_0 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_1 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_2 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_3 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_4 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_5 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_6 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_7 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_8 UInt64 CODEC(ZSTD(1)),
    attempts_by_position_9 UInt64 CODEC(ZSTD(1)),
    successes_by_position_0 UInt64 CODEC(ZSTD(1)),
    successes_by_position_1 UInt64 CODEC(ZSTD(1)),
    successes_by_position_2 UInt64 CODEC(ZSTD(1)),
    successes_by_position_3 UInt64 CODEC(ZSTD(1)),
    successes_by_position_4 UInt64 CODEC(ZSTD(1)),
    successes_by_position_5 UInt64 CODEC(ZSTD(1)),
    successes_by_position_6 UInt64 CODEC(ZSTD(1)),
    successes_by_position_7 UInt64 CODEC(ZSTD(1)),
    successes_by_position_8 UInt64 CODEC(ZSTD(1)),
    successes_by_position_9 UInt64 CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY (level, toYYYYMM(bucket))
ORDER BY (level, kind, toStartOfHour(bucket), tenant, bucket, service, environment, operation, provider, model, executed_provider, executed_model)
TTL bucket + toIntervalDay(431) DELETE WHERE level = 'minute'
SETTINGS non_replicated_deduplication_window = 0, ratio_of_defaults_for_sparse_serialization = 0.8,
    min_bytes_for_wide_part = 1073741824, max_compress_block_size = 131072, min_compress_block_size = 65536;

-- Which minutes have got rows that no rollup has seen. A mark is one minute of
-- one inserted block; what was seen is marked again with sign -1. A set survives
-- repeats, so it does not matter how often a block is sent.
CREATE TABLE IF NOT EXISTS retrylens.rollup_marks
(
    minute    DateTime('UTC') CODEC(Delta(4), ZSTD(1)),
    mark      UUID,
    marked_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    sign      Int8
)
ENGINE = CollapsingMergeTree(sign)
ORDER BY (minute, mark)
TTL toDateTime(marked_at) + toIntervalDay(30)
SETTINGS non_replicated_deduplication_window = 0;

CREATE MATERIALIZED VIEW IF NOT EXISTS retrylens.rollup_marks_of_attempts TO retrylens.rollup_marks AS
SELECT minute, generateUUIDv4() AS mark, now64(3, 'UTC') AS marked_at, toInt8(1) AS sign
FROM (SELECT DISTINCT toDateTime(toStartOfMinute(operation_started_at), 'UTC') AS minute FROM retrylens.attempts);

-- The same for what is laid over the attempts; the finaliser finds their minutes.
CREATE TABLE IF NOT EXISTS retrylens.rollup_overlay_marks
(
    kind       Enum8('settlement' = 1, 'price' = 2),
    provider   LowCardinality(String),
    name       String CODEC(ZSTD(1)),
    valid_from DateTime64(3, 'UTC'),
    mark       UUID,
    marked_at  DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
    sign       Int8
)
ENGINE = CollapsingMergeTree(sign)
ORDER BY (kind, provider, name, valid_from, mark)
TTL toDateTime(marked_at) + toIntervalDay(30)
SETTINGS non_replicated_deduplication_window = 0;

CREATE MATERIALIZED VIEW IF NOT EXISTS retrylens.rollup_marks_of_settlements TO retrylens.rollup_overlay_marks AS
SELECT 'settlement' AS kind, provider, provider_request_id AS name, toDateTime64(0, 3, 'UTC') AS valid_from,
    generateUUIDv4() AS mark, now64(3, 'UTC') AS marked_at, toInt8(1) AS sign
FROM retrylens.settlements;

CREATE MATERIALIZED VIEW IF NOT EXISTS retrylens.rollup_marks_of_prices TO retrylens.rollup_overlay_marks AS
SELECT 'price' AS kind, provider, model AS name, valid_from,
    generateUUIDv4() AS mark, now64(3, 'UTC') AS marked_at, toInt8(1) AS sign
FROM retrylens.prices;

-- What finalisers did: 'marked' = every minute that had attempts was marked, from
-- then on marks tell all; 'pass' = all marks that were there at its start are done.
CREATE TABLE IF NOT EXISTS retrylens.rollup_runs
(
    kind        Enum8('marked' = 1, 'pass' = 2),
    started_at  DateTime64(3, 'UTC'),
    finished_at DateTime64(3, 'UTC'),
    minutes     UInt64,
    expired     UInt64
)
ENGINE = MergeTree()
ORDER BY finished_at
TTL toDateTime(finished_at) + toIntervalDay(30);

-- 0006 alerts
-- What became of alerts: one row per episode (a group of a rule, from the moment its
-- condition held), the latest wins. body is the alert as JSON; the columns beside it
-- are for people.
CREATE TABLE IF NOT EXISTS retrylens.alerts
(
    rule        LowCardinality(String),
    group_key   String,
    active_at   DateTime64(3, 'UTC'),
    status      LowCardinality(String),
    severity    LowCardinality(String),
    fired_at    Nullable(DateTime64(3, 'UTC')),
    resolved_at Nullable(DateTime64(3, 'UTC')),
    body        String CODEC(ZSTD(1)),
    version     UInt64 DEFAULT toUnixTimestamp64Nano(now64(9))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (rule, group_key, active_at)
TTL toDateTime(active_at) + toIntervalDay(400);

-- Who evaluates alerts: each analyzer says that it is there; of those heard of lately the
-- one that came first does.
CREATE TABLE IF NOT EXISTS retrylens.leases
(
    name     String,
    holder   String,
    since    DateTime64(3, 'UTC'),
    at       DateTime64(3, 'UTC') DEFAULT now64(3),
    released Bool
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (name, holder)
TTL toDateTime(at) + toIntervalDay(1);

-- 0007 detector
-- What the detector knows of each series, so that a restart forgets no baseline: one row
-- per series, the latest wins. body is detect.Detector.Snapshot.
CREATE TABLE IF NOT EXISTS retrylens.detector_states
(
    tenant   String,
    provider String,
    model    String,
    at       DateTime64(3, 'UTC') DEFAULT now64(3),
    body     String CODEC(ZSTD(3)),
    version  UInt64 DEFAULT toUnixTimestamp64Nano(now64(9))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (tenant, provider, model)
TTL toDateTime(at) + toIntervalDay(30);

-- 0008 rollup_views
-- Rollups for dashboards and for people: rows of whole minutes, hours and days that begin
-- within [from, to), the coarsest that fit; those of dead versions are left out. Counters
-- add up over rows. step is the width in seconds of what is drawn: no row is wider than
-- fits into it; 86400 for one sum. A filter is '*' or names, percent-encoded and separated by
-- commas, the list in braces or not, as Grafana's format percentencode has it.
-- kind 'home' are the counters; with kind 'spend', spend figures are by what was executed:
-- if(kind = 'spend', executed_provider, provider). latency_n of the operations took
-- latency_ms: quantileExactWeightedArray(0.99)(latency_ms, latency_n) is within 0.4 % of the
-- nearest rank, for filters by tenant, provider and model only. Unlike a report, the rows lack
-- what has changed since the last pass of the finaliser.
CREATE VIEW IF NOT EXISTS retrylens.rollups_between AS
WITH
    (list, name) -> list = '*' OR list = '%2A' OR has(splitByChar(',', decodeURLComponent(if(startsWith(list, '%7B'), substring(list, 4, length(list) - 6), list))), name) AS chosen,
    toUnixTimestamp({from:DateTime}) AS from_s,
    toUnixTimestamp({to:DateTime}) AS to_s,
    toDateTime(if({step:UInt32} % 3600 = 0, intDiv(from_s + 3599, 3600) * 3600, to_s), 'UTC') AS hours_from,
    toDateTime(intDiv(to_s, 3600) * 3600, 'UTC') AS hours_to,
    toDateTime(if({step:UInt32} % 86400 = 0, intDiv(from_s + 86399, 86400) * 86400, to_s), 'UTC') AS days_from,
    toDateTime(intDiv(to_s, 86400) * 86400, 'UTC') AS days_to,
    idx -> multiIf(idx > 32767, toInt64(idx) - 65536, idx < 256, toInt64(idx),
        bitShiftLeft(toInt64(idx) - (intDiv(idx, 128) - 1) * 128, greatest(0, intDiv(idx, 128) - 1)) + bitShiftLeft(toInt64(1), greatest(0, intDiv(idx, 128) - 2))) AS middle
SELECT * EXCEPT (next_loss_ms, last_loss_ms, latency_idx, retry_tax_idx),
    arrayMap(middle, latency_idx) AS latency_ms,
    arrayMap(middle, retry_tax_idx) AS retry_tax_ms
FROM retrylens.rollups
WHERE kind IN ('home', 'spend')
    AND bucket >= {from:DateTime} AND bucket < {to:DateTime}
    AND
    (
        level = 'day' AND bucket >= days_from AND bucket < days_to
        OR level = 'hour' AND bucket >= hours_from AND bucket < hours_to AND NOT (bucket >= days_from AND bucket < days_to)
        OR level = 'minute' AND NOT (bucket >= hours_from AND bucket < hours_to)
    )
    AND chosen({tenant:String}, tenant) AND chosen({service:String}, service) AND chosen({environment:String}, environment)
    AND chosen({provider:String}, provider) AND chosen({model:String}, model)
    AND (level, bucket, version) GLOBAL IN
    (
        SELECT level, bucket, max(version)
        FROM retrylens.rollups
        WHERE kind = 'bucket' AND bucket >= {from:DateTime} AND bucket < {to:DateTime}
        GROUP BY level, bucket
    );

-- 0009 overlays_checked
-- What finance says is refused where no figure could be made of it: an amount is never
-- negative.
ALTER TABLE retrylens.settlements ADD CONSTRAINT IF NOT EXISTS cost_is_not_negative CHECK ifNull(cost_usd, 0) >= 0;

ALTER TABLE retrylens.prices ADD CONSTRAINT IF NOT EXISTS prices_are_not_negative
    CHECK prompt_usd_per_million >= 0 AND cached_prompt_usd_per_million >= 0 AND cache_write_usd_per_million >= 0 AND completion_usd_per_million >= 0;

