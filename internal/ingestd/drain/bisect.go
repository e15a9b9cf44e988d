package drain

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/spool"
)

// suspicious is how many records may be refused one after another before the sink
// is asked whether it takes any at all.
const suspicious = 64

// secondLook is how long a segment waits whose every record was refused by a sink
// that never took any.
const secondLook = 10 * time.Second

// lettersWait is how long a segment waits whose dead letters cannot be written:
// they must be found again.
const lettersWait = 30 * time.Second

// bisection stores the records of one segment and finds those that the sink
// refuses. That a refusal is about a record, and not about all of them, is shown by
// a record that the sink took before and is asked to take again: at the first
// refusal, after every suspicious in a row, and at the end.
type bisection struct {
	d       *Drainer
	ctx     context.Context //nolint:containedctx // of one call
	segment spool.Segment
	turn    bool // see takeTurn
	stored  int
	refused int // one by one, since the last that was stored
	named   int // of dead, those that the sink named
	dead    []deadLetter
}

type deadLetter struct {
	attempt retrylens.Attempt
	reason  string // the sink's whole text
	said    string // what of it may be logged
}

// store stores rows, whose places it may use; those that cannot be end in dead. An error
// means that the whole segment must come again. Where many in a row are refused they
// are sent one by one: a segment of n bad records takes about n inserts, not 2n.
func (b *bisection) store(rows []retrylens.Attempt) error {
	for b.refused >= suspicious && len(rows) > 1 {
		if err := b.store(rows[:1]); err != nil {
			return err
		}
		rows = rows[1:]
	}
	err := b.d.insert(b.ctx, rows)
	if err == nil {
		b.stored += len(rows)
		b.refused = 0
		return nil
	}
	if b.ctx.Err() != nil {
		return err
	}
	kind := b.d.o.Classify(err)
	switch {
	case kind != Data && kind != Split:
		return err
	case len(rows) == 1 && kind == Split:
		return err
	case kind == Data:
		if err := b.begin(); err != nil {
			return err
		}
	}
	if len(rows) > 1 {
		return b.narrow(rows, err)
	}
	b.dead = append(b.dead, deadLetter{rows[0], err.Error(), b.d.o.Describe(err)})
	if b.refused++; b.refused%suspicious == 0 {
		return b.probe()
	}
	return nil
}

// narrow stores rows that were refused together. The record that the sink named is
// sent alone, to be refused for itself, and the others without it. They are halved where
// it named none, or one that it takes, and now and then where many are bad, as it names
// but one at a time.
func (b *bisection) narrow(rows []retrylens.Attempt, refusal error) error {
	if named, ok := namedRow(refusal); ok && named >= 0 && named < len(rows) {
		dead := len(b.dead)
		if err := b.store(rows[named : named+1]); err != nil {
			return err
		}
		rows = slices.Delete(rows, named, named+1)
		bad := len(b.dead) > dead
		if bad {
			b.named++
		}
		if bad && b.named%suspicious != 0 || len(rows) == 1 {
			return b.store(rows)
		}
	}
	if err := b.store(rows[:len(rows)/2]); err != nil {
		return err
	}
	return b.store(rows[len(rows)/2:])
}

// namedRow is the record that a sink blames, see ingest.Sink.
func namedRow(err error) (int, bool) {
	var e interface{ RefusedRow() int }
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.RefusedRow(), true
}

// begin is called at a refusal: at the first one of a segment it takes a turn and
// looks whether the sink takes anything.
func (b *bisection) begin() error {
	if b.turn {
		return nil
	}
	if b.turn = b.d.takeTurn(); !b.turn {
		return &fault{kind: Data, alone: true, text: "it holds bad records and is searched for them when others were"}
	}
	return b.probe()
}

// end gives the turn back.
func (b *bisection) end() {
	if b.turn {
		b.d.mu.Lock()
		b.d.bisects--
		b.d.mu.Unlock()
	}
}

// takeTurn keeps one worker, where there are several, from searching for bad
// records: others are stored meanwhile.
func (d *Drainer) takeTurn() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bisects >= max(1, d.o.Workers-1) {
		return false
	}
	d.bisects++
	return true
}

// probe sends the last record again that the sink took: it replaces itself. When
// that is refused the sink refuses everything, and no record is to blame. Before
// the sink took any there is nothing to compare with: see neverTook.
func (b *bisection) probe() error {
	b.d.mu.Lock()
	known := b.d.known
	b.d.mu.Unlock()
	if known == nil {
		return b.neverTook()
	}
	err := b.d.insert(b.ctx, []retrylens.Attempt{*known})
	if err == nil || b.ctx.Err() != nil {
		return err
	}
	if kind := b.d.o.Classify(err); kind != Data && kind != Split {
		return err
	}
	return &fault{
		kind: Fatal, refuses: true, err: err,
		text: "the store refuses even a record that it took before: nothing is given up, look at its schema and constraints; " + b.d.o.Describe(err),
	}
}

// neverTook judges a segment of which records were refused and none was taken, by
// a sink that took none since the start. With other segments waiting the sink is to
// blame until it takes one. A segment that is alone waits once and is given up
// then: nothing else would ever tell.
func (b *bisection) neverTook() error {
	if b.refused == 0 {
		return nil
	}
	id, others := b.segment.ID, len(b.d.o.Spool.Sealed()) > 1
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	const text = "the store refused every record that it was sent since the start: "
	switch {
	case others:
		return &fault{kind: Fatal, refuses: true, text: text + "nothing is given up before it takes one, look at its schema and constraints"}
	case !b.d.suspects[id]:
		b.d.suspects[id] = true
		return &fault{kind: Fatal, alone: true, wait: secondLook, text: text + "it is tried once more before they are dead letters"}
	}
	return nil
}

// bury writes the dead letters of the segment, which may be deleted then.
func (b *bisection) bury() error {
	if len(b.dead) == 0 {
		return nil
	}
	if b.refused > 0 {
		if err := b.probe(); err != nil {
			return err
		}
	}
	added, err := b.d.o.DeadLetters.add(b.segment.ID, b.dead, b.d.buryAgain(b.segment.ID))
	uncounted := b.d.uncounted(b.segment.ID, added, err == nil)
	if err != nil {
		f := local(err)
		f.wait = lettersWait
		return f
	}
	if uncounted > 0 {
		b.d.o.Observer.Died(uncounted)
		b.d.o.Logger.Error("records were refused by the store and are dead letters", "records", uncounted,
			"file", b.d.o.DeadLetters.Path(), "reasons", b.d.o.DeadLetters.ReasonsPath(), "err", b.dead[0].said)
	}
	return nil
}

// uncounted is how many dead letters of a segment were not told to the observer
// yet: what this or a failed try before it added.
func (d *Drainer) uncounted(id uint64, added int, counts bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := max(d.added[id], added)
	d.added[id] = n
	if counts {
		d.added[id] = 0
	}
	return n
}

// buryAgain tells whether an earlier try may have written dead letters of the
// segment.
func (d *Drainer) buryAgain(id uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.buried[id]
	d.buried[id] = true
	return again
}
