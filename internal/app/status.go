package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/render"
)

// StatusOptions say whose status is shown.
type StatusOptions struct {
	Store   StoreOptions
	Format  string // text or json; "" = text
	Version string
	Streams Streams
	Now     func() time.Time    // nil = time.Now
	Getenv  func(string) string // nil = os.Getenv
}

// statusWindow is how far back a status looks, in buckets of statusBucket.
const (
	statusWindow = time.Hour
	statusBucket = 2 * time.Minute
)

// ShowStatus writes how the store is, and what the last hour was like.
func ShowStatus(ctx context.Context, o StatusOptions) (err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Format != "" && o.Format != "text" && o.Format != "json" {
		return usagef("--output must be text or json, got %.40q", o.Format)
	}
	store, err := openReadable(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := o.Now()
	st, err := storeStatus(ctx, store, o.Version, now)
	if err != nil {
		return err
	}
	if o.Format == "json" {
		if st.Completeness, err = store.Completeness(ctx); err != nil {
			return err
		}
		return json.NewEncoder(o.Streams.Out).Encode(st)
	}
	return o.text(ctx, store, st, now)
}

func (o StatusOptions) text(ctx context.Context, store *Store, st api.Status, now time.Time) error {
	out := render.StoreStatus{
		Store: st.Store, ClickHouseVersion: st.ClickHouseVersion, SchemaVersion: st.SchemaVersion, RetentionDays: st.RetentionDays,
		FreeBytes: st.FreeBytes, Now: now, RollupsUsable: st.Finaliser.Usable,
		RollupLag: time.Duration(*st.Finaliser.LagMS) * time.Millisecond, DirtyMinutes: *st.Finaliser.DirtyMinutes,
	}
	if st.NewestAttemptAt != nil {
		out.NewestAttemptAt = *st.NewestAttemptAt
	}
	if st.Finaliser.LastRunAt != nil {
		out.LastRunAt = *st.Finaliser.LastRunAt
	}
	for _, i := range st.Ingest {
		out.Ingest = append(out.Ingest, render.IngestNode{
			Node: i.Node, ReportedAt: i.ReportedAt, RejectedLines: i.RejectedLines, DeadLetters: i.DeadLetters,
			SpoolAge: time.Duration(i.SpoolAgeMS) * time.Millisecond, SpoolBytes: i.SpoolBytes,
		})
	}
	to := now.UTC().Truncate(time.Millisecond)
	q := metrics.Query{From: to.Add(-statusWindow), To: to, AsOf: to}
	var err error
	if out.Total, err = store.Report(ctx, q); err != nil {
		return err
	}
	q.Bucket = statusBucket
	if out.Last, err = store.Report(ctx, q); err != nil {
		return err
	}
	return render.Status(o.Streams.Out, out, screen(o.Streams.Out, o.Getenv))
}
