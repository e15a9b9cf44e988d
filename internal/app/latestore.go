package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/schema"
)

// lateStore is a store that is opened when it is first needed, and again until
// that succeeds: a service starts without it. It is an ingest.Sink whose calls may
// overlap.
type lateStore struct {
	o       StoreOptions
	migrate bool

	turn  chan struct{} // held by the one who opens
	store atomic.Pointer[Store]
	keep  atomic.Int64 // retention in nanoseconds, 0 = not known yet
}

func newLateStore(o StoreOptions, migrate bool) *lateStore {
	return &lateStore{o: o, migrate: migrate, turn: make(chan struct{}, 1)}
}

// get returns the store, opening it if need be.
func (l *lateStore) get(ctx context.Context) (*Store, error) {
	if s := l.store.Load(); s != nil {
		return s, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := l.store.Load(); s != nil {
		return s, nil
	}
	s, err := l.open(ctx)
	if err != nil {
		return nil, &openError{err}
	}
	l.store.Store(s)
	return s, nil
}

func (l *lateStore) open(ctx context.Context) (*Store, error) {
	s, err := OpenStore(ctx, l.o)
	if err != nil {
		return nil, err
	}
	if err := s.writable(ctx, l.migrate); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	keep, err := s.Retention(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	l.keep.Store(int64(keep))
	return s, nil
}

// openError is about opening a store, when no record was sent yet: its text holds
// nothing of one.
type openError struct{ err error }

func (e *openError) Error() string { return e.err.Error() }
func (e *openError) Unwrap() error { return e.err }

// describe is what of an error of a lateStore may be logged.
func describe(err error) string {
	var opening *openError
	if errors.As(err, &opening) {
		return opening.Error()
	}
	return clickhouse.Describe(err)
}

// Write is Store.Write.
func (l *lateStore) Write(ctx context.Context, batch []retrylens.Attempt) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Write(ctx, batch)
}

func (l *lateStore) writeStatus(ctx context.Context, st clickhouse.IngestStatus) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.WriteIngestStatus(ctx, st)
}

// ready tells whether the store answers.
func (l *lateStore) ready(ctx context.Context) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.SchemaReady(ctx)
}

// retention is how old an operation may be: the store's own figure as soon as
// it is known.
func (l *lateStore) retention() time.Duration {
	const day = 24 * time.Hour
	if keep := l.keep.Load(); keep > 0 {
		return time.Duration(keep)
	}
	if l.o.RetentionDays > 0 {
		return time.Duration(l.o.RetentionDays) * day
	}
	return schema.DefaultRetentionDays * day
}

func (l *lateStore) close() error {
	if s := l.store.Load(); s != nil {
		return s.Close()
	}
	return nil
}
