package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// Kinds of rows in the table rollups, as numbered there.
const (
	kindBucket = 1
	kindHome   = 2
	kindSpend  = 3
)

// levelType is the type of the column level.
const levelType = "Enum8('minute' = 1, 'hour' = 2, 'day' = 3)"

// levelCode is the number of a level in storage.
func levelCode(l rollup.Level) int8 { return int8(code(rollup.Levels, l)) }

// rollupKeys are the columns before the figures.
var rollupKeys = []string{
	"level", "kind", "bucket", "tenant", "service", "environment", "operation", "provider", "model",
	"executed_provider", "executed_model", "version", "next_loss_ms", "last_loss_ms",
	"latency_idx", "latency_n", "retry_tax_idx", "retry_tax_n",
}

func rollupColumns() []string {
	out := append([]string(nil), rollupKeys...)
	for i := range rollup.Figures {
		out = append(out, rollup.Figures[i].Name)
	}
	return out
}

// perMicrosecond is how many versions there are in a microsecond of the server's clock.
const perMicrosecond = 1024

// versionAt is the lowest version of that moment.
func versionAt(t time.Time) uint64 { return uint64(t.UnixMicro()) * perMicrosecond }

// rollupVersion is larger than every version of that level in the span, and than
// those of the same moment but by chance. It must be taken before what it stands
// for is read: of two rows of a bucket, the one with the larger version has then
// seen all that the other has. The server's clock may go back.
func (s *Store) rollupVersion(ctx context.Context, level rollup.Level, span rollup.Span) (uint64, error) {
	var v uint64
	err := s.value(ctx, &v, "SELECT greatest(toUInt64(toUnixTimestamp64Micro(now64(6))) * {scale:UInt64}, (SELECT max(version) + {scale:UInt64} FROM "+s.database+".rollups"+
		" WHERE level = {level:Int8} AND kind = 'bucket' AND bucket >= toDateTime({from:Int64}) AND bucket < toDateTime({to:Int64})))",
		append(rollupWindow(level, span), clickhouse.Named("scale", uint64(perMicrosecond)))...)
	return v - v%perMicrosecond + rand.Uint64N(perMicrosecond), err
}

// rollupWindow are the parameters level, from and to (in seconds).
func rollupWindow(level rollup.Level, span rollup.Span) []any {
	return []any{
		clickhouse.Named("level", levelCode(level)),
		clickhouse.Named("from", span.From/1000), clickhouse.Named("to", span.To/1000),
	}
}

// defaultRollupRows is about how many rows of rollups are inserted at once: a row has
// over a hundred columns.
const defaultRollupRows = 50_000

// rollupRow is one row to insert. What is nil is empty.
type rollupRow struct {
	kind     int8
	bucketMS int64
	group    *rollupGroup
	loss     *metrics.LossTimes
	negative bool // figures are taken away
}

// rows are those of all minutes, by minute: one of kind bucket for every minute
// wanted, even an empty one, so that what was there before is dead.
func (s *rollupSink) rows() []rollupRow {
	out := make([]rollupRow, 0, len(s.wanted)+len(s.home)+2*len(s.spend))
	for ms, l := range s.wanted {
		out = append(out, rollupRow{kind: kindBucket, bucketMS: ms, loss: l})
	}
	for _, g := range s.home {
		out = append(out, rollupRow{kind: kindHome, bucketMS: g.bucketMS, group: g})
	}
	gone := map[string]*rollupGroup{}
	for _, g := range s.spend { // there it comes, and from home it goes
		out = append(out, rollupRow{kind: kindSpend, bucketMS: g.bucketMS, group: g})
		s.group(gone, g.bucketMS, append(g.dims[:homeDims:homeDims], g.dims[providerAt], g.dims[modelAt])).Join(g.Vector)
	}
	for _, g := range gone {
		out = append(out, rollupRow{kind: kindSpend, bucketMS: g.bucketMS, group: g, negative: true})
	}
	slices.SortFunc(out, func(a, b rollupRow) int { return cmp.Compare(a.bucketMS, b.bucketMS) })
	return out
}

// pieces cuts rows, sorted by minute, into pieces of about most that hold whole
// minutes.
func pieces(rows []rollupRow, most int) [][]rollupRow {
	var out [][]rollupRow
	for len(rows) > 0 {
		n := min(len(rows), most)
		for n < len(rows) && rows[n].bucketMS == rows[n-1].bucketMS {
			n++
		}
		out, rows = append(out, rows[:n]), rows[n:]
	}
	return out
}

// oneBlock has an insert be one part of each partition, however many rows it has,
// and an INSERT SELECT run where it was sent.
var oneBlock = clickhouse.Settings{
	"max_insert_threads": 1, "min_insert_block_size_rows": 1 << 40, "min_insert_block_size_bytes": 0,
	"parallel_distributed_insert_select": 0, "insert_deduplicate": 0,
}

// writeMinutes inserts rows of whole minutes as one block: for each minute all of
// them become visible at once, whatever is killed meanwhile.
func (s *Store) writeMinutes(ctx context.Context, rows []rollupRow, version uint64) error {
	b, err := s.conn.PrepareBatch(s.with(ctx, oneBlock), "INSERT INTO "+s.database+".rollups ("+strings.Join(rollupColumns(), ", ")+")")
	if err != nil {
		return err
	}
	defer b.Abort() //nolint:errcheck // after Send it does nothing
	for i, c := range append(keyColumns(rows, version), figureColumns(rows)...) {
		if err := b.Column(i).Append(c); err != nil {
			return fmt.Errorf("column %s: %w", rollupColumns()[i], err)
		}
	}
	return b.Send()
}

// keyColumns are the columns rollupKeys.
func keyColumns(rows []rollupRow, version uint64) []any {
	n := len(rows)
	kinds, buckets, dims := make([]int8, n), make([]int64, n), [allDims][]string{}
	next, last := repeat(n, int64(metrics.NoLoss)), make([]int64, n)
	latency, latencyN := repeat(n, []uint16{}), repeat(n, []uint64{})
	retryTax, retryTaxN := repeat(n, []uint16{}), repeat(n, []uint64{})
	for i := range dims {
		dims[i] = make([]string, n)
	}
	for i, r := range rows {
		kinds[i], buckets[i] = r.kind, r.bucketMS/1000
		if r.loss != nil {
			next[i], last[i] = r.loss.NextLossMS, r.loss.LastLossMS
		}
		if r.group == nil {
			continue
		}
		for d, v := range r.group.dims {
			dims[d][i] = v
		}
		if k := r.group.sketch; k != nil {
			latency[i], latencyN[i] = counted(k.latency, 0)
			retryTax[i], retryTaxN[i] = counted(k.retryTax, k.untaxed)
		}
	}
	columns := []any{repeat(n, levelCode(rollup.Minute)), kinds, buckets}
	for i := range dims {
		columns = append(columns, dims[i])
	}
	return append(columns, repeat(n, version), next, last, latency, latencyN, retryTax, retryTaxN)
}

func repeat[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// figureColumns are the columns of [rollup.Figures]: counts modulo 2^64, money with
// its sign. It goes row by row, since a row's figures lie together and few are not 0.
func figureColumns(rows []rollupRow) []any {
	counts, costs := make([][]uint64, rollup.CountFigures), make([][]decimal.Decimal, rollup.CostFigures)
	for i := range counts {
		counts[i] = make([]uint64, len(rows))
	}
	for i := range costs {
		costs[i] = make([]decimal.Decimal, len(rows))
	}
	for i := range rows {
		r := &rows[i]
		if r.group == nil {
			continue
		}
		for at, n := range r.group.Counts {
			switch {
			case n == 0:
			case r.negative:
				counts[at][i] = -n
			default:
				counts[at][i] = n
			}
		}
		for at, m := range r.group.Costs {
			if !m.IsZero() {
				costs[at][i] = signed(m, r.negative)
			}
		}
	}
	out := make([]any, len(rollup.Figures))
	for i := range rollup.Figures {
		if f := &rollup.Figures[i]; f.Money() {
			out[i] = costs[rollup.Place(f.Name)]
		} else {
			out[i] = counts[rollup.Place(f.Name)]
		}
	}
	return out
}

func signed(m retrylens.Money, negative bool) decimal.Decimal {
	pico := m.Pico()
	if negative {
		pico.Neg(pico)
	}
	return decimal.NewFromBigInt(pico, -12)
}
