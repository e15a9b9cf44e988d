package effects

import (
	"context"
	"fmt"
	"time"

	"github.com/retrylens/retrylens/retry/clock"
)

// hold renews a lease until release is called, and returns a
// context that is cancelled (cause ErrLeaseLost) while there is still time, if that
// fails: a try every third of the lease that may take a sixth, given up when half of the lease
// has passed since the last success, so at the latest after five sixths. taken is when the lease
// was asked for: if that is a third of it ago, because the process or the database stood still, it
// is renewed before anything is done under it, and ErrLeaseLost says that nothing must be.
func (s *Store) hold(ctx context.Context, taken time.Time, renew func(context.Context) (ours bool, err error)) (held context.Context, release func(), lost error) {
	renewed := taken
	if now := s.timer.Now(); now.Sub(taken) >= s.o.Lease/3 {
		renewed = now
		ours, err := s.renew(ctx, renew)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%w: %w", ErrLeaseLost, err)
		case !ours:
			return nil, nil, fmt.Errorf("%w: another process has it", ErrLeaseLost)
		}
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for clock.Sleep(held, s.timer, s.o.Lease/3) == nil {
			began := s.timer.Now()
			ours, err := s.renew(held, renew)
			switch {
			case err == nil && ours:
				renewed = began
			case err == nil:
				cancel(fmt.Errorf("%w: another process has it", ErrLeaseLost))
			case s.timer.Now().Sub(renewed) >= s.o.Lease/2:
				cancel(fmt.Errorf("%w: %w", ErrLeaseLost, err))
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-done
	}, nil
}

func (s *Store) renew(ctx context.Context, renew func(context.Context) (bool, error)) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Lease/6)
	defer cancel()
	return renew(ctx)
}

// limited gives ctx a time limit; 0 = none.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}
