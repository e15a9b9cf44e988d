package emit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Sink takes batches. Send is called by one goroutine at a time.
type Sink interface {
	// Send takes n records, one JSON object a line. It returns nil once they are safe
	// there, an error of [ErrRefused] or [ErrTooLarge] when sending them again is of no
	// use, and any other error when it is. It must end when ctx does.
	Send(ctx context.Context, lines []byte, n int) (Result, error)
	Close() error
}

// Result of a batch that was taken.
type Result struct {
	Rejected int   // of its records
	Reason   error // of the first of them
}

// Errors of sinks.
var (
	// ErrRefused: the batch will never be taken.
	ErrRefused = errors.New("emit: refused for good")
	// ErrTooLarge: a smaller batch would be taken.
	ErrTooLarge = errors.New("emit: batch too large")
)

// RetryAfterError is a failure after which the sink asked for a wait.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// File returns a sink that appends NDJSON to a file of its own, which `ingest import` reads. A
// batch that could not be written whole is taken back, so that no line is torn. A pipe must have
// its reader already.
func File(path string) (Sink, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0o600) // else a pipe without a reader holds up the program
	if errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("emit: nobody reads the pipe; start its reader first: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("emit: %w", err)
	}
	return &fileSink{f: f}, nil
}

type fileSink struct{ f *os.File }

func (s *fileSink) Send(_ context.Context, lines []byte, _ int) (Result, error) {
	before, err := s.f.Stat()
	if err != nil {
		return Result{}, fmt.Errorf("emit: %w", err)
	}
	if n, err := s.f.Write(lines); err != nil {
		if n > 0 && before.Mode().IsRegular() {
			err = errors.Join(err, s.f.Truncate(before.Size()))
		}
		return Result{}, fmt.Errorf("emit: free space or another file is needed: %w", err)
	}
	return Result{}, nil
}

func (s *fileSink) Close() error { return errors.Join(toDisk(s.f), s.f.Close()) }

// toDisk syncs f. What knows no such thing, a pipe, a device, a directory of some file
// systems, has taken all that it was given.
func toDisk(f *os.File) error {
	if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// Writer returns a sink that writes NDJSON to w, such as standard output. It does not
// close w.
func Writer(w io.Writer) Sink { return &writerSink{w: w} }

type writerSink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *writerSink) Send(_ context.Context, lines []byte, _ int) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(lines); err != nil {
		return Result{}, fmt.Errorf("emit: %w", err)
	}
	return Result{}, nil
}

func (s *writerSink) Close() error { return nil }
