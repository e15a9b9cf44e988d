package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// ingestSilence is after how long an ingest node that says nothing is gone.
const ingestSilence = 10 * time.Minute

// IngestStatus is what a run of an ingest node says of itself. Counts are since
// StartedAt.
type IngestStatus struct {
	Node          string // unique among the nodes that run at the same time
	StartedAt     time.Time
	At            time.Time
	RejectedLines uint64
	DeadLetters   uint64
	SpoolBytes    uint64
	SpoolAgeMS    uint64 // 0 = the spool is empty
}

// WriteIngestStatus replaces what the run of that node said before.
func (s *Store) WriteIngestStatus(ctx context.Context, st IngestStatus) error {
	b, err := s.conn.PrepareBatch(s.with(ctx, nil), "INSERT INTO "+s.database+
		".ingest_status (node, started_at, at, rejected_lines, dead_letters, spool_bytes, spool_age_ms)")
	if err == nil {
		defer b.Abort() //nolint:errcheck // after Send it does nothing
		err = b.Append(st.Node, st.StartedAt.UTC(), st.At.UTC(), st.RejectedLines, st.DeadLetters, st.SpoolBytes, st.SpoolAgeMS)
	}
	if err == nil {
		err = b.Send()
	}
	if err != nil {
		return fmt.Errorf("clickhouse: write the ingest status: %w", err)
	}
	return nil
}

// IngestStatuses are the latest words of the nodes that spoke lately, by name.
func (s *Store) IngestStatuses(ctx context.Context) ([]IngestStatus, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT node, argMax(started_at, at), max(at) AS last, argMax(rejected_lines, at), argMax(dead_letters, at),"+
		" argMax(spool_bytes, at), argMax(spool_age_ms, at) FROM "+s.database+".ingest_status"+
		" GROUP BY node HAVING last > now64(3) - toIntervalSecond({silence:UInt32}) ORDER BY node",
		clickhouse.Named("silence", uint32(ingestSilence.Seconds())))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read the ingest status: %w", err)
	}
	defer rows.Close()
	var out []IngestStatus
	for rows.Next() {
		var st IngestStatus
		if err := rows.Scan(&st.Node, &st.StartedAt, &st.At, &st.RejectedLines, &st.DeadLetters, &st.SpoolBytes, &st.SpoolAgeMS); err != nil {
			return nil, fmt.Errorf("clickhouse: read the ingest status: %w", err)
		}
		out = append(out, st)
	}
	return out, rows.Err()
}

// ingestStatus is what the ingest nodes said: counts of all runs that are remembered, the
// age of nodes that spoke lately. Without any it stays unset.
func (s *Store) ingestStatus(ctx context.Context) (c metrics.Completeness, err error) {
	var speaking, rejected, dead, age uint64
	err = s.conn.QueryRow(s.with(ctx, nil), "SELECT countIf(last > now64(3) - toIntervalSecond({silence:UInt32})), sum(rejected), sum(dead),"+
		" maxIf(age, last > now64(3) - toIntervalSecond({silence:UInt32}))"+
		" FROM (SELECT max(at) AS last, max(rejected_lines) AS rejected, max(dead_letters) AS dead, argMax(spool_age_ms, at) AS age"+
		" FROM "+s.database+".ingest_status GROUP BY node, started_at)",
		clickhouse.Named("silence", uint32(ingestSilence.Seconds()))).Scan(&speaking, &rejected, &dead, &age)
	if isUnknownTable(err) {
		return c, nil // the schema is older than the table
	}
	if err != nil || speaking == 0 {
		return c, err
	}
	c.RejectedLines, c.DeadLetters = retrylens.Some(rejected), retrylens.Some(dead)
	c.SpoolAgeMS = retrylens.Some(int64(age))
	return c, nil
}
