package effects

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Tool is an action with a side effect, as its author declares it. A Tool is a plain
// value; its functions must be safe for concurrent use.
type Tool struct {
	// Name is kept with every call, 1..128 bytes. It must not change while calls are pending.
	Name string
	// Retry says whether a call that may have happened may be repeated: Repeatable, Keyed,
	// AfterLookup or Never. Required.
	Retry Permission
	// Call does it. nil error = it happened, and the value is kept as its result. An error
	// marked with NotHappened = it surely had no effect. Any other error = it may have
	// happened. Call must end when ctx does. Required.
	Call func(ctx context.Context, c Call) ([]byte, error)
	// Lookup asks the receiver what became of a call. Required with AfterLookup, and only there.
	Lookup func(ctx context.Context, c Call) (Finding, error)
	// Compensate undoes a call that may have happened, so that it can be made again. It may
	// run several times for one call, and for one that never happened. Only with Never.
	Compensate func(ctx context.Context, c Call) error

	// Timeout of a Call, a Lookup or a Compensate; 0 = none.
	Timeout time.Duration
	// Late is for how long after it ended for us a call may still take effect at its
	// receiver: in a queue on the way, in a server that has not seen that its client is gone. A
	// Lookup's DidNotHappen counts, and Compensate is called, only after that. Default
	// 1 min; negative = none.
	Late time.Duration
	// KeyTTL is how long the receiver of a Keyed tool remembers a key, from the first
	// call on; a call that may have happened longer ago is not repeated. Default 24 h.
	KeyTTL time.Duration
}

const defaultLate = time.Minute

// Call is one call of a tool.
type Call struct {
	// Key to send. After a call was compensated it is another one, since that receiver may
	// remember the first.
	Key     string
	Args    []byte // as given when the key was first used
	Attempt int    // calls begun under this intent, from 1
	Run     string // "" = not a step of a run
	Step    int    // index in the run; -1 = not a step of a run
}

// Outcome is what became of a call. The zero Outcome is none.
type Outcome uint8

// Outcomes.
const (
	Happened     Outcome = iota + 1 // it took effect
	DidNotHappen                    // it did not, and will not any more
	Unknown                         // the receiver cannot tell, or not yet
)

// Finding is the answer of a Lookup, or of a person.
type Finding struct {
	Outcome Outcome
	Result  []byte // with Happened: kept as the result of the call
}

func (t *Tool) check() error {
	if err := checkName("Tool.Name", t.Name); err != nil {
		return err
	}
	if err := t.Retry.check(fmt.Sprintf("tool %q", t.Name), Repeatable, Keyed, AfterLookup, Never); err != nil {
		return err
	}
	var problem string
	switch {
	case t.Call == nil:
		problem = "Call is missing"
	case (t.Lookup != nil) != (t.Retry == AfterLookup):
		problem = "Lookup goes with the permission AfterLookup, and only with it"
	case t.Compensate != nil && t.Retry != Never:
		problem = "Compensate goes only with the permission Never: any other call can be repeated"
	case t.Timeout < 0 || t.KeyTTL < 0:
		problem = "Timeout and KeyTTL must not be negative"
	default:
		return nil
	}
	return fmt.Errorf("effects: tool %q: %s", t.Name, problem)
}

func (t *Tool) late() time.Duration {
	if t.Late == 0 {
		return defaultLate
	}
	return max(t.Late, 0)
}

// lookup asks, and takes an answer that is none for a failure.
func (t *Tool) lookup(ctx context.Context, c Call) (Finding, error) {
	f, err := t.Lookup(ctx, c)
	if err == nil && (f.Outcome < Happened || f.Outcome > Unknown) {
		err = errors.New("the Lookup returned no Outcome; it returns Happened, DidNotHappen or Unknown")
	}
	if err != nil {
		return Finding{Outcome: Unknown}, err
	}
	return f, nil
}
