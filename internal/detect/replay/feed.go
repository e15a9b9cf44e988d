package replay

import (
	"fmt"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/detect"
)

// DefaultHold is how far records may be out of order.
const DefaultHold = 30 * time.Minute

// Options say how history is replayed.
type Options struct {
	// Hold is for how long, in the time of the records, one that is out of order is
	// waited for; 0 = DefaultHold. As much history is kept in memory.
	Hold time.Duration
	// OnMoment is called at every evaluation, after all records known by then: required.
	OnMoment func(*Window) error
}

// Feed takes records and turns them into moments. It is not safe for concurrent use.
type Feed struct {
	o       Options
	window  *Window                       // nil = no record yet
	pending map[int64][]retrylens.Attempt // by the slot at whose beginning they are known
	free    [][]retrylens.Attempt
	newest  int64 // slot in which the newest record starts
	late    int64
}

// NewFeed checks the options.
func NewFeed(o Options) (*Feed, error) {
	switch {
	case o.OnMoment == nil:
		return nil, fmt.Errorf("replay: Options.OnMoment is missing")
	case o.Hold < 0:
		return nil, fmt.Errorf("replay: Options.Hold must not be negative, got %v", o.Hold)
	case o.Hold == 0:
		o.Hold = DefaultHold
	}
	return &Feed{o: o, pending: map[int64][]retrylens.Attempt{}}, nil
}

// Add takes a record, normalized and valid, which it copies. Those that start within
// Options.Hold of each other may come in any order. An error is that of OnMoment.
func (f *Feed) Add(a *retrylens.Attempt) error {
	started, known := slotOf(a.StartedAt.UnixMilli()), -slotOf(-a.EndUnixMS())
	if f.window == nil {
		f.newest = started
		f.window = NewWindow(time.UnixMilli((started-1)*intervalMS - f.o.Hold.Milliseconds()))
	}
	switch {
	case a.EndUnixMS()-a.OperationStartedAt.UnixMilli() > keepMS: // no window holds its operation any more when it is known
	case known <= f.window.at:
		f.late++
		f.window.Add(a)
	default:
		f.wait(known, a)
	}
	f.newest = max(f.newest, started)
	return f.advanceTo(f.newest - int64(f.o.Hold/detect.Interval))
}

func (f *Feed) wait(known int64, a *retrylens.Attempt) {
	batch, ok := f.pending[known]
	if n := len(f.free); !ok && n > 0 {
		batch, f.free = f.free[n-1], f.free[:n-1]
	}
	f.pending[known] = append(batch, *a)
}

// Late is how many records came too late to be known in their time.
func (f *Feed) Late() int64 { return f.late }

// Close hands out the moments until the last record is out of the window.
func (f *Feed) Close() error {
	if f.window == nil {
		return nil
	}
	last := f.newest
	for known := range f.pending {
		last = max(last, known)
	}
	return f.advanceTo(last + spanSlots)
}

// advanceTo hands out every moment before a slot. Where nothing is known and nothing
// happens for longer, it skips.
func (f *Feed) advanceTo(slot int64) error {
	for f.window.at < slot {
		if f.window.empty() {
			f.window.at = max(f.window.at, min(f.nextPending(slot), slot)-1)
		}
		f.window.Advance()
		batch, ok := f.pending[f.window.at]
		for i := range batch {
			f.window.Add(&batch[i])
		}
		if ok {
			delete(f.pending, f.window.at)
			clear(batch)
			f.free = append(f.free, batch[:0])
		}
		if err := f.o.OnMoment(f.window); err != nil {
			return err
		}
	}
	return nil
}

// nextPending is the first moment at which something becomes known.
func (f *Feed) nextPending(none int64) int64 {
	next := none
	for known := range f.pending {
		next = min(next, known)
	}
	return next
}
