package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Lease says which of several processes does something: of those that called Hold within
// the last TTL, by the server's clock, the one that came first. ClickHouse has no
// compare-and-set, so for the length of one call two may hold it at once; what they do must
// bear that. It is not safe for concurrent use.
type Lease struct {
	store        *Store
	name, holder string
	ttl          time.Duration
	since        int64 // Unix milliseconds by the server's clock; 0 = not in the row yet
}

// NewLease takes part under a name that is unique among the processes.
func (s *Store) NewLease(name, holder string, ttl time.Duration) *Lease {
	return &Lease{store: s, name: name, holder: holder, ttl: ttl}
}

// Hold says that this process is there, and tells whether it holds the lease until the
// next call. Who was not heard of for a TTL comes last again.
func (l *Lease) Hold(ctx context.Context) (bool, error) {
	mine, now, err := l.last(ctx)
	if err != nil {
		return false, err
	}
	if l.since == 0 || now-mine > l.ttl.Milliseconds() {
		l.since = now
	}
	if err := l.say(ctx, false); err != nil {
		return false, err
	}
	first, err := l.first(ctx)
	return err == nil && first == l.holder, err
}

// Release gives the lease up at once.
func (l *Lease) Release(ctx context.Context) error {
	if l.since == 0 {
		return nil
	}
	l.since = 0
	return l.say(ctx, true)
}

// last is when this process was heard of, and the server's time.
func (l *Lease) last(ctx context.Context) (mine, now int64, err error) {
	err = l.store.conn.QueryRow(l.store.with(ctx, nil), "SELECT toUnixTimestamp64Milli(max(at)), toUnixTimestamp64Milli(now64(3)) FROM "+
		l.store.database+".leases WHERE name = {name:String} AND holder = {holder:String}", l.params()...).Scan(&mine, &now)
	if err != nil {
		return 0, 0, fmt.Errorf("clickhouse: lease: %w", err)
	}
	return mine, now, nil
}

func (l *Lease) params() []any {
	return []any{clickhouse.Named("name", l.name), clickhouse.Named("holder", l.holder)}
}

func (l *Lease) say(ctx context.Context, released bool) error {
	b, err := l.store.conn.PrepareBatch(l.store.with(ctx, nil), "INSERT INTO "+l.store.database+".leases (name, holder, since, released)")
	if err == nil {
		defer b.Abort() //nolint:errcheck // after Send it does nothing
		err = b.Append(l.name, l.holder, time.UnixMilli(l.since).UTC(), released)
	}
	if err == nil {
		err = b.Send()
	}
	if err != nil {
		return fmt.Errorf("clickhouse: lease: %w", err)
	}
	return nil
}

// first is the holder who came first of those heard of lately; "" without any.
func (l *Lease) first(ctx context.Context) (holder string, err error) {
	err = l.store.conn.QueryRow(l.store.with(ctx, nil), "SELECT argMin(holder, (came, holder)) FROM (SELECT holder, max(at) AS last, argMax(since, at) AS came, argMax(released, at) AS gone"+
		" FROM "+l.store.database+".leases WHERE name = {name:String} GROUP BY holder)"+
		" WHERE NOT gone AND last > now64(3) - toIntervalMillisecond({ttl:Int64})",
		clickhouse.Named("name", l.name), clickhouse.Named("ttl", l.ttl.Milliseconds())).Scan(&holder)
	if err != nil {
		return "", fmt.Errorf("clickhouse: lease: %w", err)
	}
	return holder, nil
}
