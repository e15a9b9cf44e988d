package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// completeness tells what is missing: per emitter, over all lines it ever sent
// whatever the window; filtered by tenant, of those tenants only. What only a report can
// tell is not set.
func (s *Store) completeness(ctx context.Context, m *moment, q metrics.Query) (*metrics.Completeness, error) {
	tenants := q.Filters[metrics.DimTenant]
	var gaps []metrics.EmitterGap
	var ingest metrics.Completeness
	var st *standing
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		gaps, err = once(gctx, m, s, fmt.Sprintf("gaps %q", tenants), func(ctx context.Context) ([]metrics.EmitterGap, error) { return s.emitterGaps(ctx, tenants) })
		return err
	})
	if len(tenants) == 0 { // the figures of ingest are of all
		g.Go(func() (err error) { ingest, err = once(gctx, m, s, "ingest", s.ingestStatus); return err })
	}
	g.Go(func() (err error) { st, err = s.standing(gctx, m); return err })
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("clickhouse: completeness: %w", err)
	}
	c := &ingest
	c.SetGaps(gaps)
	if st.usable {
		c.FinaliserLagMS = retrylens.Some(st.status().Lag.Milliseconds())
	}
	return c, nil
}

// Completeness tells what is missing, of every tenant or of those given; what only a
// report can tell is not set.
func (s *Store) Completeness(ctx context.Context, tenants ...string) (*metrics.Completeness, error) {
	q := metrics.Query{Filters: map[metrics.Dimension][]string{metrics.DimTenant: tenants}}
	return s.completeness(ctx, momentOf(ctx), q)
}

// isUnknownTable tells the error of a table that the schema of the store does not have
// yet.
func isUnknownTable(err error) bool {
	const unknownTable = 60
	var e *clickhouse.Exception
	return errors.As(err, &e) && e.Code == unknownTable
}

func (s *Store) emitterGaps(ctx context.Context, tenants []string) ([]metrics.EmitterGap, error) {
	text := "SELECT tenant, emitter, max(max_seq) AS top, groupBitmapMerge(seqs) AS seen FROM " + s.database + ".emitter_seqs WHERE 1"
	var params []any
	if len(tenants) > 0 {
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
