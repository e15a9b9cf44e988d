package effects

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Dialect is the SQL that a database speaks. The zero Dialect is none.
type Dialect uint8

// Dialects.
const (
	PostgreSQL Dialect = iota + 1 // needs 10 or later, tested with 15
	SQLite                        // needs 3.35 or later (RETURNING), tested with modernc.org/sqlite
)

// String is "postgresql" or "sqlite".
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "postgresql"
	case SQLite:
		return "sqlite"
	}
	return fmt.Sprintf("unknown(%d)", uint8(d))
}

func (d Dialect) check() error {
	if d != PostgreSQL && d != SQLite {
		return fmt.Errorf("effects: the dialect is %v; give effects.PostgreSQL or effects.SQLite", d)
	}
	return nil
}

// now is the present Unix millisecond by the database's clock, the same throughout a
// statement.
func (d Dialect) now() string {
	if d == PostgreSQL {
		return "(extract(epoch FROM statement_timestamp()) * 1000)::bigint"
	}
	return "(CAST(strftime('%s', 'now') AS INTEGER) * 1000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER))"
}

// query is text for this store: {now} is the present millisecond, {skip} locks the rows
// that are chosen and passes over those that others have locked. SQLite needs none of
// that: a statement that writes has the database for itself from its beginning.
func (s *Store) query(text string) string {
	now := s.o.Dialect.now()
	if s.o.Clock != nil {
		now = strconv.FormatInt(s.o.Clock.Now().UnixMilli(), 10)
	}
	skip := "FOR UPDATE SKIP LOCKED"
	if s.o.Dialect == SQLite {
		skip = ""
		text = strings.ReplaceAll(text, "$", "?")
	}
	return strings.NewReplacer("{now}", now, "{skip}", skip).Replace(text)
}

// held tells whether err says that another transaction holds what is needed: lock_timeout
// or NOWAIT of PostgreSQL (55P03), SQLITE_BUSY.
func held(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState() == "55P03"
	}
	const sqliteBusy = 5
	var code interface{ Code() int }
	if errors.As(err, &code) {
		return code.Code()&0xff == sqliteBusy
	}
	return err != nil && strings.Contains(err.Error(), "database is locked")
}
