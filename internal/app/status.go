package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	Every time.Duration // of Watch: between looks; 0 = DefaultWatchEvery
	Count int           // of Watch: looks, 0 = until ctx ends
	Pause func(context.Context, time.Duration) error
}

// DefaultWatchEvery is the time between two looks of Watch.
const DefaultWatchEvery = 5 * time.Second

// statusWindow is how far back a status looks, in buckets of statusBucket.
const (
	statusWindow = time.Hour
	statusBucket = 2 * time.Minute
)

// ShowStatus writes how the store is, and what the last hour was like.
func ShowStatus(ctx context.Context, o StatusOptions) error {
	o.Count = 1
	return Watch(ctx, o)
}

// clearScreen moves to the top of a terminal and clears it.
const clearScreen = "\x1b[H\x1b[2J"

// Watch writes the status again and again.
func Watch(ctx context.Context, o StatusOptions) (err error) {
	if err := o.fill(); err != nil {
		return err
	}
	store, err := openReadable(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for n := 1; ; n++ {
		if o.Count != 1 && isTerminal(o.Streams.Out) {
			fmt.Fprint(o.Streams.Out, clearScreen)
		}
		if err := o.look(ctx, store); err != nil {
			return err
		}
		if n == o.Count {
			return nil
		}
		if err := o.Pause(ctx, o.Every); err != nil {
			return nil // ended by who watches
		}
	}
}

func (o *StatusOptions) fill() error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Every == 0 {
		o.Every = DefaultWatchEvery
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	switch {
	case o.Format != "" && o.Format != "text" && o.Format != "json":
		return usagef("--output must be text or json, got %.40q", o.Format)
	case o.Every < time.Second:
		return usagef("--every must be at least 1s, got %v", o.Every)
	case o.Count < 0:
		return usagef("--count must not be negative, got %d", o.Count)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (o StatusOptions) look(ctx context.Context, store *Store) error {
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
