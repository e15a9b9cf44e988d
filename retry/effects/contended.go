package effects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/clock"
)

// Tries of one statement of this package's own. The waits between them are short (full
// jitter, 1 to 100 ms) and the operating system's: a clock that stands must not hold them up.
const (
	statementTries = 12
	statementTime  = 5 * time.Second // no further try after it: a busy_timeout may be in each
)

var statementBackoff = retry.Backoff{Base: 2 * time.Millisecond, Cap: 100 * time.Millisecond}

// contend runs a statement that is a transaction by itself, again if the database undid it
// because of others. In a transaction of the caller's it runs once: only the whole may be repeated.
func (s *Store) contend(ctx context.Context, q session, statement func() error) error {
	return contend(ctx, q == session(s.o.DB), statement)
}

// contend runs a transaction, again if it is our own one.
func contend(ctx context.Context, own bool, statement func() error) error {
	real := clock.Real()
	deadline := real.Now().Add(statementTime)
	for tries := 1; ; tries++ {
		err := statement()
		switch {
		case own && held(err), contended(err):
		default:
			return err
		}
		if !own || tries == statementTries || !real.Now().Before(deadline) ||
			clock.Sleep(ctx, real, max(statementBackoff.Delay(tries-1, 0, rand.Int64N), time.Millisecond)) != nil {
			return fmt.Errorf("%w (%d tries): %w", ErrContended, tries, err)
		}
	}
}

// contended tells whether PostgreSQL has undone the transaction because of others:
// serialization_failure, deadlock_detected.
func contended(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	code := state.SQLState()
	return code == "40001" || code == "40P01"
}
