package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// The defaults of a Finaliser.
const (
	DefaultFinaliseEvery  = 15 * time.Second
	DefaultFinaliseMinAge = 30 * time.Second
)

// FinaliserOptions say how a Finaliser runs.
type FinaliserOptions struct {
	Every  time.Duration // pause between passes; 0 = DefaultFinaliseEvery
	MinAge time.Duration // see FinaliseOptions; 0 = DefaultFinaliseMinAge
	Logger *slog.Logger  // nil = none

	// Pause waits that long or until ctx ends, which is its error; nil = a timer.
	Pause func(ctx context.Context, d time.Duration) error

	// Done is called after each pass; nil = nobody.
	Done func(FinaliseResult, error)
}

// Finaliser keeps the rollups up to date, pass after pass. Any number of them may
// run at once, in any number of processes.
type Finaliser struct {
	store *Store
	o     FinaliserOptions
}

// NewFinaliser makes a finaliser; Run starts it.
func NewFinaliser(s *Store, o FinaliserOptions) *Finaliser {
	if o.Every == 0 {
		o.Every = DefaultFinaliseEvery
	}
	if o.MinAge == 0 {
		o.MinAge = DefaultFinaliseMinAge
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	return &Finaliser{store: s, o: o}
}

// Run works until ctx ends and returns its error. A pass that fails is logged and
// tried again after the usual pause, doubled up to 16 times as long while passes
// fail one after the other.
func (f *Finaliser) Run(ctx context.Context) error {
	const longest = 16
	wait := f.o.Every
	for {
		r, err := f.store.Finalise(ctx, FinaliseOptions{MinAge: f.o.MinAge})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.o.Done != nil {
			f.o.Done(r, err)
		}
		if err != nil {
			f.o.Logger.Error("rollups: a pass failed and will be tried again", "error", err, "after", wait)
		} else {
			wait = f.o.Every
			f.log(r)
		}
		if err := f.o.Pause(ctx, wait); err != nil {
			return err
		}
		if err != nil {
			wait = min(2*wait, longest*f.o.Every)
		}
	}
}

func (f *Finaliser) log(r FinaliseResult) {
	if r.MergeErr != nil {
		f.o.Logger.Debug("rollups: marks that are done were not merged; reports read them", "error", r.MergeErr)
	}
	if r.Expired > 0 {
		f.o.Logger.Warn("rollups: changes to minutes whose attempts have expired are not counted", "minutes", r.Expired)
	}
	if r.Minutes > 0 {
		f.o.Logger.Debug("rollups: a pass is done", "minutes", r.Minutes, "hours", r.Hours, "days", r.Days, "waiting", r.Waiting, "took", r.Took)
	}
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

// FinaliserStatus says how far the rollups are behind the attempts. Reports are
// exact all the same: what rollups have not seen is read from attempts.
type FinaliserStatus struct {
	DirtyMinutes uint64        // minutes with rows that no rollup has seen
	Lag          time.Duration // since the oldest of these was marked; 0 without any
	LastRunAt    time.Time     // when the last pass ended; zero = never, or longer ago than marks are kept
	Usable       bool          // reports use the rollups; not so before the first pass, and while settlements or prices wait
	At           time.Time     // the server's clock
}

// FinaliserStatus asks the store how far its rollups are.
func (s *Store) FinaliserStatus(ctx context.Context) (FinaliserStatus, error) {
	st, err := s.standing(ctx, momentOf(ctx))
	if err != nil {
		return FinaliserStatus{}, err
	}
	if !st.rolled {
		return FinaliserStatus{}, fmt.Errorf("clickhouse: the store has no rollups yet: run analyze migrate")
	}
	return st.status(), nil
}
