package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
)

// Write stores attempts, split by day, and returns when ClickHouse has
// acknowledged all of them. Attempts must be normalized and valid. It is
// idempotent: the same batch again is recognised by its content hash, and rows
// that come again in another batch replace themselves. Where the server names the row
// that it refused, the error has its place in the batch as RefusedRow() int.
func (s *Store) Write(ctx context.Context, batch []retrylens.Attempt) error {
	for _, day := range splitByDay(batch) {
		if err := s.writeDay(ctx, day); err != nil {
			if row, ok := refusedRow(err); ok && row < len(day) {
				err = &rowError{err, placeOf(batch, day[row])}
			}
			return err
		}
	}
	return nil
}

// placeOf is where in the batch a is.
func placeOf(batch []retrylens.Attempt, a *retrylens.Attempt) int {
	for i := range batch {
		if &batch[i] == a {
			return i
		}
	}
	return -1
}

// splitByDay keeps the order inside a day, and of days by their first row. A
// block of one day makes one part; a block of many would make one for each.
func splitByDay(batch []retrylens.Attempt) [][]*retrylens.Attempt {
	const day = 24 * 60 * 60 * 1000
	var days [][]*retrylens.Attempt
	at := map[int64]int{}
	for i := range batch {
		d := batch[i].OperationStartedAt.UnixMilli() / day
		n, ok := at[d]
		if !ok {
			n = len(days)
			at[d], days = n, append(days, nil)
		}
		days[n] = append(days[n], &batch[i])
	}
	return days
}

func (s *Store) writeDay(ctx context.Context, rows []*retrylens.Attempt) error {
	versions := make([]uint64, len(rows))
	for i, a := range rows {
		versions[i] = a.Version()
	}
	ctx = s.with(ctx, clickhouse.Settings{"insert_deduplication_token": contentToken(versions)})
	if err := s.insert(ctx, rows, versions); err != nil {
		if _, _, answered := exception(err); !answered && Classify(err) == KindRetry && ctx.Err() == nil {
			err = fmt.Errorf("%w any more: %w", ErrUnreachable, err)
		}
		return fmt.Errorf("clickhouse: insert %d attempts: %w", len(rows), err)
	}
	return nil
}

// rowsAtOnce attempts fit into a processor's cache while their columns are taken
// one after another.
const rowsAtOnce = 256

func (s *Store) insert(ctx context.Context, rows []*retrylens.Attempt, versions []uint64) error {
	b, err := s.conn.PrepareBatch(ctx, insertAttempts(s.database))
	if err != nil {
		return err
	}
	defer b.Abort() //nolint:errcheck // after Send it does nothing
	known := vocabulary{}
	for some := range slices.Chunk(rows, rowsAtOnce) {
		for i, c := range attemptColumns {
			if err := c.append(b.Column(i), some, known); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	if err := b.Column(len(attemptColumns)).Append(versions); err != nil {
		return fmt.Errorf("column version: %w", err)
	}
	return b.Send()
}

func insertAttempts(database string) string {
	names := make([]string, len(attemptColumns))
	for i, c := range attemptColumns {
		names[i] = c.name
	}
	return "INSERT INTO " + database + ".attempts (" + strings.Join(names, ", ") + ", version)"
}

// contentToken is the hash of the contents of a block in its order: a version
// holds the revision and 56 bits of the hash of all other fields.
func contentToken(versions []uint64) string {
	h := sha256.New()
	var b [8]byte
	for _, v := range versions {
		binary.BigEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
