package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
	"github.com/retrylens/retrylens/schema"
)

// FinaliseOptions say what one pass works off.
type FinaliseOptions struct {
	// MinAge is how long a minute must have got no rows before it is worked off; one
	// that gets rows all the time is after ten times as long. 0 = everything that is
	// marked.
	MinAge time.Duration

	// Everything marks every minute that has attempts first: for a store whose
	// rollups are not trusted.
	Everything bool

	// AsOf is the time that unfinished operations are judged from, ages are counted
	// from and retention reaches back from; zero = the server's own.
	AsOf time.Time

	// Progress is called after each step with the minutes done so far and those of
	// the pass; nil = nobody.
	Progress func(done, of int)

	step func(name string) error // of tests: before each statement that writes
}

// FinaliseResult is what a pass did.
type FinaliseResult struct {
	Minutes int // computed anew from attempts
	Hours   int
	Days    int
	Rows    int           // written for the minutes
	Expired int           // minutes whose attempts the retention has removed: their rollups stay
	Waiting int           // minutes younger than MinAge, left for the next pass
	Took    time.Duration // by the server's clock

	// MergeErr is why marks that are done could not be merged. Nothing is wrong then, reports are
	// but slower.
	MergeErr error
}

// expiryMargin is how long before the retention ends rollups are no longer
// computed: whole days are dropped while a pass runs.
const expiryMargin = time.Hour

// Finalise brings the rollups up to what was marked before it began (and is older
// than MinAge): every minute is computed anew from the attempts, then its hour and
// its day. It may be killed at any point and run twice at once; whatever is not
// done stays marked, and the same rollups come out in the end.
func (s *Store) Finalise(ctx context.Context, o FinaliseOptions) (FinaliseResult, error) {
	p := &pass{Store: s, o: o}
	if err := p.run(ctx); err != nil {
		return p.result, fmt.Errorf("clickhouse: finalise: %w", err)
	}
	return p.result, nil
}

// pass is one run of Finalise.
type pass struct {
	*Store
	o       FinaliseOptions
	started time.Time // the server's clock
	asOf    time.Time
	oldest  int64 // minutes before it are not computed any more

	lock   sync.Mutex // of result, and for calls of the options' functions
	result FinaliseResult
}

// chunksAtOnce is how many chunks are worked on at once: while one waits for the
// engine the other is folded here. They may share an hour or a day, as any two
// finalisers may.
const chunksAtOnce = 2

func (p *pass) run(ctx context.Context) (err error) {
	if p.started, err = p.serverTime(ctx); err != nil {
		return err
	}
	if p.asOf = p.o.AsOf; p.asOf.IsZero() {
		p.asOf = p.started
	}
	retention, err := p.Retention(ctx)
	if err != nil {
		return err
	}
	p.oldest = oldest(p.asOf, retention)
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for {
		more, err := p.round(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return p.finish(ctx)
}

func (s *Store) serverTime(ctx context.Context) (t time.Time, err error) {
	err = s.value(ctx, &t, "SELECT now64(3, 'UTC')")
	return t, err
}

// write runs a step that writes.
func (p *pass) write(ctx context.Context, name string, do func(context.Context) error) error {
	if p.o.step != nil {
		p.lock.Lock()
		err := p.o.step(name)
		p.lock.Unlock()
		if err != nil {
			return err
		}
	}
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// prepare turns everything that may have changed a minute into marks.
func (p *pass) prepare(ctx context.Context) error {
	told, err := p.marksTellAll(ctx)
	if err != nil {
		return err
	}
	if !told || p.o.Everything {
		if err := p.write(ctx, "mark every minute", p.markEverything); err != nil {
			return err
		}
		if err := p.write(ctx, "note that marks tell all", func(ctx context.Context) error { return p.logRun(ctx, "marked") }); err != nil {
			return err
		}
	}
	if err := p.write(ctx, "settlements and prices", p.resolveOverlays); err != nil {
		return err
	}
	due, err := p.dueLosses(ctx, p.asOf)
	if err != nil {
		return fmt.Errorf("find operations that are lost by now: %w", err)
	}
	due = slices.DeleteFunc(due, func(m int64) bool { return m < p.oldest })
	return p.write(ctx, "mark lost operations", func(ctx context.Context) error { return p.markMinutes(ctx, due) })
}

// safeDays is how many days a pass is trusted for: marks expire later.
const safeDays = schema.RollupMarkDays * 2 / 3

// marksTellAll tells whether marks are known to be complete: since somebody marked
// everything, marks were never left for so long that they expired.
func (s *Store) marksTellAll(ctx context.Context) (bool, error) {
	var n uint64
	err := s.value(ctx, &n, "SELECT count() FROM "+s.database+".rollup_runs WHERE finished_at > now64(3) - toIntervalDay({days:UInt32})",
		clickhouse.Named("days", uint32(safeDays)))
	return n > 0, err
}

func (p *pass) logRun(ctx context.Context, kind string) error {
	return p.conn.Exec(p.with(ctx, nil), "INSERT INTO "+p.database+".rollup_runs (kind, started_at, finished_at, minutes, expired)"+
		" SELECT {kind:String}, fromUnixTimestamp64Milli({started:Int64}), now64(3), {minutes:UInt64}, {expired:UInt64}",
		clickhouse.Named("kind", kind), clickhouse.Named("started", p.started.UnixMilli()),
		clickhouse.Named("minutes", uint64(p.result.Minutes)), clickhouse.Named("expired", uint64(p.result.Expired)))
}

// finish notes that everything marked before the pass is done.
func (p *pass) finish(ctx context.Context) error {
	end, err := p.serverTime(ctx)
	if err != nil {
		return err
	}
	p.result.Took = end.Sub(p.started)
	if err := p.write(ctx, "note the pass", func(ctx context.Context) error { return p.logRun(ctx, "pass") }); err != nil {
		return err
	}
	return p.write(ctx, "merge marks that are done", func(ctx context.Context) error {
		p.result.MergeErr = p.mergeMarks(ctx)
		return ctx.Err()
	})
}

// round works off the marks that are there, and tells whether there may be more
// that were there when the pass began.
func (p *pass) round(ctx context.Context) (more bool, err error) {
	all, err := p.marks(ctx)
	if err != nil {
		return false, fmt.Errorf("read the marks: %w", err)
	}
	due := p.due(all)
	dirty, err := p.dropExpired(ctx, due)
	if err != nil {
		return false, err
	}
	chunks, err := p.chunks(ctx, dirty)
	if err != nil {
		return false, fmt.Errorf("count what is marked: %w", err)
	}
	if err := p.work(ctx, chunks, due, len(dirty)); err != nil {
		return false, err
	}
	return len(all) == marksAtOnce && len(due) > 0, nil
}

// work does the chunks, of that many minutes, a few at once. It returns the first
// error when all that had begun has ended.
func (p *pass) work(ctx context.Context, chunks [][]int64, due map[int64][]mark, minutes int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan []int64)
	of := p.result.Minutes + minutes
	var workers sync.WaitGroup
	for range min(chunksAtOnce, len(chunks)) {
		workers.Go(func() {
			for c := range todo {
				if err := p.chunk(ctx, c, due); err != nil {
					cancel(err)
				}
				p.progress(of)
			}
		})
	}
	for _, c := range chunks {
		select {
		case todo <- c:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(todo)
	workers.Wait()
	return context.Cause(ctx)
}

func (p *pass) progress(of int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.o.Progress != nil {
		p.o.Progress(p.result.Minutes, max(of, p.result.Minutes))
	}
}

// note changes the result.
func (p *pass) note(change func(*FinaliseResult)) {
	p.lock.Lock()
	defer p.lock.Unlock()
	change(&p.result)
}

// due are the marks of minutes that are old enough, by minute.
func (p *pass) due(all []mark) map[int64][]mark {
	const patience = 10
	out := map[int64][]mark{}
	for _, m := range all {
		out[m.minute] = append(out[m.minute], m)
	}
	p.result.Waiting = 0
	for minute, marks := range out {
		if p.o.MinAge == 0 {
			continue
		}
		byAge := func(a, b mark) int { return a.markedAt.Compare(b.markedAt) }
		oldest, youngest := slices.MinFunc(marks, byAge), slices.MaxFunc(marks, byAge)
		if p.started.Sub(youngest.markedAt) < p.o.MinAge && p.started.Sub(oldest.markedAt) < patience*p.o.MinAge {
			delete(out, minute)
			p.result.Waiting++
		}
	}
	return out
}

// dropExpired forgets the marks of minutes whose attempts may be gone: computed
// anew they would come out too small. It returns the others, sorted.
func (p *pass) dropExpired(ctx context.Context, due map[int64][]mark) ([]int64, error) {
	var gone []mark
	for minute, marks := range due {
		if minute-startsApart < p.oldest {
			gone = append(gone, marks...)
			delete(due, minute)
			p.result.Expired++
		}
	}
	err := p.write(ctx, "drop marks of what has expired", func(ctx context.Context) error { return p.unmark(ctx, gone) })
	return slices.Sorted(maps.Keys(due)), err
}

// chunk computes some minutes, their hours and days, and only then removes their
// marks, those that were read before.
func (p *pass) chunk(ctx context.Context, minutes []int64, due map[int64][]mark) error {
	shared, err := p.sharedMinutes(ctx, minutes)
	if err != nil {
		return fmt.Errorf("find operations that were moved: %w", err)
	}
	affected := slices.Concat(minutes, shared)
	slices.Sort(affected)
	affected = slices.DeleteFunc(affected, func(m int64) bool { return m < p.oldest })
	windows, err := p.windows(ctx, affected)
	if err != nil {
		return fmt.Errorf("count what is marked: %w", err)
	}
	for _, w := range windows {
		if err := p.computeMinutes(ctx, w.window, w.minutes); err != nil {
			return err
		}
	}
	if err := p.sumLevels(ctx, affected); err != nil {
		return err
	}
	p.note(func(r *FinaliseResult) { r.Minutes += len(affected) })
	var done []mark
	for _, m := range minutes {
		done = append(done, due[m]...)
	}
	return p.write(ctx, "remove marks", func(ctx context.Context) error { return p.unmark(ctx, done) })
}

// computeMinutes folds a window and writes the minutes wanted of it.
func (p *pass) computeMinutes(ctx context.Context, w window, minutes []int64) error {
	span := rollup.Span{From: minutes[0], To: minutes[len(minutes)-1] + minuteMS}
	version, err := p.rollupVersion(ctx, rollup.Minute, span)
	if err != nil {
		return err
	}
	sink := newRollupSink(p.asOf, minutes)
	if err := p.foldSlice(ctx, rollupJob(p.database, sink), w); err != nil {
		return err
	}
	for _, piece := range pieces(sink.rows(), p.rollupRows) {
		if err := p.write(ctx, "write minutes", func(ctx context.Context) error { return p.writeMinutes(ctx, piece, version) }); err != nil {
			return err
		}
		p.note(func(r *FinaliseResult) { r.Rows += len(piece) })
	}
	return nil
}

// rollupJob folds by all home dimensions, what was not one successful first
// attempt also by what was executed.
func rollupJob(database string, sink *rollupSink) foldJob {
	home, all := sink.q, sink.q
	home.GroupBy, all.GroupBy = metrics.HomeDimensions, metrics.Dimensions
	j := foldJob{q: sink.q, names: []string{"fast", "slow"}, fast: newFoldShape(database, home), rest: newFoldShape(database, all), sink: sink}
	j.rest.Losses = true
	return j
}

// sumLevels sums the hours and days of some minutes anew.
func (p *pass) sumLevels(ctx context.Context, minutes []int64) error {
	for _, l := range []struct {
		to, from rollup.Level
		n        *int
	}{{rollup.Hour, rollup.Minute, &p.result.Hours}, {rollup.Day, rollup.Hour, &p.result.Days}} {
		pieces, err := p.sumPieces(ctx, l.to, l.from, rollup.Buckets(l.to, minutes))
		if err != nil {
			return fmt.Errorf("count %ss: %w", l.from, err)
		}
		for _, buckets := range pieces {
			err := p.write(ctx, "write "+string(l.to)+"s", func(ctx context.Context) error { return p.sumUp(ctx, l.to, l.from, buckets) })
			if err != nil {
				return err
			}
			p.note(func(*FinaliseResult) { *l.n += len(buckets) })
		}
	}
	return nil
}
