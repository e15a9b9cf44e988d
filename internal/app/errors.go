package app

import (
	"errors"
	"fmt"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
)

// Exit codes of every command but cmd/engine, which has its own.
const (
	ExitOK          = 0
	ExitFailure     = 1 // anything else
	ExitUsage       = 2 // a flag or an argument is wrong
	ExitThreshold   = 3 // a figure broke a --fail-on
	ExitUnreachable = 5 // the store cannot be reached or started
)

// ExitCodes documents them in every help text.
const ExitCodes = `Exit codes:
  0  all is well
  1  another failure
  2  a flag or argument is wrong
  3  a figure broke a --fail-on
  5  the store cannot be reached or started`

// ErrUnreachable marks errors of a store that cannot be reached or started.
var ErrUnreachable = clickhouse.ErrUnreachable

// UsageError is a flag or an argument that is wrong.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

func usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ErrThreshold is returned by a report whose figures broke a threshold; which
// ones was said on Streams.Err.
var ErrThreshold = errors.New("a threshold was broken")

// InterruptedError is what came of a command that was told to stop: whatever
// else the error says follows from that.
type InterruptedError struct{ Err error }

func (e *InterruptedError) Error() string { return "interrupted: " + e.Err.Error() }

// Unwrap returns what it was doing.
func (e *InterruptedError) Unwrap() error { return e.Err }

// ExitCode is the one table from error to exit code.
func ExitCode(err error) int {
	var usage *UsageError
	var interrupted *InterruptedError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &interrupted):
		return ExitFailure
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, ErrThreshold):
		return ExitThreshold
	case errors.Is(err, ErrUnreachable):
		return ExitUnreachable
	}
	return ExitFailure
}

// Message is what a command says of an error, "" for one that needs no words
// more.
func Message(err error) string {
	if err == nil || errors.Is(err, ErrThreshold) {
		return ""
	}
	return err.Error()
}

// engineError adds to an error of the embedded engine that it means an
// unreachable store, and what else one can do.
func engineError(dir string, err error) error {
	if errors.Is(err, engine.ErrUsage) {
		return &UsageError{Err: err}
	}
	return fmt.Errorf("%w at embedded:%s: %w", ErrUnreachable, dir, err)
}
