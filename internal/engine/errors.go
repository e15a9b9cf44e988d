package engine

import (
	"errors"
	"fmt"
)

// What can go wrong.  The text around them says what to do.
var (
	// ErrClosed is returned by a Client after Close.
	ErrClosed = errors.New("engine: client is closed")
	// ErrNoBinary: the engine's executable was not found.
	ErrNoBinary = errors.New("engine: executable not found")
	// ErrNoLibrary: libchdb.so is missing, or cannot be loaded here.
	ErrNoLibrary = errors.New("engine: libchdb.so cannot be used")
	// ErrLocked: another process holds the data directory and is no engine that
	// could be used, or it may not be written.
	ErrLocked = errors.New("engine: data directory is locked")
	// ErrPortBusy: somebody else listens on the port asked for.
	ErrPortBusy = errors.New("engine: port is busy")
	// ErrTimeout: the engine did not answer in time.
	ErrTimeout = errors.New("engine: no answer in time")
	// ErrStop: the engine did not stop in time and was ended.
	ErrStop = errors.New("engine: did not stop in time")
	// ErrNotUp: no engine runs where one was looked for.
	ErrNotUp = errors.New("engine: none runs")
	// ErrUsage: an option is wrong.
	ErrUsage = errors.New("engine: usage")
)

// Exit codes of cmd/engine.
const (
	ExitOK        = 0
	ExitFailure   = 1 // anything else
	ExitUsage     = 2
	ExitNoLibrary = 3
	ExitLocked    = 4
	ExitPortBusy  = 5
	ExitTimeout   = 6
	ExitStop      = 7
	ExitNotUp     = 8 // engine status: no engine runs
)

// exits is the one table from error to exit code and back.
var exits = []struct {
	err  error
	code int
}{
	{ErrUsage, ExitUsage},
	{ErrNoLibrary, ExitNoLibrary},
	{ErrLocked, ExitLocked},
	{ErrPortBusy, ExitPortBusy},
	{ErrTimeout, ExitTimeout},
	{ErrStop, ExitStop},
	{ErrNotUp, ExitNotUp},
}

// ExitCode is the exit code for err.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	for _, e := range exits {
		if errors.Is(err, e.err) {
			return e.code
		}
	}
	return ExitFailure
}

// FromExit is the error of a command that ended with code and said text.
func FromExit(code int, text string) error {
	for _, e := range exits {
		if code == e.code {
			return &exitError{err: e.err, text: text}
		}
	}
	return fmt.Errorf("engine: %s (exit code %d)", text, code)
}

// exitError is an error that another process told of: its text has the sentinel's
// words already.
type exitError struct {
	err  error
	text string
}

func (e *exitError) Error() string {
	if e.text == "" {
		return e.err.Error()
	}
	return e.text
}
func (e *exitError) Unwrap() error { return e.err }
