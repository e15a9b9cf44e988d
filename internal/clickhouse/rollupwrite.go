package clickhouse

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/shopspring/decimal"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// Kinds of rows in the table rollups, as numbered there.
const (
	kindBucket = 1
	kindHome   = 2
	kindSpend  = 3
	kindSketch = 4
)

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

// rollupVersion is larger than every version of that level in the span, and than
// those of the same moment but by chance. It must be taken before what it stands
// for is read: of two rows of a bucket, the one with the larger version has then
// seen all that the other has. The server's clock may go back.
func (s *Store) rollupVersion(ctx context.Context, level rollup.Level, span rollup.Span) (uint64, error) {
	const perMicrosecond = 1024
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

// minuteRows are the rows of some minutes as columns.
type minuteRows struct {
	kind                []int8
	bucket              []int64 // Unix seconds
	dims                [allDims][]string
	next, last          []int64
	latency, retryTax   [][]uint16
	latencyN, retryTaxN [][]uint64
	counters            []*metrics.Counters // nil = none
	negative            []bool              // counters are taken away
}

// none are the counters of rows that have none.
var none = &metrics.Counters{}

func (m *minuteRows) add(kind int8, bucketMS int64, dims []string) {
	m.kind, m.bucket = append(m.kind, kind), append(m.bucket, bucketMS/1000)
	for i := range m.dims {
		v := ""
		if i < len(dims) {
			v = dims[i]
		}
		m.dims[i] = append(m.dims[i], v)
	}
	m.next, m.last = append(m.next, metrics.NoLoss), append(m.last, 0)
	m.latency, m.latencyN = append(m.latency, []uint16{}), append(m.latencyN, []uint64{})
	m.retryTax, m.retryTaxN = append(m.retryTax, []uint16{}), append(m.retryTaxN, []uint64{})
	m.counters, m.negative = append(m.counters, none), append(m.negative, false)
}

// columns turns what was gathered into rows: one of kind bucket for every minute
// wanted, even an empty one, so that what was there before is dead.
func (s *rollupSink) columns() *minuteRows {
	m := &minuteRows{}
	last := func() int { return len(m.kind) - 1 }
	for ms, l := range s.wanted {
		m.add(kindBucket, ms, nil)
		m.next[last()], m.last[last()] = l.NextLossMS, l.LastLossMS
	}
	for _, g := range s.home {
		m.add(kindHome, g.bucketMS, g.dims)
		m.counters[last()] = &g.Counters
	}
	gone := map[string]*rollupGroup{}
	for _, g := range s.spend { // there it comes, and from home it goes
		m.add(kindSpend, g.bucketMS, g.dims)
		m.counters[last()] = &g.Counters
		s.group(gone, g.bucketMS, append(g.dims[:homeDims:homeDims], g.dims[providerAt], g.dims[modelAt])).Add(&g.Counters)
	}
	for _, g := range gone {
		m.add(kindSpend, g.bucketMS, g.dims)
		m.counters[last()], m.negative[last()] = &g.Counters, true
	}
	for _, k := range s.sketches {
		m.add(kindSketch, k.bucketMS, []string{k.tenant, "", "", "", k.provider, k.model})
		m.latency[last()], m.latencyN[last()] = counted(k.latency, 0)
		m.retryTax[last()], m.retryTaxN[last()] = counted(k.retryTax, k.untaxed)
	}
	return m
}

// writeMinutes inserts the rows of some minutes as one block: for each minute all
// of them become visible at once, whatever is killed meanwhile.
func (s *Store) writeMinutes(ctx context.Context, sink *rollupSink, version uint64) error {
	m := sink.columns()
	b, err := s.conn.PrepareBatch(s.with(ctx, oneBlock), "INSERT INTO "+s.database+".rollups ("+strings.Join(rollupColumns(), ", ")+")")
	if err != nil {
		return err
	}
	defer b.Abort() //nolint:errcheck // after Send it does nothing
	if err := m.append(b, version); err != nil {
		return err
	}
	return b.Send()
}

// oneBlock has an insert be one part of each partition, however many rows it has,
// and an INSERT SELECT run where it was sent.
var oneBlock = clickhouse.Settings{
	"max_insert_threads": 1, "min_insert_block_size_rows": 1 << 40, "min_insert_block_size_bytes": 0,
	"parallel_distributed_insert_select": 0, "insert_deduplicate": 0,
}

func (m *minuteRows) append(b driver.Batch, version uint64) error {
	n := len(m.kind)
	columns := []any{repeat(n, levelCode(rollup.Minute)), m.kind, m.bucket}
	for i := range m.dims {
		columns = append(columns, m.dims[i])
	}
	columns = append(columns, repeat(n, version), m.next, m.last, m.latency, m.latencyN, m.retryTax, m.retryTaxN)
	for i := range rollup.Figures {
		columns = append(columns, m.figure(&rollup.Figures[i]))
	}
	for i, c := range columns {
		if err := b.Column(i).Append(c); err != nil {
			return fmt.Errorf("column %s: %w", rollupColumns()[i], err)
		}
	}
	return nil
}

func repeat[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// figure is one column: uint64 modulo 2^64, or money with its sign.
func (m *minuteRows) figure(f *rollup.Figure) any {
	if f.Money() {
		return m.costs(f)
	}
	out := make([]uint64, len(m.counters))
	for i, c := range m.counters {
		switch {
		case c == none:
		case m.negative[i]:
			out[i] = -f.Count(c)
		default:
			out[i] = f.Count(c)
		}
	}
	return out
}

func (m *minuteRows) costs(f *rollup.Figure) []decimal.Decimal {
	out := make([]decimal.Decimal, len(m.counters))
	for i, c := range m.counters {
		v := f.Cost(c)
		if v.IsZero() {
			continue
		}
		pico := v.Pico()
		if m.negative[i] {
			pico = new(big.Int).Neg(pico)
		}
		out[i] = decimal.NewFromBigInt(pico, -12)
	}
	return out
}
