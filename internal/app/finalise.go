package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
)

// The defaults of FinaliseOptions.
const (
	DefaultFinaliseEvery  = clickhouse.DefaultFinaliseEvery
	DefaultFinaliseMinAge = clickhouse.DefaultFinaliseMinAge
)

// FinaliseOptions say how rollups are brought up to date.
type FinaliseOptions struct {
	Store      StoreOptions
	Once       bool // one pass over everything that is marked; else pass after pass until ctx ends
	Everything bool // mark every minute that has attempts first
	Every      time.Duration
	MinAge     time.Duration
	JSON       bool // results as JSON, a line each, instead of words
	Streams    Streams
}

// Finalise runs a finaliser and writes the result of each pass that did something,
// of --once always, to Streams.Out.
func Finalise(ctx context.Context, o FinaliseOptions) (err error) {
	switch {
	case o.Every < 0 || o.MinAge < 0:
		return usagef("--every and --min-age must not be negative")
	case o.Everything && !o.Once:
		return usagef("--everything goes with --once")
	}
	store, err := openReadable(ctx, o.Store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if o.Once {
		return finaliseOnce(ctx, store.Store, o)
	}
	return finaliseForever(ctx, store.Store, o)
}

func finaliseOnce(ctx context.Context, store *clickhouse.Store, o FinaliseOptions) error {
	r, err := store.Finalise(ctx, clickhouse.FinaliseOptions{Everything: o.Everything, Progress: o.progress()})
	if err != nil {
		return err
	}
	return o.write(r)
}

// progress writes a line every 10 seconds.
func (o FinaliseOptions) progress() func(done, of int) {
	last := time.Now()
	return func(done, of int) {
		if now := time.Now(); now.Sub(last) >= 10*time.Second && o.Streams.Err != nil {
			last = now
			fmt.Fprintf(o.Streams.Err, "rollups: %d of %d minutes\n", done, of)
		}
	}
}

func finaliseForever(ctx context.Context, store *clickhouse.Store, o FinaliseOptions) error {
	w := o.Streams.Err
	if w == nil {
		w = io.Discard
	}
	var failed error
	f := clickhouse.NewFinaliser(store, clickhouse.FinaliserOptions{
		Every: o.Every, MinAge: o.MinAge, Logger: slog.New(slog.NewTextHandler(w, nil)),
		Done: func(r clickhouse.FinaliseResult, err error) {
			if err == nil && r.Minutes+r.Expired > 0 {
				failed = errors.Join(failed, o.write(r))
			}
		},
	})
	if err := f.Run(ctx); !errors.Is(err, context.Canceled) {
		return errors.Join(err, failed)
	}
	return failed // to be ended is how it ends
}

// finaliseJSON is a result as JSON.
type finaliseJSON struct {
	Minutes int   `json:"minutes"`
	Hours   int   `json:"hours"`
	Days    int   `json:"days"`
	Rows    int   `json:"rows"`
	Expired int   `json:"expired"`
	Waiting int   `json:"waiting"`
	TookMS  int64 `json:"took_ms"`
}

func (o FinaliseOptions) write(r clickhouse.FinaliseResult) error {
	if o.JSON {
		return json.NewEncoder(o.Streams.Out).Encode(finaliseJSON{r.Minutes, r.Hours, r.Days, r.Rows, r.Expired, r.Waiting, r.Took.Milliseconds()})
	}
	_, err := fmt.Fprintf(o.Streams.Out, "%d minutes, %d hours, %d days computed in %s\n", r.Minutes, r.Hours, r.Days, r.Took.Round(time.Millisecond))
	if err == nil && r.Expired > 0 {
		_, err = fmt.Fprintf(o.Streams.Out, "%d minutes changed whose attempts have expired: their rollups stay as they were\n", r.Expired)
	}
	return err
}
