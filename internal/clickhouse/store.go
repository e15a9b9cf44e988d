package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErrUnreachable marks errors of a store that could not be reached at all.
var ErrUnreachable = errors.New("the store cannot be reached")

// DefaultDatabase holds the tables unless an address names another one.
const DefaultDatabase = "retrylens"

// Config says how a store is reached.
type Config struct {
	URL           string // clickhouse://user:pass@host:9000[,host2:9000]/db or http(s)://…
	Cluster       string // name of the cluster in remote_servers; "" = single node
	EachNode      bool   // with Cluster: Migrate works on this node only, without ON CLUSTER and replication
	RetentionDays int    // what Migrate sets; 0 = what the tables have, schema.DefaultRetentionDays for new ones

	// Dial replaces the way connections are made (the embedded engine); nil =
	// plain TCP.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Store is a ClickHouse that holds attempts. It is safe for concurrent use.
type Store struct {
	conn     driver.Conn
	database string
	config   Config
	settings clickhouse.Settings // of every query, those that the server knows

	sliceRows        uint64        // how many rows a slice of a report reads at most
	directOperations int           // up to how many operations of a slice are folded here instead of in SQL
	attemptsWindow   time.Duration // up to how long a window is read from attempts alone
	quantileRows     uint64        // up to how many attempts are read for quantiles that rollups do not hold
	finaliseRows     uint64        // about how many attempts a window of a pass has, a chunk up to 4 times as many
	rollupRows       int           // about how many rows of rollups are inserted at once

	pieces      *pieceCache  // of series
	mergedMarks atomic.Int64 // Unix seconds; 0 = not yet
}

// Open connects and makes sure that the database exists; it does not migrate.
// Errors of a server that does not answer are ErrUnreachable.
func Open(ctx context.Context, c Config) (*Store, error) {
	o, err := options(c)
	if err != nil {
		return nil, err
	}
	s := &Store{database: o.Auth.Database, config: c, sliceRows: defaultSliceRows, directOperations: defaultDirectOperations, attemptsWindow: attemptsWindow, quantileRows: quantileRows,
		finaliseRows: defaultFinaliseRows, rollupRows: defaultRollupRows, pieces: newPieceCache()}
	// The database may not exist yet: connect without it.
	o.Auth.Database = ""
	if s.conn, err = clickhouse.Open(o); err != nil {
		return nil, fmt.Errorf("clickhouse: open %s: %w", redact(c.URL), err)
	}
	if err := s.conn.Ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("clickhouse: %w at %s: %w", ErrUnreachable, redact(c.URL), err), s.conn.Close())
	}
	if s.settings, err = s.knownSettings(ctx); err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	return s, nil
}

// Close closes the connections.
func (s *Store) Close() error { return s.conn.Close() }

// Database is the name of the database that holds the tables.
func (s *Store) Database() string { return s.database }

// options reads the address. What clickhouse-go understands in its query string
// is passed on.
func options(c Config) (*clickhouse.Options, error) {
	if strings.HasPrefix(c.URL, "clickhouse://") || strings.HasPrefix(c.URL, "http://") || strings.HasPrefix(c.URL, "https://") {
		o, err := clickhouse.ParseDSN(c.URL)
		if err != nil {
			return nil, fmt.Errorf("clickhouse: bad address %s: %w", redact(c.URL), err)
		}
		tune(o, c)
		return o, nil
	}
	return nil, fmt.Errorf("clickhouse: address must start with clickhouse://, http:// or https://, got %q", redact(c.URL))
}

func tune(o *clickhouse.Options, c Config) {
	if o.Auth.Database == "" || o.Auth.Database == "default" {
		o.Auth.Database = DefaultDatabase
	}
	if strings.HasPrefix(c.URL, "https://") && o.TLS == nil {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch {
	case c.Dial != nil: // on this machine, where compressing costs more than it saves
		o.DialContext = func(ctx context.Context, _ string) (net.Conn, error) { return c.Dial(ctx) }
	case o.Compression == nil:
		o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	o.ConnMaxLifetime = time.Hour
	// A page asks for several reports at once, each a few statements at once; who gets no
	// connection within DialTimeout fails.
	if o.MaxOpenConns == 0 {
		o.MaxOpenConns = 64
	}
	if o.MaxIdleConns == 0 {
		o.MaxIdleConns = 16
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 10 * time.Second
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = 5 * time.Minute
	}
}

// redact takes the password out of an address, for messages.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that does not parse)"
	}
	return u.Redacted()
}

// wantedSettings are set on every query where the server knows them.
var wantedSettings = clickhouse.Settings{
	// Hashes the whole tree below for every AND: most of the planning time.
	"optimize_and_compare_chain": 0,
	// An insert through a Distributed table is acknowledged when the shards have it.
	"distributed_foreground_insert": 1,
	"insert_distributed_sync":       1, // its name before 24
	"async_insert":                  0,
	"session_timezone":              "UTC",
}

// knownSettings is the part of wantedSettings that this server has; of settings
// that replaced each other the newest.
func (s *Store) knownSettings(ctx context.Context) (clickhouse.Settings, error) {
	names := make([]string, 0, len(wantedSettings))
	for name := range wantedSettings {
		names = append(names, name)
	}
	rows, err := s.conn.Query(ctx, "SELECT name FROM system.settings WHERE name IN {names:Array(String)}", clickhouse.Named("names", names))
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read system.settings: %w", err)
	}
	defer rows.Close()
	known := clickhouse.Settings{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("clickhouse: read system.settings: %w", err)
		}
		known[name] = wantedSettings[name]
	}
	if _, ok := known["distributed_foreground_insert"]; ok {
		delete(known, "insert_distributed_sync")
	}
	return known, rows.Err()
}

// with returns a context that carries the store's settings and more.
func (s *Store) with(ctx context.Context, more clickhouse.Settings) context.Context {
	all := clickhouse.Settings{}
	for _, settings := range []clickhouse.Settings{s.settings, more} {
		for k, v := range settings {
			all[k] = v
		}
	}
	return clickhouse.Context(ctx, clickhouse.WithSettings(all))
}
