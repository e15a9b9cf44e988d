package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/rollup"
)

// sumUp computes buckets of a level anew from all buckets of the finer one. The
// version is taken here, after those were written, so that it stands for them.
func (s *Store) sumUp(ctx context.Context, to, from rollup.Level, buckets []int64) error {
	width := to.Width().Milliseconds()
	span := rollup.Span{From: buckets[0], To: buckets[len(buckets)-1] + width}
	version, err := s.rollupVersion(ctx, to, span)
	if err != nil {
		return err
	}
	if ctx, err = withTable(s.with(ctx, oneBlock), "wanted_buckets", "bucket", "UInt32", seconds(buckets)); err != nil {
		return err
	}
	params := append(rollupWindow(from, span), clickhouse.Named("to_level", levelCode(to)),
		clickhouse.Named("width", uint32(width/1000)), clickhouse.Named("version", version))
	if err := s.conn.Exec(ctx, sumUpSQL(s.database), params...); err != nil {
		return fmt.Errorf("sum up %ss: %w", to, err)
	}
	return nil
}

// sumPieces cuts sorted buckets of a level into pieces that have about 4 times
// s.rollupRows in the finer one.
func (s *Store) sumPieces(ctx context.Context, to, from rollup.Level, buckets []int64) ([][]int64, error) {
	width := to.Width().Milliseconds()
	span := rollup.Span{From: buckets[0], To: buckets[len(buckets)-1] + width}
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT intDiv(toUnixTimestamp(bucket), {width:UInt32}) * {width:UInt64} * 1000 AS wider, count() FROM "+s.database+".rollups"+
		" WHERE level = {level:Int8} AND bucket >= toDateTime({from:Int64}, 'UTC') AND bucket < toDateTime({to:Int64}, 'UTC') GROUP BY wider",
		append(rollupWindow(from, span), clickhouse.Named("width", uint32(width/1000)))...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[int64]uint64{}
	for rows.Next() {
		var start, n uint64
		if err := rows.Scan(&start, &n); err != nil {
			return nil, err
		}
		held[int64(start)] = n
	}
	return cutBuckets(buckets, held, 4*uint64(s.rollupRows)), rows.Err()
}

func cutBuckets(buckets []int64, rows map[int64]uint64, most uint64) [][]int64 {
	var out [][]int64
	sum := uint64(0)
	for i, b := range buckets {
		if i == 0 || sum+rows[b] > most {
			out, sum = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], b)
		sum += rows[b]
	}
	return out
}

func seconds(ms []int64) []uint32 {
	out := make([]uint32, len(ms))
	for i, v := range ms {
		out[i] = uint32(v / 1000)
	}
	return out
}

// liveBuckets are the buckets of a level and span with the version that holds.
func liveBuckets(database string) string {
	return "SELECT bucket, max(version) FROM " + database + ".rollups WHERE level = {level:Int8} AND kind = 'bucket'" +
		" AND bucket >= toDateTime({from:Int64}, 'UTC') AND bucket < toDateTime({to:Int64}, 'UTC') GROUP BY bucket"
}

func sumUpSQL(database string) string {
	const dims = "tenant, service, environment, operation, provider, model, executed_provider, executed_model"
	var b strings.Builder
	fmt.Fprintf(&b, "INSERT INTO %s.rollups (%s)\n", database, strings.Join(rollupColumns(), ", "))
	b.WriteString("SELECT CAST({to_level:Int8}, '" + strings.ReplaceAll(levelType, "'", "\\'") + "'), kind, toDateTime(wider, 'UTC'), " + dims + ", {version:UInt64}, min(next_loss_ms), max(last_loss_ms),\n" +
		"    tupleElement(sumMap(latency_idx, latency_n) AS latency, 1), tupleElement(latency, 2),\n" +
		"    tupleElement(sumMap(retry_tax_idx, retry_tax_n) AS retry_tax, 1), tupleElement(retry_tax, 2)")
	for i := range rollup.Figures {
		b.WriteString(",\n    sum(" + rollup.Figures[i].Name + ")")
	}
	b.WriteString("\nFROM " + database + ".rollups\n" +
		"WHERE level = {level:Int8} AND bucket >= toDateTime({from:Int64}, 'UTC') AND bucket < toDateTime({to:Int64}, 'UTC')\n" +
		"    AND intDiv(toUnixTimestamp(bucket), {width:UInt32}) * {width:UInt32} GLOBAL IN (SELECT bucket FROM wanted_buckets)\n" +
		"    AND (bucket, version) GLOBAL IN (" + liveBuckets(database) + ")\n" +
		"GROUP BY kind, toUInt32(intDiv(toUnixTimestamp(bucket), {width:UInt32}) * {width:UInt32}) AS wider, " + dims)
	return b.String()
}
