package drain

import (
	"context"
	"errors"
	"fmt"

	"github.com/retrylens/retrylens"
)

// suspicious is how many records in a row may be refused with none stored: that
// is no bad record, but a store that takes none.
const suspicious = 64

var errAllRefused = errors.New("the store refuses every record; none is given up")

// bisection stores a batch and finds the records that the store refuses.
type bisection struct {
	d      *Drainer
	ctx    context.Context //nolint:containedctx // of one call
	stored int
	dead   []deadLetter
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
	if b.stored == 0 && len(b.dead) >= suspicious {
		return &segmentError{Fatal, fmt.Errorf("%w: %w", errAllRefused, err)}
	}
	return nil
}

// bury writes the dead letters. Only then may the segment be deleted.
func (b *bisection) bury() error {
	if len(b.dead) == 0 {
		return nil
	}
	if err := b.d.o.DeadLetters.add(b.dead); err != nil {
		return &segmentError{Fatal, err}
	}
	b.d.o.Observer.Died(len(b.dead))
	b.d.o.Logger.Error("records were refused by the store and are dead letters", "records", len(b.dead), "file", b.d.o.DeadLetters.path, "err", b.dead[0].reason)
	return nil
}
