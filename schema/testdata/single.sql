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

