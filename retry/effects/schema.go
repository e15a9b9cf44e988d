package effects

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SchemaVersion is what [Migrate] brings a database to.
const SchemaVersion = 1

var (
	//go:embed schema_postgresql.sql
	schemaPostgreSQL string
	//go:embed schema_sqlite.sql
	schemaSQLite string
)

const schemaVersions = `CREATE TABLE IF NOT EXISTS retrylens_effects_schema (version integer PRIMARY KEY)`

// Schema returns the statements that make the tables, for those who have a migration tool
// of their own. They may be executed again. All names begin with retrylens_. It returns ""
// for an unknown dialect.
func Schema(d Dialect) string {
	switch d {
	case PostgreSQL:
		return schemaPostgreSQL
	case SQLite:
		return schemaSQLite
	}
	return ""
}

// Migrate makes the tables in one transaction, unless they are there. Several processes
// may call it at once. A database that a later version of this package has migrated is an
// error, and so is one that others keep busy for seconds: [ErrContended].
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	if err := d.check(); err != nil {
		return err
	}
	return contend(ctx, true, func() error { return migrateOnce(ctx, db, d) })
}

func migrateOnce(ctx context.Context, db *sql.DB, d Dialect) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("effects: migrate: %w", err)
	}
	defer conn.Close()
	begin := "BEGIN IMMEDIATE"
	if d == PostgreSQL {
		begin = "BEGIN ISOLATION LEVEL READ COMMITTED" // above it, what another one has made meanwhile is not seen
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return fmt.Errorf("effects: migrate: %w", err)
	}
	if err := migrate(ctx, conn, d); err != nil {
		// The connection goes back to the pool; a transaction must not stay open in it.
		_, undo := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return fmt.Errorf("effects: migrate: %w", errors.Join(err, undo))
	}
	return nil
}

// migrate ends the transaction of conn with COMMIT, unless it returns an error.
func migrate(ctx context.Context, conn *sql.Conn, d Dialect) error {
	first := []string{schemaVersions}
	if d == PostgreSQL {
		first = []string{"SELECT pg_advisory_xact_lock(8241079416224213)", schemaVersions}
	}
	if err := execAll(ctx, conn, first); err != nil {
		return err
	}
	var version int
	if err := conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM retrylens_effects_schema").Scan(&version); err != nil {
		return err
	}
	if version > SchemaVersion {
		return fmt.Errorf("the tables have version %d, this program knows %d: use a later version of it", version, SchemaVersion)
	}
	last := []string{"COMMIT"}
	if version < SchemaVersion {
		last = slices.Concat(statements(Schema(d)), []string{fmt.Sprintf("INSERT INTO retrylens_effects_schema (version) VALUES (%d)", SchemaVersion)}, last)
	}
	return execAll(ctx, conn, last)
}

func execAll(ctx context.Context, conn *sql.Conn, statements []string) error {
	for _, s := range statements {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// statements of a script, one by one: not every driver takes several at once.
func statements(script string) []string {
	var out []string
	for s := range strings.SplitSeq(script, ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
