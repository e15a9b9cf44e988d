package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens"
)

// stretch is how much of history is read at once.
const stretch = 10 * time.Minute

// EachAttempt calls fn with the attempts that say that their operation started in
// [from, to), stretch by stretch, in no order within one: of every identity the highest
// version, without what no figure depends on. Memory does not grow with the window. An
// error of fn ends it.
func (s *Store) EachAttempt(ctx context.Context, from, to time.Time, fn func(*retrylens.Attempt) error) error {
	for ; from.Before(to); from = from.Add(stretch) {
		end := from.Add(stretch)
		if end.After(to) {
			end = to
		}
		where := "operation_started_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND operation_started_at < fromUnixTimestamp64Milli({to:Int64}, 'UTC')"
		params := []any{clickhouse.Named("from", from.UnixMilli()), clickhouse.Named("to", end.UnixMilli())}
		attempts, err := s.readBut(ctx, notFolded, where, params)
		if err != nil {
			return fmt.Errorf("clickhouse: read attempts from %s: %w", from.Format(time.RFC3339), err)
		}
		for i := range attempts {
			if err := fn(&attempts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
