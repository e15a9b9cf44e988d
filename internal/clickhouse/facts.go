package clickhouse

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/schema"
)

// Version is that of the server.
func (s *Store) Version(ctx context.Context) (v string, err error) {
	err = s.value(ctx, &v, "SELECT version()")
	return v, err
}

// Skew is how far the server's clock is ahead of ours, to within half the time
// of a round trip.
func (s *Store) Skew(ctx context.Context, now func() time.Time) (time.Duration, error) {
	var ms int64
	before := now()
	if err := s.value(ctx, &ms, "SELECT toUnixTimestamp64Milli(now64(3))"); err != nil {
		return 0, err
	}
	ours := before.Add(now().Sub(before) / 2)
	return time.UnixMilli(ms).Sub(ours).Round(time.Millisecond), nil
}

// FreeBytes is the free space of the server's disk that has least.
func (s *Store) FreeBytes(ctx context.Context) (free uint64, err error) {
	err = s.value(ctx, &free, "SELECT min(free_space) FROM system.disks")
	return free, err
}

// SchemaVersion is the number of the newest migration applied.
func (s *Store) SchemaVersion(ctx context.Context) (int, error) {
	var id uint32
	err := s.value(ctx, &id, "SELECT max(id) FROM "+s.database+".schema_migrations")
	return int(id), err
}

// NewestAttemptAt is the latest start of an operation there is; zero without any.
func (s *Store) NewestAttemptAt(ctx context.Context) (time.Time, error) {
	var at time.Time
	var n uint64
	err := s.conn.QueryRow(s.with(ctx, nil), "SELECT count(), max(operation_started_at) FROM "+s.database+".attempts").Scan(&n, &at)
	if err != nil {
		return at, fmt.Errorf("clickhouse: %w", err)
	}
	if n == 0 {
		return time.Time{}, nil
	}
	return at.UTC(), nil
}

// MayInsert tells whether the user may insert attempts.
func (s *Store) MayInsert(ctx context.Context) (bool, error) {
	var granted uint8
	err := s.value(ctx, &granted, "CHECK GRANT INSERT ON "+s.database+".attempts")
	return granted == 1, err
}

var ttlDays = regexp.MustCompile(`TTL .*toIntervalDay\((\d+)\)`)

// Retention is how long the table keeps attempts: older ones are refused at the
// door.
func (s *Store) Retention(ctx context.Context) (time.Duration, error) {
	create, err := s.createQuery(ctx, s.local("attempts"))
	if err != nil {
		return 0, err
	}
	return retentionOf(create)
}

// retentionOf reads the retention in how the table of attempts would be made.
func retentionOf(create string) (time.Duration, error) {
	m := ttlDays.FindStringSubmatch(create)
	if m == nil {
		return 0, fmt.Errorf("clickhouse: the table attempts has no TTL that this version knows")
	}
	days, err := strconv.Atoi(m[1])
	return time.Duration(days) * 24 * time.Hour, err
}

// NewestMigration is the number of the newest migration that this binary knows.
func NewestMigration() (int, error) {
	all, err := schema.Render(schema.Options{Database: DefaultDatabase})
	if err != nil {
		return 0, err
	}
	return all[len(all)-1].ID, nil
}

// local is the table that holds the rows on a node.
func (s *Store) local(table string) string {
	if s.config.Cluster == "" {
		return table
	}
	return table + "_local"
}

func (s *Store) createQuery(ctx context.Context, table string) (q string, err error) {
	err = s.value(ctx, &q, "SELECT create_table_query FROM system.tables WHERE database = {db:String} AND name = {table:String}",
		clickhouse.Named("db", s.database), clickhouse.Named("table", table))
	return q, err
}

// value scans the one value of a query.
func (s *Store) value(ctx context.Context, to any, query string, params ...any) error {
	if err := s.conn.QueryRow(s.with(ctx, nil), query, params...).Scan(to); err != nil {
		return fmt.Errorf("clickhouse: %w", err)
	}
	return nil
}
