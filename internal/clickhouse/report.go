package clickhouse

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// Report answers a query, exactly but for quantiles, which are within 0.4 %; with
// Query.Bucket it is a series, a row for each bucket and group.
//
// Windows of up to 6 hours are read from attempts, longer ones from rollups where
// these have seen everything, and from attempts elsewhere: at edges off a minute,
// for what was inserted since the last run of the finaliser, and where an as_of
// would judge unfinished operations otherwise. Both agree on every figure. Rollups
// hold quantiles by tenant, provider and model; for others attempts are read if
// they are up to 5 million, beyond that they are named in Report.Unknown. Where the
// attempts have expired rollups are all that is read, in short windows too; where those
// by minute have as well, the window is widened to whole hours, as the report's From, To
// and Bucket say.
//
// Attempts are read in slices of bounded size, so that memory in the engine does
// not grow with the window.
func (s *Store) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	if err := q.Validate(); err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	if _, err := rollup.Needed(q.Needs); err != nil {
		return nil, fmt.Errorf("clickhouse: %w", err)
	}
	m := momentOf(ctx)
	q, err := s.wholeHours(ctx, m, q)
	if err != nil {
		return nil, err
	}
	f := newFolder(q)
	var unknown []string
	var c *metrics.Completeness
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { unknown, err = s.fold(gctx, m, f, q); return err })
	g.Go(func() (err error) { c, err = s.completeness(gctx, m, q); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if f.total.ExecutedAttempts > 0 {
		c.KnownUsageRatio = retrylens.Some(float64(f.total.ExecutedKnownUsage) / float64(f.total.ExecutedAttempts))
	}
	report := metrics.NewReport(q, f.rows(len(unknown) == 0), f.total.Open, c)
	report.Unknown = unknown
	return report, nil
}

// fold adds everything that q asks for and returns the figures that it could not.
func (s *Store) fold(ctx context.Context, m *moment, f *folder, q metrics.Query) (unknown []string, err error) {
	expired, err := s.expired(ctx, m, q)
	if err != nil {
		return nil, err
	}
	if !sketched(q) && !q.Spend() {
		if unknown, err = s.unknownQuantiles(ctx, q, expired > 0); err != nil {
			return nil, err
		}
		if unknown == nil {
			return nil, s.foldAttempts(ctx, f, q)
		}
	}
	done, err := s.foldRollups(ctx, m, f, q, expired)
	if err == nil && !done {
		f.reset()
		return nil, s.foldAttempts(ctx, f, q)
	}
	return unknown, err
}

// unknownQuantiles are the figures that rollups do not hold, unless the window has
// few enough attempts to read them, none of which has expired, and they are asked for.
func (s *Store) unknownQuantiles(ctx context.Context, q metrics.Query, expired bool) ([]string, error) {
	if !expired && s.short(q) {
		return nil, nil
	}
	if expired || q.CountersOnly {
		return quantileFigures, nil
	}
	count := s.estimate
	if s.config.Cluster != "" { // no estimate through a Distributed table
		count = s.countAttempts
	}
	rows, err := count(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("clickhouse: estimate the window: %w", err)
	}
	if rows <= s.quantileRows {
		return nil, nil
	}
	return quantileFigures, nil
}

// quantileFigures are those that rollups hold by some dimensions only.
var quantileFigures = []string{"latency_ms", "retry_tax_ms"}
