package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
}

// foldRollups answers q with the rollups where they hold, and from attempts
// elsewhere; false = the rollups do not help.
func (s *Store) foldRollups(ctx context.Context, f *folder, q metrics.Query, expired int64) (bool, error) {
	const tries = 3
	for range tries {
		r, ok, err := s.planRollups(ctx, q, expired)
		if err != nil || !ok {
			return false, err
		}
		if err = s.runPlan(ctx, f, r); !errors.Is(err, errMoved) {
			return err == nil, err
		}
		f.reset()
	}
	return false, nil
}

// planRollups decides what is read where. Where attempts have expired rollups answer,
// however short the window is and whatever waits.
func (s *Store) planRollups(ctx context.Context, q metrics.Query, expired int64) (r rollupQuery, ok bool, err error) {
	level, ok := coarsest(q.Bucket)
	if !ok || expired == 0 && s.short(q) {
		return r, false, nil
	}
	usable, err := s.rollupsUsable(ctx)
	if err != nil || !usable && expired == 0 {
		return r, false, err
	}
	// What is marked is read before the buckets: a mark goes when its bucket is there.
	stale, err := s.staleSpans(ctx)
	if err != nil {
		return r, false, err
	}
	window, err := s.extent(ctx, q, stale)
	if err != nil || expired == 0 && window.To-window.From <= s.attemptsWindow.Milliseconds() {
		return r, false, err
	}
	if !usable {
		stale = rollup.Join(append(stale, rollup.Span{From: expired, To: window.To}))
	}
	r.Query = q
	r.plan, err = rollup.Make(rollup.Request{
		Window: window, Coarsest: level, AsOf: q.AsOf.UnixMilli(), Stale: stale, Expired: expired,
		Lookup: func(l rollup.Level, span rollup.Span) ([]rollup.Bucket, error) { return s.buckets(ctx, l, span) },
	})
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

// rollupsUsable tells whether marks tell all that rollups have not seen; not so
// while settlements or prices have come whose minutes nobody has looked up yet.
func (s *Store) rollupsUsable(ctx context.Context) (bool, error) {
	told, err := s.marksTellAll(ctx)
	if isUnknownTable(err) { // the schema is older than the table
		return false, nil
	}
	if err != nil || !told {
		return false, err
	}
	var waiting uint64
	err = s.value(ctx, &waiting, "SELECT count() FROM (SELECT 1 FROM "+s.database+".rollup_overlay_marks"+
		" GROUP BY kind, provider, name, valid_from, mark HAVING sum(sign) > 0 LIMIT 1)")
	return waiting == 0, err
}

// extent is the window of q as far as there is anything: every minute that has
// attempts is in a rollup, or stale.
func (s *Store) extent(ctx context.Context, q metrics.Query, stale []rollup.Span) (rollup.Span, error) {
	const day = 24 * time.Hour
	var buckets uint64
	var first, last int64
	err := s.conn.QueryRow(s.with(ctx, nil), "SELECT count(), toInt64(toUnixTimestamp(min(bucket))) * 1000, toInt64(toUnixTimestamp(max(bucket))) * 1000"+
		" FROM "+s.database+".rollups WHERE level = 'day' AND kind = 'bucket'").Scan(&buckets, &first, &last)
	if err != nil {
		return rollup.Span{}, fmt.Errorf("clickhouse: find the first and the last day: %w", err)
	}
	if buckets == 0 { // then everything is stale
		return rollup.Span{}, nil
	}
	span := rollup.Span{From: first, To: last + day.Milliseconds()}
	if len(stale) > 0 {
		span.From, span.To = min(span.From, stale[0].From), max(span.To, stale[len(stale)-1].To)
	}
	if !q.From.IsZero() {
		span.From = max(span.From, q.From.UnixMilli())
	}
	if !q.To.IsZero() {
		span.To = min(span.To, q.To.UnixMilli())
	}
	return span, nil
}

// staleSpans are the times whose operations a marked minute may have changed.
func (s *Store) staleSpans(ctx context.Context) ([]rollup.Span, error) {
	minutes, err := s.minutes(s.with(ctx, nil), "SELECT DISTINCT toInt64(toUnixTimestamp(minute)) * 1000 FROM"+
		" (SELECT minute FROM "+s.database+".rollup_marks GROUP BY minute, mark HAVING sum(sign) > 0)")
	if err != nil {
		return nil, fmt.Errorf("clickhouse: read what is marked: %w", err)
	}
	spans := make([]rollup.Span, len(minutes))
	for i, m := range minutes {
		spans[i] = rollup.Span{From: m - startsApart, To: m + minuteMS + startsApart}
	}
	return rollup.Join(spans), nil
}

func (s *Store) buckets(ctx context.Context, l rollup.Level, span rollup.Span) ([]rollup.Bucket, error) {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT toInt64(toUnixTimestamp(bucket)) * 1000, max(version), argMax(next_loss_ms, version), argMax(last_loss_ms, version)"+
		" FROM "+s.database+".rollups WHERE level = {level:Int8} AND kind = 'bucket'"+
		" AND bucket >= toDateTime({from:Int64}, 'UTC') AND bucket < toDateTime({to:Int64}, 'UTC') GROUP BY bucket", rollupWindow(l, span)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []rollup.Bucket
	for rows.Next() {
		var b rollup.Bucket
		if err := rows.Scan(&b.Start, &b.Version, &b.NextLossMS, &b.LastLossMS); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, rows.Err()
}

// statementsAtOnce is how many statements of a report wait for the engine at once:
// most of the time of a small one is that of its planning, on one core.
const statementsAtOnce = 4

// runPlan adds everything that a plan names.
func (s *Store) runPlan(ctx context.Context, f *folder, r rollupQuery) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(statementsAtOnce)
	for _, span := range r.plan.Attempts {
		q := r.Query
		q.From, q.To = time.UnixMilli(span.From).UTC(), time.UnixMilli(span.To).UTC()
		g.Go(func() error { return s.foldAttempts(ctx, f, q) })
	}
	for l, buckets := range r.plan.Buckets {
		g.Go(func() error {
			if err := s.readLevel(ctx, f, r, l, buckets); err != nil {
				return fmt.Errorf("clickhouse: read the rollup by %s: %w", l, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// readLevel reads sketches first: the counters' statement tells whether all
// buckets were still there.
func (s *Store) readLevel(ctx context.Context, f *folder, r rollupQuery, l rollup.Level, buckets []rollup.Bucket) error {
	heads, err := ext.NewTable("heads", ext.Column("bucket", "DateTime('UTC')"), ext.Column("version", "UInt64"))
	if err != nil {
		return err
	}
	for _, b := range buckets {
		if err := heads.Append(time.UnixMilli(b.Start).UTC(), b.Version); err != nil {
			return err
		}
	}
	ctx = clickhouse.Context(s.with(ctx, nil), clickhouse.WithExternalTable(heads))
	span := rollup.Span{From: buckets[0].Start, To: buckets[len(buckets)-1].Start + l.Width().Milliseconds()}
	params := append(rollupWindow(l, span), clickhouse.Named("step", uint32(max(1, r.Bucket/time.Second))))
	for d, values := range r.Filters {
		params = append(params, clickhouse.Named(string(d), values))
	}
	sketches := [2]sketchesOf{}
	if sketched(r.Query) {
		if sketches, err = s.readSketches(ctx, r.Query, params); err != nil {
			return err
		}
	}
	return s.readCounters(ctx, f, r.Query, len(buckets), params, sketches)
}

// sketchesOf are sketches by the hash of their group.
type sketchesOf map[uint64]*metrics.Sketch

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
		keys = append(keys, rollupKey{"toInt64(intDiv(toUnixTimestamp(bucket), {step:UInt32})) * {step:UInt32} * 1000", "bucket_start"})
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

const rollupRows = "level = {level:Int8} AND bucket >= toDateTime({from:Int64}, 'UTC') AND bucket < toDateTime({to:Int64}, 'UTC')" +
	" AND (bucket, version) GLOBAL IN (SELECT bucket, version FROM heads)"

func heldFigures(q metrics.Query) []rollup.Figure {
	if !q.Spend() {
		return rollup.Figures
	}
	open := slices.IndexFunc(rollup.Figures, func(f rollup.Figure) bool { return f.Name == "open" })
	return append(slices.Clone(rollup.SpendFigures), rollup.Figures[open])
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
	b.WriteString("\nFROM " + database + ".rollups\nWHERE " + rollupRows + " AND (kind = 'bucket' OR kind IN (" + kinds + ")" + rollupFilterSQL(q) + ")\nGROUP BY is_bucket")
	for _, k := range keys {
		b.WriteString(", " + k.name)
	}
	return b.String()
}

func (s *Store) readCounters(ctx context.Context, f *folder, q metrics.Query, wanted int, params []any, sketches [2]sketchesOf) error {
	rows, err := s.conn.Query(ctx, countersSQL(s.database, q), params...)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := newCounterRow(q)
	found := uint64(0)
	for rows.Next() {
		if err := rows.Scan(r.to...); err != nil {
			return err
		}
		if r.isBucket {
			found += r.rows
			continue
		}
		if err := f.addCounters(r.key(), r, sketches[0][r.hash], sketches[1][r.hash]); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if found != uint64(wanted) {
		return errMoved
	}
	return nil
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

func (r *counterRow) key() metrics.Key { return keyOf(r.dims, r.bucketMS) }

func keyOf(dims []string, bucketMS int64) metrics.Key {
	k := metrics.Key{Dims: slices.Clone(dims)}
	if bucketMS != 0 {
		k.Bucket = time.UnixMilli(bucketMS).UTC()
	}
	return k
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

// addCounters adds what rollups sum for a group; sketches may be nil.
func (f *folder) addCounters(k metrics.Key, r *counterRow, latency, retryTax *metrics.Sketch) error {
	c, err := r.counters()
	if err != nil {
		return err
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.total.Add(&c)
	if c.Operations == 0 && c.KeyConflicts == 0 && c.ExecutedAttempts == 0 || f.q.Spend() && c.ExecutedAttempts == 0 {
		return nil
	}
	g := f.group(k)
	g.Add(&c)
	if latency != nil {
		g.latency.Merge(latency)
	}
	if retryTax != nil {
		g.retryTax.Merge(retryTax)
	}
	return nil
}

// sketchesSQL merges the sketches of the planned buckets. Groups are told by their hash;
// the counters' statement tells whose that is.
func sketchesSQL(database string, q metrics.Query, name string) string {
	return "SELECT group_hash, groupArray(idx) AS sketch_idx, groupArray(n) AS sketch_n\nFROM\n(\n    SELECT " + groupHashSQL(rollupGroupKeys(q)) + " AS group_hash, idx, sum(sketch_count) AS n FROM " +
		database + ".rollups ARRAY JOIN " + name + "_idx AS idx, " + name + "_n AS sketch_count\n    WHERE " + rollupRows + " AND kind = 'home'" + rollupFilterSQL(q) +
		"\n    GROUP BY group_hash, idx\n)\nGROUP BY group_hash"
}

// readSketches reads those of latency and of retry tax.
func (s *Store) readSketches(ctx context.Context, q metrics.Query, params []any) (out [2]sketchesOf, err error) {
	g, ctx := errgroup.WithContext(ctx)
	for i, name := range []string{"latency", "retry_tax"} {
		g.Go(func() (err error) { out[i], err = s.readSketch(ctx, q, name, params); return err })
	}
	err = g.Wait()
	return out, err
}

func (s *Store) readSketch(ctx context.Context, q metrics.Query, name string, params []any) (sketchesOf, error) {
	rows, err := s.conn.Query(ctx, sketchesSQL(s.database, q, name), params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := sketchesOf{}
	var hash uint64
	var idx []uint16
	var n []uint64
	for rows.Next() {
		if err := rows.Scan(&hash, &idx, &n); err != nil {
			return nil, err
		}
		sketch := &metrics.Sketch{}
		for i := range idx {
			sketch.AddBucket(idx[i], n[i])
		}
		out[hash] = sketch
	}
	return out, rows.Err()
}
