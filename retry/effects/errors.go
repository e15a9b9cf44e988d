package effects

import (
	"errors"
	"fmt"
	"time"
)

// Errors, to be told apart with errors.Is.
var (
	// ErrUndeclared: an action without the permission that is needed.
	ErrUndeclared = errors.New("effects: no fitting retry permission is declared")
	// ErrConflict: the key was used for something else.
	ErrConflict = errors.New("effects: the key was used with other arguments; a new intent needs a new key")
	// ErrInFlight: another process or goroutine has the key now. Ask again later.
	ErrInFlight = errors.New("effects: the key is in flight elsewhere")
	// ErrUnknown: the action may have happened, and nobody may repeat it before that is
	// known.
	ErrUnknown = errors.New("effects: whether it happened is not known")
	// ErrStepsChanged: the steps of a run are not those that it began with.
	ErrStepsChanged = errors.New("effects: the steps of the run have changed")
	// ErrContended: the database undid a statement or a transaction because of others at the
	// same time (a serialization failure, a deadlock, a busy SQLite). Nothing of it has
	// happened; the same may be tried again at once. The package has tried its own statements
	// several times by then; a transaction is its caller's to roll back and to repeat.
	ErrContended = errors.New("effects: the database gave way to other transactions")
	// ErrLeaseLost is the cause of the context of an action whose owner could not renew
	// its lease in time.
	ErrLeaseLost = errors.New("effects: the lease could not be renewed")
)

// KeyError says what a key is waiting for. It wraps ErrInFlight or ErrUnknown, and what
// made the last call fail.
type KeyError struct {
	Key   string
	Tool  string        // "" for Once
	After time.Duration // ask again after about so long; 0 = at once, or never without a person
	Hint  string        // what to do
	Err   error
}

func (e *KeyError) Error() string {
	text := fmt.Sprintf("%v: key %.64q", e.Err, e.Key)
	if e.Tool != "" {
		text += fmt.Sprintf(" of tool %q", e.Tool)
	}
	if e.After > 0 {
		text += fmt.Sprintf(" (for %v)", e.After.Round(time.Millisecond))
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap gives ErrInFlight or ErrUnknown, and the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// NotHappened marks the error of a call that surely had no effect: nothing was sent, or
// the receiver refused. The key may then be used again whatever the permission. nil stays
// nil.
func NotHappened(err error) error {
	if err == nil {
		return nil
	}
	return &notHappenedError{err}
}

type notHappenedError struct{ err error }

func (e *notHappenedError) Error() string { return e.err.Error() }
func (e *notHappenedError) Unwrap() error { return e.err }

// Poison marks the error of a dispatch that will fail however often it is tried: the
// message is set aside at once. nil stays nil.
func Poison(err error) error {
	if err == nil {
		return nil
	}
	return &poisonError{err}
}

type poisonError struct{ err error }

func (e *poisonError) Error() string { return e.err.Error() }
func (e *poisonError) Unwrap() error { return e.err }

// marked tells whether err is one of kind T.
func marked[T error](err error) bool {
	var mark T
	return errors.As(err, &mark)
}

func inFlight(c *call, after time.Duration) error {
	return &KeyError{Key: c.key, Tool: c.tool, Err: ErrInFlight, After: after, Hint: "ask again under the same key"}
}

// unknown is the error of a call that may have happened.
func unknown(c *call, v verdict) error {
	e := &KeyError{Key: c.key, Tool: c.tool, Err: ErrUnknown, After: v.after, Hint: "ask again under the same key, or let Reconcile find out"}
	if v.cause != nil {
		e.Err = fmt.Errorf("%w: %w", ErrUnknown, v.cause)
	}
	if v.next == hopeless {
		e.Hint = "it is set aside: find out at the receiver and tell by Settle"
	}
	return e
}
