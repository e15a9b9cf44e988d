package retryhttp

import (
	"context"
	"errors"
	"io"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
)

// Read passes the answer on as it comes. The attempt ends with the answer.
func (x *exchange) Read(p []byte) (int, error) {
	if len(x.prefix) > 0 {
		n := copy(p, x.prefix)
		x.prefix = x.prefix[n:]
		if len(x.prefix) == 0 && x.broke != nil {
			x.finish(x.broke)
		}
		return n, nil
	}
	if x.broke != nil {
		x.finish(x.broke)
		return 0, x.broke
	}
	n, err := x.from.Read(p)
	if n > 0 && x.handed {
		x.mu.Lock()
		if !x.ended {
			x.passed(p[:n])
		}
		x.mu.Unlock()
	}
	if err != nil {
		if fired := x.fired(); fired != nil && !errors.Is(err, io.EOF) {
			err = errors.Join(fired, err)
		}
		x.broke = err // for those who read on
		x.finish(err)
	}
	return n, err
}

func (x *exchange) fired() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watchFired()
}

var errClosed = errors.New("retryhttp: the caller closed the answer")

// Close ends the attempt; before the answer is complete the caller has left.
func (x *exchange) Close() error {
	x.finish(errClosed)
	return nil
}

// finish ends the attempt once: err is io.EOF, why reading failed, or errClosed.
func (x *exchange) finish(err error) {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return
	}
	x.ended = true
	if !x.handed { // an error status: its record is made
		x.mu.Unlock()
		x.close()
		return
	}
	res := x.outcome(err)
	x.close()
	x.mu.Unlock()
	x.at.Finish(res)
}

// outcome of an answer that was handed over.
func (x *exchange) outcome(err error) retry.Result {
	if errors.Is(err, io.EOF) {
		x.reader.End()
		err = nil
	}
	if (err == nil || x.reader.Complete()) && x.success() {
		x.endOfTry()
		return retry.Result{Delivered: true, Value: x}
	}
	left := errors.Is(err, errClosed) || errors.Is(err, context.Canceled) && x.watchFired() == nil
	if left && x.reader.Telling() == nil {
		x.endOfTry()
		return retry.Result{CallerGone: true, Err: err, Value: x,
			Verdict: classify.Verdict{Class: retrylens.ClassCancelled, Reason: "the caller left before the answer was complete"}}
	}
	if left {
		err = nil
	}
	res := x.verdict(err)
	if res.Verdict.Class == retrylens.ClassUnclassified && err == nil { // nothing speaks against it
		return retry.Result{Delivered: true, Value: x}
	}
	res.Partial = err != nil && x.content && x.stream() // what ended in order is no break
	return res
}
