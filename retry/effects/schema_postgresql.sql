-- Times are Unix milliseconds by the database's clock: to_timestamp(created_ms / 1000.0).
CREATE TABLE IF NOT EXISTS retrylens_once (
	key         text   PRIMARY KEY,
	fingerprint text   NOT NULL, -- of the arguments
	result      bytea  NOT NULL, -- of the first run
	logical_id  text   NOT NULL, -- of the operation that had the effect
	created_ms  bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS retrylens_outbox (
	id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key         text    NOT NULL UNIQUE,
	topic       text    NOT NULL,
	payload     bytea   NOT NULL,
	fingerprint text    NOT NULL,             -- of topic and payload
	state       text    NOT NULL,             -- ready, done, set_aside
	attempts    integer NOT NULL DEFAULT 0,   -- dispatches begun
	spent       integer NOT NULL DEFAULT 0,   -- of them before it was last requeued
	lease       text    NOT NULL DEFAULT '',  -- of the dispatch in progress
	due_ms      bigint  NOT NULL,             -- no dispatch before; the end of the lease while there is one
	called_ms   bigint  NOT NULL DEFAULT 0,   -- first dispatch begun
	last_error  text    NOT NULL DEFAULT '',
	logical_id  text    NOT NULL,
	created_ms  bigint  NOT NULL,
	settled_ms  bigint  NOT NULL DEFAULT 0    -- done or set aside
);
CREATE INDEX IF NOT EXISTS retrylens_outbox_due ON retrylens_outbox (due_ms, id) WHERE state = 'ready';

CREATE TABLE IF NOT EXISTS retrylens_calls (
	key         text    PRIMARY KEY,
	tool        text    NOT NULL,
	run         text    NOT NULL,             -- '' = not a step of a run
	step        integer NOT NULL,             -- index in the run
	args        bytea   NOT NULL,
	fingerprint text    NOT NULL,             -- of args
	state       text    NOT NULL,             -- pending, committed, not_happened, unresolved
	result      bytea   NOT NULL,
	attempts    integer NOT NULL DEFAULT 1,   -- calls begun
	round       integer NOT NULL DEFAULT 0,   -- calls compensated
	lookups     integer NOT NULL DEFAULT 0,   -- in a row without an answer
	lease       text    NOT NULL,             -- of the owner
	due_ms      bigint  NOT NULL,             -- while pending: the end of the lease, or when to look again
	called_ms   bigint  NOT NULL,             -- first of the calls whose outcome is not known
	ended_ms    bigint  NOT NULL,             -- end of the last call, at the latest
	last_error  text    NOT NULL DEFAULT '',
	logical_id  text    NOT NULL,
	created_ms  bigint  NOT NULL,
	settled_ms  bigint  NOT NULL DEFAULT 0    -- no longer pending
);
CREATE INDEX IF NOT EXISTS retrylens_calls_due ON retrylens_calls (due_ms) WHERE state = 'pending';
CREATE INDEX IF NOT EXISTS retrylens_calls_run ON retrylens_calls (run, step) WHERE run <> '';
