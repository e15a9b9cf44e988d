package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/clock"
)

// Errors that an [*Error] matches.
var (
	// ErrExhausted: given up while another try was still worth it: attempts, deadline,
	// retry budget or breaker. The same operation may be tried again later.
	ErrExhausted = errors.New("retry: given up")
	// ErrPermanent: another try is of no use, or not allowed without a key.
	ErrPermanent = errors.New("retry: not retried")
	// ErrCallerGone: the caller's context was cancelled.
	ErrCallerGone = errors.New("retry: caller gone")
)

// ErrAttemptTimeout and ErrGapTimeout are causes for contexts that end because of
// Attempt.Timeout and Attempt.GapTimeout; the classifier sees timeouts in them.
var (
	ErrAttemptTimeout error = timeoutError("retry: attempt timeout")
	ErrGapTimeout     error = timeoutError("retry: gap timeout between stream events")
)

type timeoutError string

func (e timeoutError) Error() string   { return string(e) }
func (e timeoutError) Timeout() bool   { return true }
func (e timeoutError) Temporary() bool { return true }
func (e timeoutError) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// Error is an operation that was not delivered.
type Error struct {
	StopReason retrylens.StopReason
	Attempts   int              // refused ones and hedges included
	Reason     string           // of the last decision
	Last       classify.Verdict // of the last failure that had one
	Err        error            // of the last failure, or the cause of the context; may be nil
}

// Error is one line without text of a body.
func (e *Error) Error() string {
	return fmt.Sprintf("retry: %s after %d attempt(s): %s", e.StopReason, e.Attempts, e.Reason)
}

// Unwrap gives the last failure.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the sentinel of the stop reason.
func (e *Error) Is(target error) bool {
	switch e.StopReason {
	case retrylens.StopMaxAttempts, retrylens.StopDeadline, retrylens.StopBudgetExhausted, retrylens.StopBreakerOpen:
		return target == ErrExhausted
	case retrylens.StopCallerGone:
		return target == ErrCallerGone
	}
	return target == ErrPermanent
}

// Try makes one attempt and tells how it ended. It enforces Attempt.Timeout and
// Attempt.GapTimeout itself (see clock.Watch), as only it knows when headers and
// content arrive. For an operation with hedges it runs in a goroutine of its own,
// two at a time, and its ctx is cancelled when the other copy wins.
type Try func(ctx context.Context, at Attempt) Result

// Do runs op to its end: try by try, sleeping on the engine's clock, waiting for
// slots, hedging where that is on. It returns the result that was delivered or handed
// over with a nil error, otherwise the last failure and an [*Error]. A panic of try
// passes through, its slot given back. Do is safe for concurrent use; it needs
// a full [clock.Clock] in Options and returns an error before the first try without.
func (e *Engine) Do(ctx context.Context, op Op, try Try) (Result, error) {
	if e.clock == nil {
		return Result{}, errors.New("retry: Options.Clock only tells the time; Do needs a clock.Clock")
	}
	if d, ok := ctx.Deadline(); ok && (op.Deadline.IsZero() || d.Before(op.Deadline)) {
		op.Deadline = d
	}
	d := driver{e: e, ctx: ctx, try: try, run: e.Begin(op)}
	if op.StartedAt.IsZero() {
		d.begun = d.run.op.StartedAt
	}
	return d.loop()
}

// Close waits until the losers of hedges have ended, or for the cause of ctx. It is
// called after the last Do has returned.
func (e *Engine) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		e.copies.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// driver is one call of Do.
type driver struct {
	e    *Engine
	ctx  context.Context
	run  *Run
	try  Try
	last Result // the last result of a try
	any  bool   // there is one

	begun time.Time // the moment at which the first attempt is to start; zero once it has, or where that is not now
}

// keep makes res the result that Do would return now.
func (d *driver) keep(res Result) {
	if d.any {
		d.discard(d.last)
	}
	d.last, d.any = res, true
}

// discard is for results that Do does not return.
func (d *driver) discard(res Result) {
	if f := d.run.Op().Discard; f != nil {
		f(res)
	}
}

func (d *driver) loop() (Result, error) {
	for {
		at, dec := d.start()
		if dec.Send {
			dec = d.attempt(at)
		}
		if dec.HandedOver || dec.StopReason == retrylens.StopDelivered {
			return d.last, nil
		}
		if dec.Retry {
			err := clock.Sleep(d.ctx, d.e.clock, dec.Delay)
			if err == nil {
				continue
			}
			dec = d.run.Leave(d.gone())
		}
		return d.last, d.error(dec)
	}
}

// gone is why a context that is done ends the operation.
func (d *driver) gone() retrylens.StopReason {
	if errors.Is(d.ctx.Err(), context.DeadlineExceeded) {
		return retrylens.StopDeadline
	}
	return retrylens.StopCallerGone
}

// start waits for the slot of the next attempt, no longer than to the deadline.
func (d *driver) start() (Attempt, Decision) {
	if d.ctx.Err() != nil {
		return Attempt{}, d.run.Leave(d.gone())
	}
	now := d.begun
	d.begun = time.Time{}
	if now.IsZero() {
		now = d.e.now()
	}
	if at, dec, ok := d.run.startNow(now); ok {
		return at, dec
	}
	ready := make(chan struct{})
	at, dec := d.run.Start(func() { close(ready) })
	if !dec.Queued {
		return at, dec
	}
	timer := d.e.clock.NewTimer(d.run.Deadline().Sub(d.e.clock.Now()))
	defer timer.Stop()
	select {
	case <-ready:
		return d.run.Start(nil)
	case <-timer.C():
		return at, d.run.Leave(retrylens.StopDeadline)
	case <-d.ctx.Done():
		return at, d.run.Leave(d.gone())
	}
}

// attempt makes the try, with a second copy where that is worth it.
func (d *driver) attempt(at Attempt) Decision {
	if after, ok := d.run.HedgeAfter(); ok {
		h := *d // so that d itself need not outlive Do
		dec := h.hedged(at, after)
		d.last, d.any = h.last, h.any
		return dec
	}
	d.keep(d.call(d.ctx, at))
	return d.run.Finish(at.Number, d.last)
}

// call makes one try. After a panic the attempt counts as one of unknown outcome.
func (d *driver) call(ctx context.Context, at Attempt) (res Result) {
	ended := false
	defer func() {
		if !ended {
			d.run.Finish(at.Number, Result{CallerGone: true, Verdict: classify.Verdict{
				Class: retrylens.ClassCancelled, Reason: "panic in the caller's try"}})
		}
	}()
	res = d.try(ctx, at)
	if op := d.run.Op(); op.Refresh != nil && d.run.WantsRefresh(at.Number, res) {
		changed, err := op.Refresh(ctx)
		res.CredentialChanged = changed && err == nil
	}
	ended = true
	return res
}

// error of an operation that ended with dec.
func (d *driver) error(dec Decision) error {
	e := &Error{StopReason: dec.StopReason, Attempts: d.run.Attempts(), Reason: dec.Reason, Last: d.last.Verdict, Err: d.last.Err}
	if d.ctx.Err() != nil {
		e.Err = errors.Join(e.Err, context.Cause(d.ctx))
	}
	return e
}

// answer is one copy's result.
type answer struct {
	at       Attempt
	res      Result
	panicked any
}

// hedged runs the attempt and, after a while, a copy of it. The first that answers
// wins; the other is cancelled and its end awaited in the background.
func (d *driver) hedged(at Attempt, after time.Duration) Decision {
	c := copies{d: d, answers: make(chan answer, 2), cancels: map[int32]context.CancelFunc{}}
	c.spawn(at)
	timer := d.e.clock.NewTimer(after)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			if second, dec := d.run.Hedge(); dec.Send {
				c.spawn(second)
			}
		case a := <-c.answers:
			if dec, over := c.take(a); over {
				return dec
			}
			timer.Stop() // one copy failed: the other decides, no third is made
		}
	}
}

// copies are the tries of one attempt and its hedge.
type copies struct {
	d       *driver
	answers chan answer
	cancels map[int32]context.CancelFunc
	running int
}

// spawn makes the try in a goroutine of its own.
func (c *copies) spawn(at Attempt) {
	ctx, cancel := context.WithCancel(c.d.ctx)
	c.cancels[at.Number] = cancel
	c.running++
	c.d.e.copies.Go(func() {
		a := answer{at: at}
		defer func() {
			a.panicked = recover()
			c.answers <- a
		}()
		a.res = c.d.call(ctx, at)
	})
}

// take decides on an answer; over if the other copy is not to be waited for.
func (c *copies) take(a answer) (dec Decision, over bool) {
	c.running--
	if a.panicked != nil {
		c.end()
		panic(a.panicked)
	}
	if a.res.HandedOver { // its reader needs the context until it reports the end
		c.d.run.atEnd(a.at.Number, c.cancels[a.at.Number])
		delete(c.cancels, a.at.Number)
	}
	dec = c.d.run.Finish(a.at.Number, a.res)
	c.d.keep(a.res)
	if dec.HandedOver || dec.StopReason == retrylens.StopDelivered || c.running == 0 {
		c.end()
		return dec, true
	}
	return dec, false
}

// end cancels what still runs and sees to its end.
func (c *copies) end() {
	for _, cancel := range c.cancels {
		cancel()
	}
	if c.running == 0 {
		return
	}
	c.d.e.copies.Go(func() {
		for ; c.running > 0; c.running-- {
			a := <-c.answers
			if a.panicked == nil { // first, so that what was handed over has ended when it is decided on
				c.d.discard(a.res)
			}
			c.d.run.Finish(a.at.Number, a.res)
		}
	})
}
