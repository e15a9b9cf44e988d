package effects

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// next is what is to be done with a call that is not known to have happened.
type next uint8

const (
	wait     next = iota // nothing is known yet
	repeat               // it may be called
	known                // it happened
	hopeless             // nobody here can find out
)

// verdict on such a call.
type verdict struct {
	next        next
	result      []byte        // known: what it returned
	fresh       bool          // repeat: it did not happen, so what may have happened begins anew
	compensated bool          // repeat: because it was undone
	after       time.Duration // wait: for how long at least
	cause       error         // of wait and hopeless
}

func (v verdict) rounds() int { return bit(v.compensated) }

func (v verdict) text() string {
	if v.cause == nil {
		return ""
	}
	return text(v.cause)
}

// decide finds out what may be done with a call that we have leased, by the permission of
// its tool. It writes nothing but renewals of the lease.
func (s *Store) decide(ctx context.Context, t *Tool, c *call) verdict {
	if c.state == stateNotHappened {
		return verdict{next: repeat, fresh: true}
	}
	switch t.Retry {
	case Repeatable:
		return verdict{next: repeat}
	case Keyed:
		if age := fromMS(c.now - c.called); age > ttl(t.KeyTTL) {
			return verdict{next: hopeless, cause: fmt.Errorf("first called %v ago: its receiver may have forgotten the key", age)}
		}
		return verdict{next: repeat}
	case AfterLookup:
		return s.lookUp(ctx, t, c)
	}
	if t.Compensate != nil {
		return s.compensate(ctx, t, c)
	}
	return verdict{next: hopeless, cause: errors.New("it may have happened, is never to be repeated, and there is nobody to ask")}
}

func (s *Store) lookUp(ctx context.Context, t *Tool, c *call) verdict {
	var f Finding
	err := s.ask(ctx, t, c, func(ctx context.Context, call Call) (err error) {
		f, err = t.lookup(ctx, call)
		return err
	})
	gap("decide.looked")
	switch {
	case err != nil:
		return verdict{cause: fmt.Errorf("lookup: %w", err)}
	case f.Outcome == Happened:
		return verdict{next: known, result: f.Result}
	case f.Outcome == Unknown:
		return verdict{cause: errors.New("lookup: the receiver cannot tell")}
	}
	if after := untilSettled(t, c); after > 0 {
		return verdict{after: after, cause: errors.New("lookup: it did not happen so far, and still may (Late)")}
	}
	return verdict{next: repeat, fresh: true}
}

// untilSettled is how long a call may still take effect.
func untilSettled(t *Tool, c *call) time.Duration {
	return max(0, fromMS(c.ended+ms(t.late())-c.now))
}

func (s *Store) compensate(ctx context.Context, t *Tool, c *call) verdict {
	if after := untilSettled(t, c); after > 0 {
		return verdict{after: after, cause: errors.New("it may still happen, so it is compensated later (Late)")}
	}
	if err := s.ask(ctx, t, c, t.Compensate); err != nil {
		return verdict{cause: fmt.Errorf("compensate: %w", err)}
	}
	gap("decide.compensated")
	return verdict{next: repeat, fresh: true, compensated: true}
}

// ask runs a function of the tool under the lease, which is not that of a call.
func (s *Store) ask(ctx context.Context, t *Tool, c *call, do func(context.Context, Call) error) error {
	held, release, err := s.hold(ctx, c.taken, func(ctx context.Context) (bool, error) {
		n, err := s.exec(ctx, s.o.DB, `UPDATE retrylens_calls SET due_ms = {now} + $1 WHERE key = $2 AND lease = $3`, ms(s.o.Lease), c.key, c.lease)
		return n == 1, err
	})
	if err != nil {
		return err
	}
	defer release()
	held, cancel := limited(held, t.Timeout)
	defer cancel()
	return do(held, c.public())
}
