package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// completeness tells what is missing: per emitter, over all lines it ever sent
// whatever the window; filtered by tenant, of those tenants only.
func (s *Store) completeness(ctx context.Context, q metrics.Query, total metrics.Counters) (*metrics.Completeness, error) {
	gaps, err := s.emitterGaps(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: completeness: %w", err)
	}
	c := &metrics.Completeness{}
	c.SetGaps(gaps)
	if total.ExecutedAttempts > 0 {
		c.KnownUsageRatio = retrylens.Some(float64(total.ExecutedKnownUsage) / float64(total.ExecutedAttempts))
	}
	if err := s.ingestStatus(ctx, q, c); err != nil {
		return nil, fmt.Errorf("clickhouse: completeness: %w", err)
	}
	switch st, err := s.FinaliserStatus(ctx); {
	case isUnknownTable(err): // the schema is older than the rollups
	case err != nil:
		return nil, fmt.Errorf("clickhouse: completeness: %w", err)
	case st.Usable:
		c.FinaliserLagMS = retrylens.Some(st.Lag.Milliseconds())
	}
	return c, nil
}

// Completeness tells what is missing, of every tenant or of those given; what only a
// report can tell is not set.
func (s *Store) Completeness(ctx context.Context, tenants ...string) (*metrics.Completeness, error) {
	q := metrics.Query{Filters: map[metrics.Dimension][]string{metrics.DimTenant: tenants}}
	return s.completeness(ctx, q, metrics.Counters{})
}

// isUnknownTable tells the error of a table that the schema of the store does not have
// yet.
func isUnknownTable(err error) bool {
	const unknownTable = 60
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == unknownTable
}

func (s *Store) emitterGaps(ctx context.Context, q metrics.Query) ([]metrics.EmitterGap, error) {
	text := "SELECT tenant, emitter, max(max_seq) AS top, groupBitmapMerge(seqs) AS seen FROM " + s.database + ".emitter_seqs WHERE 1"
	var params []any
	if tenants := q.Filters[metrics.DimTenant]; len(tenants) > 0 {
		text += " AND tenant IN {tenant:Array(String)}"
		params = append(params, clickhouse.Named("tenant", tenants))
	}
	text += " GROUP BY tenant, emitter"
	rows, err := s.conn.Query(s.with(ctx, nil), text, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []metrics.EmitterGap
	for rows.Next() {
		var g metrics.EmitterGap
		if err := rows.Scan(&g.Tenant, &g.Emitter, &g.MaxSeq, &g.Distinct); err != nil {
			return nil, err
		}
		g.Missing = g.MaxSeq + 1 - g.Distinct
		out = append(out, g)
	}
	return out, rows.Err()
}
