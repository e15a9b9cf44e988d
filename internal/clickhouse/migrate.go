package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/schema"
)

// Migration errors.
var (
	ErrSchemaNewer   = errors.New("the database was migrated by a newer version of Retrylens: upgrade this binary")
	ErrSchemaMissing = errors.New("the database has no schema yet: run analyze migrate")
)

// Migrate brings the schema up to date and returns the names of the migrations
// applied. Statements are idempotent and touch metadata only, so two processes
// that migrate at once end with the same schema.
func (s *Store) Migrate(ctx context.Context) ([]string, error) {
	wanted, err := schema.Render(schema.Options{
		Database: s.database, Cluster: s.config.Cluster, EachNode: s.config.EachNode, RetentionDays: s.config.RetentionDays,
	})
	if err != nil {
		return nil, err
	}
	if err := s.createLog(ctx); err != nil {
		return nil, err
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return nil, err
	}
	if newest := wanted[len(wanted)-1].ID; applied.newest > newest {
		return nil, fmt.Errorf("clickhouse: %w (found %d, know %d)", ErrSchemaNewer, applied.newest, newest)
	}
	var done []string
	for _, m := range wanted {
		if applied.ids[m.ID] {
			continue
		}
		if err := s.apply(ctx, m); err != nil {
			return done, fmt.Errorf("clickhouse: migration %04d_%s: %w", m.ID, m.Name, err)
		}
		done = append(done, fmt.Sprintf("%04d_%s", m.ID, m.Name))
	}
	return done, s.applyRetention(ctx)
}

// SchemaReady returns ErrSchemaMissing when the tables are not there yet.
func (s *Store) SchemaReady(ctx context.Context) error {
	var n uint64
	err := s.conn.QueryRow(ctx, "SELECT count() FROM system.tables WHERE database = {db:String} AND name = 'attempts_effective'",
		clickhouse.Named("db", s.database)).Scan(&n)
	if err == nil && n == 0 {
		return ErrSchemaMissing
	}
	return err
}

func (s *Store) onCluster() string {
	if s.config.Cluster == "" || s.config.EachNode {
		return ""
	}
	return " ON CLUSTER " + s.config.Cluster
}

func (s *Store) createLog(ctx context.Context) error {
	for _, q := range []string{
		"CREATE DATABASE IF NOT EXISTS " + s.database + s.onCluster(),
		"CREATE TABLE IF NOT EXISTS " + s.database + ".schema_migrations" +
			" (id UInt32, name String, checksum String, applied_at DateTime DEFAULT now())" +
			" ENGINE = ReplacingMergeTree ORDER BY id",
	} {
		if err := s.retryRace(ctx, q); err != nil {
			return fmt.Errorf("clickhouse: %w", err)
		}
	}
	return nil
}

type appliedMigrations struct {
	ids    map[int]bool
	newest int
}

func (s *Store) applied(ctx context.Context) (appliedMigrations, error) {
	a := appliedMigrations{ids: map[int]bool{}}
	rows, err := s.conn.Query(ctx, "SELECT DISTINCT id FROM "+s.database+".schema_migrations")
	if err != nil {
		return a, fmt.Errorf("clickhouse: read schema_migrations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uint32
		if err := rows.Scan(&id); err != nil {
			return a, fmt.Errorf("clickhouse: read schema_migrations: %w", err)
		}
		a.ids[int(id)] = true
		a.newest = max(a.newest, int(id))
	}
	return a, rows.Err()
}

func (s *Store) apply(ctx context.Context, m schema.Migration) error {
	for _, q := range m.Statements {
		if err := s.retryRace(ctx, q); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(m.Statements, ";\n")))
	return s.conn.Exec(ctx, "INSERT INTO "+s.database+".schema_migrations (id, name, checksum) VALUES ({id:UInt32}, {name:String}, {sum:String})",
		clickhouse.Named("id", m.ID), clickhouse.Named("name", m.Name), clickhouse.Named("sum", hex.EncodeToString(sum[:])))
}

// retryRace runs an idempotent statement again when another process ran it at
// the same moment: IF NOT EXISTS does not cover that.
func (s *Store) retryRace(ctx context.Context, q string) error {
	const tries = 5
	var err error
	for range tries {
		if err = s.conn.Exec(s.with(ctx, nil), q); err == nil || !isRace(err) {
			break
		}
	}
	return err
}

func isRace(err error) bool {
	var e *clickhouse.Exception
	const tableAlreadyExists, databaseAlreadyExists, deadlockAvoided = 57, 82, 473
	return errors.As(err, &e) && (e.Code == tableAlreadyExists || e.Code == databaseAlreadyExists || e.Code == deadlockAvoided)
}

// applyRetention sets the TTL that was asked for; without one a table keeps what
// it has. The new TTL holds for what is merged from now on: nothing is rewritten.
func (s *Store) applyRetention(ctx context.Context) error {
	if s.config.RetentionDays == 0 {
		return nil
	}
	days := s.config.RetentionDays
	for table, ttl := range map[string]string{
		"attempts":     fmt.Sprintf("toDateTime(operation_started_at) + toIntervalDay(%d)", days),
		"emitter_seqs": fmt.Sprintf("toDateTime(last_at) + toIntervalDay(%d)", days),
		"rollups":      fmt.Sprintf("bucket + toIntervalDay(%d) DELETE WHERE level = 'minute'", schema.RollupMinuteDays(days)),
	} {
		local := s.local(table)
		create, err := s.createQuery(ctx, local)
		if err != nil {
			return fmt.Errorf("read the TTL of %s: %w", local, err)
		}
		if strings.Contains(create, "TTL "+strings.Replace(ttl, " DELETE WHERE", " WHERE", 1)) || strings.Contains(create, "TTL "+ttl) {
			continue
		}
		q := "ALTER TABLE " + s.database + "." + local + s.onCluster() + " MODIFY TTL " + ttl + " SETTINGS materialize_ttl_after_modify = 0"
		if err := s.conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("clickhouse: set the retention of %s: %w", local, err)
		}
	}
	return nil
}
