package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
)

// consoleSource answers from a store that may be away.
type consoleSource struct {
	store    *lateStore
	version  string
	began    time.Time
	alerting *alerting
	watcher  *watcher
}

// asked is what ask got of the store; an error that may pass is api.ErrUnavailable.
func asked[T any](ctx context.Context, s *consoleSource, ask func(*Store) (T, error)) (T, error) {
	store, err := s.store.get(ctx)
	var got T
	if err == nil {
		got, err = ask(store)
	}
	if err != nil && ctx.Err() == nil && (errors.Is(err, ErrUnreachable) || clickhouse.Classify(err) == clickhouse.KindRetry) {
		err = fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return got, err
}

// Report is Store.Report.
func (s *consoleSource) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	return asked(ctx, s, func(st *Store) (*metrics.Report, error) { return st.Report(ctx, q) })
}

// Operations is Store.Operations.
func (s *consoleSource) Operations(ctx context.Context, q metrics.Search) ([]metrics.Operation, error) {
	return asked(ctx, s, func(st *Store) ([]metrics.Operation, error) { return st.Operations(ctx, q) })
}

// Attempts is Store.Attempts.
func (s *consoleSource) Attempts(ctx context.Context, id string, tenants ...string) ([]retrylens.Attempt, error) {
	return asked(ctx, s, func(st *Store) ([]retrylens.Attempt, error) { return st.Attempts(ctx, id, tenants...) })
}

// Completeness is Store.Completeness.
func (s *consoleSource) Completeness(ctx context.Context, tenants ...string) (*metrics.Completeness, error) {
	return asked(ctx, s, func(st *Store) (*metrics.Completeness, error) { return st.Completeness(ctx, tenants...) })
}

// Status asks the store for all there is to know of it.
func (s *consoleSource) Status(ctx context.Context) (api.Status, error) {
	return asked(ctx, s, func(st *Store) (api.Status, error) { return storeStatus(ctx, st, s.version, s.began) })
}

// EachDetectorState is Store.EachDetectorState.
func (s *consoleSource) EachDetectorState(ctx context.Context, each func([]byte) error) error {
	_, err := asked(ctx, s, func(st *Store) (struct{}, error) { return struct{}{}, st.EachDetectorState(ctx, each) })
	return err
}

// SaveDetectorStates is Store.SaveDetectorStates.
func (s *consoleSource) SaveDetectorStates(ctx context.Context, states []clickhouse.DetectorState) error {
	_, err := asked(ctx, s, func(st *Store) (struct{}, error) { return struct{}{}, st.SaveDetectorStates(ctx, states) })
	return err
}

func (s *consoleSource) lag(ctx context.Context) (time.Duration, error) {
	return asked(ctx, s, func(st *Store) (time.Duration, error) {
		f, err := st.FinaliserStatus(ctx)
		return f.Lag, err
	})
}

func storeStatus(ctx context.Context, st *Store, version string, began time.Time) (api.Status, error) {
	s := api.Status{Version: version, StartedAt: began.UTC(), Store: st.Address.String(), Ingest: []api.IngestStatus{}}
	for _, ask := range []func() error{
		func() (err error) { s.ClickHouseVersion, err = st.Version(ctx); return err },
		func() (err error) { s.SchemaVersion, err = st.SchemaVersion(ctx); return err },
		func() (err error) { s.FreeBytes, err = st.FreeBytes(ctx); return err },
		func() error {
			keep, err := st.Retention(ctx)
			s.RetentionDays = int(keep / (24 * time.Hour))
			return err
		},
		func() error {
			newest, err := st.NewestAttemptAt(ctx)
			if !newest.IsZero() {
				s.NewestAttemptAt = &newest
			}
			return err
		},
		func() error { return finaliserStatus(ctx, st, &s.Finaliser) },
		func() error { return ingestStatuses(ctx, st, &s) },
	} {
		if err := ask(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func finaliserStatus(ctx context.Context, st *Store, to *api.FinaliserStatus) error {
	f, err := st.FinaliserStatus(ctx)
	if err != nil {
		return err
	}
	lag := f.Lag.Milliseconds()
	to.LagMS, to.DirtyMinutes, to.Usable = &lag, &f.DirtyMinutes, f.Usable
	if !f.LastRunAt.IsZero() {
		to.LastRunAt = &f.LastRunAt
	}
	return nil
}

func ingestStatuses(ctx context.Context, st *Store, to *api.Status) error {
	all, err := st.IngestStatuses(ctx)
	for _, i := range all {
		to.Ingest = append(to.Ingest, api.IngestStatus{
			Node: i.Node, StartedAt: i.StartedAt, ReportedAt: i.At, RejectedLines: i.RejectedLines, DeadLetters: i.DeadLetters,
			SpoolAgeMS: int64(i.SpoolAgeMS), SpoolBytes: int64(i.SpoolBytes),
		})
	}
	return err
}
