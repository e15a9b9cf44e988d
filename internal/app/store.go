package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/schema"
)

// StoreOptions say which store, and how it is laid out.
type StoreOptions struct {
	Address       string // see ParseAddress; "" = DefaultStore
	Cluster       string // name in remote_servers; "" = single node
	RetentionDays int    // 0 = the schema's default
	MustExist     bool   // do not make the directory of an embedded store
	Logger        *slog.Logger
}

// Store is an open store. Close ends what OpenStore began.
type Store struct {
	*clickhouse.Store
	Address Address
	Engine  *engine.Client // nil unless embedded

	teardown []func() error
}

// OpenStore connects to a store; an embedded engine that does not run is
// started. It does not migrate. Errors of a store that is out of reach are
// ErrUnreachable.
func OpenStore(ctx context.Context, o StoreOptions) (*Store, error) {
	address, err := ParseAddress(o.Address)
	if err != nil {
		return nil, err
	}
	if o.RetentionDays < 0 || o.RetentionDays > schema.MaxRetentionDays {
		return nil, usagef("--retention must be within 1..%d, got %d", schema.MaxRetentionDays, o.RetentionDays)
	}
	s := &Store{Address: address}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o StoreOptions) error {
	config := clickhouse.Config{URL: s.Address.URL, Cluster: o.Cluster, RetentionDays: o.RetentionDays}
	if s.Address.Embedded() {
		if err := s.openEngine(ctx, o, &config); err != nil {
			return err
		}
	}
	var err error
	if s.Store, err = clickhouse.Open(ctx, config); err != nil {
		return err
	}
	s.teardown = append(s.teardown, s.Store.Close)
	return nil
}

func (s *Store) openEngine(ctx context.Context, o StoreOptions, config *clickhouse.Config) error {
	if o.Cluster != "" {
		return usagef("--cluster needs an external server: the embedded engine is a single node")
	}
	if _, err := os.Stat(s.Address.Dir); o.MustExist && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no directory %s: run ingest import FILE first, or name another --store", ErrUnreachable, s.Address.Dir)
	}
	client, err := engine.Open(ctx, engine.Options{Dir: s.Address.Dir, Logger: o.Logger})
	if err != nil {
		return engineError(s.Address.Dir, err)
	}
	s.Engine, s.teardown = client, append(s.teardown, client.Close)
	e, err := client.Endpoint(ctx)
	if err != nil {
		return engineError(s.Address.Dir, err)
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(e.User, e.Password), Host: e.TCPAddr, Path: "/" + e.Database}
	config.URL, config.Dial = u.String(), client.DialTCP
	return nil
}

// openReadable opens a store that exists and has a schema.
func openReadable(ctx context.Context, o StoreOptions) (*Store, error) {
	o.MustExist = true
	s, err := OpenStore(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.readable(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends everything in reverse. A second call does nothing.
func (s *Store) Close() error {
	var errs []error
	for i := len(s.teardown) - 1; i >= 0; i-- {
		errs = append(errs, s.teardown[i]())
	}
	s.teardown = nil
	return errors.Join(errs...)
}

// writable brings the schema of a store of our own up to date, and of another
// one if asked.
func (s *Store) writable(ctx context.Context, migrate bool) error {
	if migrate || s.Address.Embedded() {
		_, err := s.Migrate(ctx)
		return err
	}
	return s.readable(ctx)
}

// readable tells what to run when there is no schema yet. A store of our own
// that an older version made is brought up to date.
func (s *Store) readable(ctx context.Context) error {
	err := s.SchemaReady(ctx)
	switch {
	case err == nil && s.Address.Embedded():
		_, err = s.Migrate(ctx)
		return err
	case !errors.Is(err, clickhouse.ErrSchemaMissing):
		return err
	case s.Address.Embedded():
		return fmt.Errorf("%s holds no attempts yet: run ingest import FILE with the same --store", s.Address)
	}
	return fmt.Errorf("%s: %w (with the same --store)", s.Address, err)
}
