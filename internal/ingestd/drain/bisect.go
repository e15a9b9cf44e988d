package drain

import (
	"context"
	"errors"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/spool"
)

// suspicious is how many records a segment must have for the suspicion that not
// they are bad but the store.
const suspicious = 64

// errAllRefused is about a segment that gets a second look.
var errAllRefused = errors.New("the store refuses every record of a segment for one and the same reason: it is tried again before they are dead letters")

// bisection stores the records of one segment and finds those that the store
// refuses.
type bisection struct {
	d       *Drainer
	ctx     context.Context //nolint:containedctx // of one call
	segment spool.Segment
	before  int // Drainer.taken at the beginning
	stored  int
	dead    []deadLetter
}

type deadLetter struct {
	attempt retrylens.Attempt
	reason  string
}

// store stores rows; those that cannot be end in dead. An error means that the
// whole segment must come again.
func (b *bisection) store(rows []retrylens.Attempt) error {
	err := b.d.insert(b.ctx, rows)
	if err == nil {
		b.stored += len(rows)
		return nil
	}
	if b.ctx.Err() != nil {
		return err
	}
	kind := b.d.o.Classify(err)
	switch {
	case kind != Data && kind != Split:
		return err
	case len(rows) > 1:
		if err := b.store(rows[:len(rows)/2]); err != nil {
			return err
		}
		return b.store(rows[len(rows)/2:])
	case kind == Split:
		return err
	}
	b.dead = append(b.dead, deadLetter{rows[0], err.Error()})
	return nil
}

// bury writes the dead letters of the segment, which may be deleted then.
func (b *bisection) bury() error {
	if len(b.dead) == 0 {
		return nil
	}
	again, suspect := b.d.buryAgain(b)
	if suspect {
		return &segmentError{Fatal, errAllRefused}
	}
	added, err := b.d.o.DeadLetters.add(b.segment.ID, b.dead, again)
	uncounted := b.d.uncounted(b.segment.ID, added, err == nil)
	if err != nil {
		return &segmentError{Fatal, err}
	}
	if uncounted > 0 {
		b.d.o.Observer.Died(uncounted)
		b.d.o.Logger.Error("records were refused by the store and are dead letters", "records", uncounted, "file", b.d.o.DeadLetters.path, "err", b.dead[0].reason)
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
// segment, and whether it must have a second look first: when many records were
// refused for the same reason and the store took no other since. Data may be
// like that, and a store that is being rebuilt.
func (d *Drainer) buryAgain(b *bisection) (again, suspect bool) {
	uniform := b.stored == 0 && len(b.dead) >= suspicious
	for _, l := range b.dead {
		uniform = uniform && l.reason == b.dead[0].reason
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := b.segment.ID
	if uniform && d.taken == b.before && !d.suspects[id] {
		d.suspects[id] = true
		return false, true
	}
	again = d.buried[id]
	d.buried[id] = true
	return again, false
}
