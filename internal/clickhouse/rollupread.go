package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/shopspring/decimal"
	"golang.org/x/sync/errgroup"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// attemptsWindow is up to how long a window is read from attempts alone.
const attemptsWindow = 6 * time.Hour

// quantileRows is up to how many attempts are read for quantiles that rollups do
// not hold.
const quantileRows = 5_000_000

// errMoved says that buckets were computed anew while they were read.
var errMoved = errors.New("rollups changed while they were read")

// rollupQuery is a query whose window is planned.
type rollupQuery struct {
	metrics.Query
	plan rollup.Plan

	// torn plans name buckets that were computed since the look began: an operation that moved
	// meanwhile may be in two of them, or in none.
	torn bool
}

// foldRollups answers q with the rollups where they hold, and from attempts
// elsewhere; false = the rollups do not help.
func (s *Store) foldRollups(ctx context.Context, m *moment, f *folder, q metrics.Query, expired int64) (bool, error) {
	const tries = 3
	for try := range tries {
		r, ok, err := s.planRollups(ctx, m, q, expired)
		if err != nil || !ok {
			return false, err
		}
		if r.torn && try < tries-1 {
			m = newMoment()
			continue
		}
		if err = s.runPlan(ctx, f, r); !errors.Is(err, errMoved) {
			return err == nil, err
		}
		f.reset()
		m = newMoment() // that look is over
	}
	return false, nil
}

// planRollups decides what is read where. Where attempts have expired rollups answer,
// however short the window is and whatever waits.
func (s *Store) planRollups(ctx context.Context, m *moment, q metrics.Query, expired int64) (r rollupQuery, ok bool, err error) {
	level, ok := coarsest(q.Bucket)
	if !ok || expired == 0 && s.short(q) {
		return r, false, nil
	}
	st, err := s.standing(ctx, m)
	if err != nil || !st.usable && expired == 0 {
		return r, false, err
	}
	days, err := s.days(ctx, m)
	if err != nil {
		return r, false, err
	}
	stale := st.stale()
	if len(days) == 0 { // then everything is stale
		return r, false, nil
	}
	window := extent(days, stale, q.From, q.To)
	if r.Query = q; window.Empty() {
		return r, true, nil // there is nothing
	}
	if expired == 0 && window.To-window.From <= s.attemptsWindow.Milliseconds() {
		return r, false, nil
	}
	if !st.usable {
		stale = rollup.Join(append(stale, rollup.Span{From: expired, To: window.To}))
	}
	r.plan, err = rollup.Make(rollup.Request{
		Window: window, Coarsest: level, AsOf: q.AsOf.UnixMilli(), Stale: stale, Expired: expired,
		Lookup: func(l rollup.Level, spans []rollup.Span) ([]rollup.Bucket, error) {
			return s.lookup(ctx, m, days, l, spans)
		},
	})
	for _, buckets := range r.plan.Buckets {
		r.torn = r.torn || slices.ContainsFunc(buckets, func(b rollup.Bucket) bool { return b.Version > versionAt(st.now)+perMicrosecond })
	}
	return r, err == nil && len(r.plan.Buckets) > 0, err
}

// short tells whether a window is read from attempts alone.
func (s *Store) short(q metrics.Query) bool {
	return bounded(q) && q.To.Sub(q.From) <= s.attemptsWindow
}

func bounded(q metrics.Query) bool { return !q.From.IsZero() && !q.To.IsZero() }

// coarsest is the coarsest level whose buckets lie within those of a report;
// false = none.
func coarsest(bucket time.Duration) (rollup.Level, bool) {
	for _, l := range []rollup.Level{rollup.Day, rollup.Hour, rollup.Minute} {
		if bucket%l.Width() == 0 {
			return l, true
		}
	}
	return "", false
}

// statementsAtOnce is how many statements of a report wait for the engine at once:
// most of the time of a small one is that of its planning, on one core.
const statementsAtOnce = 4

// runPlan adds everything that a plan names.
func (s *Store) runPlan(ctx context.Context, f *folder, r rollupQuery) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(statementsAtOnce)
	g.Go(func() error {
		if err := s.readBuckets(ctx, f, r); err != nil {
			return fmt.Errorf("clickhouse: read the rollups: %w", err)
		}
		return nil
	})
	for _, span := range r.plan.Attempts {
		q := r.Query
		q.From, q.To = time.UnixMilli(span.From).UTC(), time.UnixMilli(span.To).UTC()
		g.Go(func() error { return s.foldAttempts(ctx, f, q) })
	}
	return g.Wait()
}

// readBuckets adds the planned buckets: pieces of a series that are known already from
// memory.
func (s *Store) readBuckets(ctx context.Context, f *folder, r rollupQuery) error {
	var missing *readPieces
	if r.plan, missing = s.knownPieces(f, r); len(r.plan.Buckets) == 0 {
		return nil
	}
	err := s.readRows(ctx, r, func(row pieceRow) {
		f.addCounters(&row)
		missing.add(row)
	})
	if err == nil {
		s.keepPieces(missing)
	}
	return err
}

// readRows reads sketches and counters at once. Each statement tells how many of the buckets
// were there.
func (s *Store) readRows(ctx context.Context, r rollupQuery, add func(pieceRow)) error {
	heads, wanted, err := headsTable(r.plan)
	if err != nil {
		return err
	}
	params := []any{clickhouse.Named("step", int64(max(1, r.Bucket/time.Second)))}
	for d, values := range r.Filters {
		params = append(params, clickhouse.Named(string(d), values))
	}
	var rows []groupCounters
	var sketches sketchesOf
	found := [2]int{wanted, wanted}
	g, ctx := errgroup.WithContext(ctx)
	ctx = clickhouse.Context(s.with(ctx, nil), clickhouse.WithExternalTable(heads))
	g.Go(func() (err error) { rows, found[0], err = s.readCounters(ctx, r.Query, params); return err })
	if sketched(r.Query) {
		g.Go(func() (err error) { sketches, found[1], err = s.readSketches(ctx, r.Query, params); return err })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if found != [2]int{wanted, wanted} {
		return errMoved
	}
	for _, row := range rows {
		add(pieceRow{row.key, row.counters, sketches[row.hash]})
	}
	return nil
}

// headsTable sends the planned buckets along with a statement, as the table heads.
func headsTable(p rollup.Plan) (heads *ext.Table, n int, err error) {
	heads, err = ext.NewTable("heads", ext.Column("level", levelType), ext.Column("bucket", "DateTime('UTC')"), ext.Column("version", "UInt64"))
	if err != nil {
		return nil, 0, err
	}
	for l, buckets := range p.Buckets {
		for _, b := range buckets {
			if err := heads.Append(string(l), time.UnixMilli(b.Start).UTC(), b.Version); err != nil {
				return nil, 0, err
			}
			n++
		}
	}
	return heads, n, nil
}

// sketchesOf are those of latency and of retry tax by the hash of their group.
type sketchesOf map[uint64]*[2]metrics.Sketch

// sketched tells whether a query asks for quantiles that the rollups hold.
func sketched(q metrics.Query) bool {
	held := func(d metrics.Dimension) bool {
		return d == metrics.DimTenant || d == metrics.DimProvider || d == metrics.DimModel
	}
	for d, values := range q.Filters {
		if len(values) > 0 && !held(d) {
			return false
		}
	}
	return !q.CountersOnly && !q.Spend() && !slices.ContainsFunc(q.GroupBy, func(d metrics.Dimension) bool { return !held(d) })
}

// rollupKey is a grouping column: what it is and how it is called.
type rollupKey struct{ expr, name string }

// rollupGroupKeys are the grouping columns of a query.
func rollupGroupKeys(q metrics.Query) []rollupKey {
	keys := make([]rollupKey, 0, len(q.GroupBy)+1)
	for _, d := range q.GroupBy {
		k := rollupKey{tableColumn(d), "by_" + string(d)}
		if d.Executed() {
			k.expr = fmt.Sprintf("if(kind = 'spend', %s, %s)", d, tableColumn(d))
		}
		keys = append(keys, k)
	}
	if q.Bucket > 0 {
		keys = append(keys, rollupKey{"intDiv(toInt64(toUnixTimestamp(bucket)), {step:Int64}) * {step:Int64} * 1000", "bucket_start"})
	}
	return keys
}

// groupHashSQL stands for the grouping columns: a number groups several times faster than
// strings do.
func groupHashSQL(keys []rollupKey) string {
	args := "0"
	for _, k := range keys {
		args += ", " + k.expr
	}
	return "cityHash64(" + args + ")"
}

func rollupFilterSQL(q metrics.Query) string {
	text := ""
	for _, d := range metrics.Dimensions {
		if len(q.Filters[d]) > 0 {
			text += fmt.Sprintf(" AND %s IN {%s:Array(String)}", d, d)
		}
	}
	return text
}

// rollupRows are those of the planned buckets. The first condition, which the other one
// implies, is of the form that the primary key is.
const rollupRows = "(level, toStartOfHour(bucket)) GLOBAL IN (SELECT level, toStartOfHour(bucket) FROM heads)" +
	" AND (level, bucket, version) GLOBAL IN (SELECT level, bucket, version FROM heads)"

// heldFigures are those that q asks for, of its report by what was executed those of spend.
func heldFigures(q metrics.Query) []rollup.Figure {
	figures, err := rollup.Needed(q.Needs)
	if err != nil { // Report has asked
		panic("clickhouse: " + err.Error())
	}
	if !q.Spend() {
		return figures
	}
	return slices.DeleteFunc(slices.Clone(figures), func(f rollup.Figure) bool { return !f.Spend && f.Name != "open" })
}

// countersSQL sums the counters of the planned buckets, and counts these.
func countersSQL(database string, q metrics.Query) string {
	keys := rollupGroupKeys(q)
	var b strings.Builder
	b.WriteString("SELECT kind = 'bucket' AS is_bucket, ")
	for _, k := range keys {
		b.WriteString(k.expr + " AS " + k.name + ", ")
	}
	b.WriteString("any(" + groupHashSQL(keys) + ") AS group_hash, count() AS n_rows")
	for _, f := range heldFigures(q) {
		b.WriteString(",\n    sum(" + f.Name + ")")
	}
	kinds := "'home'"
	if q.Spend() {
		kinds = "'home', 'spend'"
	}
	b.WriteString("\nFROM " + database + ".rollups\nPREWHERE " + rollupRows + "\nWHERE (kind = 'bucket' OR kind IN (" + kinds + ")" + rollupFilterSQL(q) + ")\nGROUP BY is_bucket")
	for _, k := range keys {
		b.WriteString(", " + k.name)
	}
	return b.String()
}

// groupCounters are the counters of a group, and its hash.
type groupCounters struct {
	key      metrics.Key
	counters metrics.Counters
	hash     uint64
}

// readCounters also returns how many of the buckets were there.
func (s *Store) readCounters(ctx context.Context, q metrics.Query, params []any) (out []groupCounters, buckets int, err error) {
	rows, err := s.conn.Query(ctx, countersSQL(s.database, q), params...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	r := newCounterRow(q)
	for rows.Next() {
		if err := rows.Scan(r.to...); err != nil {
			return nil, 0, err
		}
		if r.isBucket {
			buckets += int(r.rows)
			continue
		}
		c, err := r.counters()
		if err != nil {
			return nil, 0, err
		}
		out = append(out, groupCounters{keyOf(q, r.dims, r.bucketMS), c, r.hash})
	}
	return out, buckets, rows.Err()
}

// counterRow is a row of countersSQL, scanned into again and again.
type counterRow struct {
	isBucket bool
	dims     []string
	bucketMS int64
	hash     uint64
	rows     uint64
	figures  []rollup.Figure
	counts   []uint64
	costs    []decimal.Decimal
	to       []any
}

func newCounterRow(q metrics.Query) *counterRow {
	r := &counterRow{figures: heldFigures(q), dims: make([]string, len(q.GroupBy))}
	r.counts, r.costs = make([]uint64, len(r.figures)), make([]decimal.Decimal, len(r.figures))
	r.to = []any{&r.isBucket}
	for i := range r.dims {
		r.to = append(r.to, &r.dims[i])
	}
	if q.Bucket > 0 {
		r.to = append(r.to, &r.bucketMS)
	}
	r.to = append(r.to, &r.hash, &r.rows)
	for i := range r.figures {
		if r.figures[i].Money() {
			r.to = append(r.to, &r.costs[i])
		} else {
			r.to = append(r.to, &r.counts[i])
		}
	}
	return r
}

func (r *counterRow) counters() (c metrics.Counters, err error) {
	for i := range r.figures {
		f := &r.figures[i]
		if !f.Money() {
			f.SetCount(&c, r.counts[i])
		} else if !f.SetCost(&c, r.costs[i].Shift(12).BigInt()) {
			return c, fmt.Errorf("a sum of %s that is negative or above 128 bits: %s", f.Name, r.costs[i])
		}
	}
	return c, nil
}

// addCounters adds what rollups sum for a group.
func (f *folder) addCounters(r *pieceRow) {
	f.lock.Lock()
	defer f.lock.Unlock()
	c := &r.counters
	f.total.Add(c)
	if c.Operations == 0 && c.KeyConflicts == 0 && c.ExecutedAttempts == 0 || f.q.Spend() && c.ExecutedAttempts == 0 {
		return
	}
	g := f.group(r.key)
	g.Add(c)
	if r.sketches != nil {
		g.latency.Merge(&r.sketches[0])
		g.retryTax.Merge(&r.sketches[1])
	}
}

// ofRetryTax is added to the indices of sketches of retry tax, which are 16 bits wide, so
// that one statement reads both kinds; ofBucket stands for a bucket that was there.
const (
	ofRetryTax = 1 << 16
	ofBucket   = 2 * ofRetryTax
)

// sketchesSQL merges the sketches of the planned buckets. Groups are told by their hash;
// the counters' statement tells whose that is.
func sketchesSQL(database string, q metrics.Query) string {
	bucket := "if(kind = 'bucket', [toUInt32(" + strconv.Itoa(ofBucket) + ")], "
	return "SELECT group_hash, groupArray(idx) AS sketch_idx, groupArray(n) AS sketch_n\nFROM\n(\n    SELECT " + groupHashSQL(rollupGroupKeys(q)) +
		" AS group_hash, idx, sum(sketch_count) AS n\n    FROM " + database + ".rollups\n    ARRAY JOIN " + bucket + "arrayConcat(CAST(latency_idx, 'Array(UInt32)'), arrayMap(i -> i + " + strconv.Itoa(ofRetryTax) +
		", CAST(retry_tax_idx, 'Array(UInt32)')))) AS idx,\n        if(kind = 'bucket', [toUInt64(1)], arrayConcat(latency_n, retry_tax_n)) AS sketch_count\n    PREWHERE " + rollupRows +
		"\n    WHERE kind = 'bucket' OR kind = 'home'" + rollupFilterSQL(q) + "\n    GROUP BY group_hash, idx\n)\nGROUP BY group_hash"
}

// readSketches also returns how many of the buckets were there.
func (s *Store) readSketches(ctx context.Context, q metrics.Query, params []any) (out sketchesOf, buckets int, err error) {
	rows, err := s.conn.Query(ctx, sketchesSQL(s.database, q), params...)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	out = sketchesOf{}
	var hash uint64
	var idx []uint32
	var n []uint64
	for rows.Next() {
		if err := rows.Scan(&hash, &idx, &n); err != nil {
			return nil, 0, err
		}
		sketches := &[2]metrics.Sketch{}
		for i := range idx {
			if idx[i] == ofBucket {
				buckets += int(n[i])
				continue
			}
			sketches[idx[i]/ofRetryTax].AddBucket(uint16(idx[i]), n[i])
		}
		out[hash] = sketches
	}
	return out, buckets, rows.Err()
}
