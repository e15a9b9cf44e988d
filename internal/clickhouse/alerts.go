package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// AlertRow is an episode of an alert as the store keeps it; Body is the alert in full.
type AlertRow struct {
	Rule, GroupKey string
	ActiveAt       time.Time
	Status         string
	Severity       string
	FiredAt        *time.Time
	ResolvedAt     *time.Time
	Body           string
}

// SaveAlerts replaces what was saved of the same episodes (rule, group key, active at)
// before.
func (s *Store) SaveAlerts(ctx context.Context, rows []AlertRow) error {
	b, err := s.conn.PrepareBatch(s.with(ctx, nil), "INSERT INTO "+s.database+
		".alerts (rule, group_key, active_at, status, severity, fired_at, resolved_at, body)")
	if err == nil {
		defer b.Abort() //nolint:errcheck // after Send it does nothing
		for i := range rows {
			r := &rows[i]
			if err = b.Append(r.Rule, r.GroupKey, r.ActiveAt.UTC(), r.Status, r.Severity, r.FiredAt, r.ResolvedAt, r.Body); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = b.Send()
	}
	if err != nil {
		return fmt.Errorf("clickhouse: save alerts: %w", err)
	}
	return nil
}

// LiveAlerts are the bodies of the episodes that are pending or firing, and of those
// resolved not longer ago than that.
func (s *Store) LiveAlerts(ctx context.Context, resolved time.Duration) ([]string, error) {
	return s.bodies(ctx, "status IN ('pending', 'firing') OR status = 'resolved' AND resolved_at > now64(3) - toIntervalMillisecond({resolved:Int64})"+
		" ORDER BY rule, group_key, active_at", clickhouse.Named("resolved", resolved.Milliseconds()))
}

// Incidents are the bodies of the episodes that fired and overlap [from, to), the latest
// first, at most limit.
func (s *Store) Incidents(ctx context.Context, from, to time.Time, limit int) ([]string, error) {
	return s.bodies(ctx, "fired_at IS NOT NULL AND fired_at < fromUnixTimestamp64Milli({to:Int64})"+
		" AND (resolved_at IS NULL OR resolved_at >= fromUnixTimestamp64Milli({from:Int64}))"+
		" ORDER BY fired_at DESC, rule, group_key LIMIT {limit:UInt32}",
		clickhouse.Named("from", from.UnixMilli()), clickhouse.Named("to", to.UnixMilli()), clickhouse.Named("limit", uint32(limit)))
}

// bodies reads the latest of each episode.
func (s *Store) bodies(ctx context.Context, where string, params ...any) ([]string, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT body FROM (SELECT rule, group_key, active_at, argMax(status, version) AS status,"+
		" argMax(tuple(fired_at), version).1 AS fired_at, argMax(tuple(resolved_at), version).1 AS resolved_at, argMax(body, version) AS body"+
		" FROM "+s.database+".alerts GROUP BY rule, group_key, active_at) WHERE "+where, params...)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read alerts: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			return nil, fmt.Errorf("clickhouse: read alerts: %w", err)
		}
		out = append(out, body)
	}
	return out, rows.Err()
}
