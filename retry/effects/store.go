package effects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/emit"
)

// Options of a store. Zero values are the defaults.
type Options struct {
	DB      *sql.DB // required; its tables are made by Migrate or from Schema
	Dialect Dialect // required

	// Records is given one record with outcome replayed for every repeat that is
	// suppressed; nil = none.
	Records                                emit.Recorder
	Tenant, Service, Environment, Provider string // of those records; Provider defaults to "effects"

	// Lease is how long a dispatch or a call belongs to its process without a sign of
	// life; default 30 s, at least 1 s. It is renewed while the process lives; one that
	// cannot renew it cancels the context of its action before the lease ends.
	Lease time.Duration

	// Clock is for tests. nil = times in tables are the database's, so that the clocks of
	// several hosts need not agree, and waits are the operating system's.
	Clock clock.Clock
}

// Store does what the package promises on one database. It is safe for concurrent use, and any
// number of processes may have one on the same database.
type Store struct {
	o     Options
	timer clock.Clock
}

const (
	defaultLease = 30 * time.Second
	minLease     = time.Second
	maxKey       = 255 // bytes, as in the attempt record
	maxName      = 128
)

// New returns a store, or an error that names an option that is out of range. It does not
// touch the database.
func New(o Options) (*Store, error) {
	if o.DB == nil {
		return nil, errors.New("effects: Options.DB is missing")
	}
	if err := o.Dialect.check(); err != nil {
		return nil, err
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Lease < minLease {
		return nil, fmt.Errorf("effects: Options.Lease must be at least %v, got %v", minLease, o.Lease)
	}
	if o.Provider == "" {
		o.Provider = "effects"
	}
	s := &Store{o: o, timer: o.Clock}
	if s.timer == nil {
		s.timer = clock.Real()
	}
	return s, nil
}

// gap is called between any two steps that a crash may part. Tests crash there.
var gap = func(string) {}

// session is what a statement runs on: the database or the caller's transaction.
type session interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// exec returns the number of rows that were affected.
func (s *Store) exec(ctx context.Context, q session, text string, args ...any) (n int64, err error) {
	err = s.contend(ctx, q, func() error {
		res, err := q.ExecContext(ctx, s.query(text), args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}

// one reads the first row into dest and tells whether there was one. It reads to the end,
// since a statement that writes and returns rows is over only then.
func (s *Store) one(ctx context.Context, q session, text string, args []any, dest ...any) (bool, error) {
	found := false
	err := s.contend(ctx, q, func() error {
		found = false
		return s.rows(ctx, q, text, args, func(rows *sql.Rows) error {
			if found {
				return nil
			}
			found = true
			return rows.Scan(dest...)
		})
	})
	return found && err == nil, err
}

// each scans all rows; begin is called before the first one, again when the statement is.
func (s *Store) each(ctx context.Context, q session, text string, args []any, begin func(), scan func(*sql.Rows) error) error {
	return s.contend(ctx, q, func() error {
		begin()
		return s.rows(ctx, q, text, args, scan)
	})
}

func (s *Store) rows(ctx context.Context, q session, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, s.query(text), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// afterwards is a context for writing down how an action ended, though its caller has left.
func (s *Store) afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.o.Lease)
}

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("effects: the key is empty; see package keys for how to make one")
	case len(key) > maxKey:
		return fmt.Errorf("effects: the key has %d bytes, at most %d are kept; see keys.Derive", len(key), maxKey)
	case !printable(key):
		return errors.New("effects: the key has a control character or is not UTF-8; see keys.Derive")
	}
	return nil
}

func checkName(what, name string) error {
	if name == "" || len(name) > maxName || !printable(name) {
		return fmt.Errorf("effects: %s must be 1..%d bytes of UTF-8 without control characters, got %.64q", what, maxName, name)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// text of an error as a column holds it.
func text(err error) string {
	const limit = 500
	t := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), ""))
	for len(t) > limit {
		_, size := utf8.DecodeLastRuneInString(t)
		t = t[:len(t)-size]
	}
	return t
}

// bytes makes no difference between nil and empty, as NULL would.
func bytes(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ms rounds up, so that a wait is never cut to nothing.
func ms(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func fromMS(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func fullJitter(base, limit time.Duration) func(failures int) time.Duration {
	b := retry.Backoff{Base: base, Cap: limit}
	return func(failures int) time.Duration { return b.Delay(failures-1, 0, rand.Int64N) }
}
