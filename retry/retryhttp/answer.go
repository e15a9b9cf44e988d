package retryhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

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
	x.awaits()
	n, err := x.from.Read(p)
	return n, x.got(p[:n], err)
}

// awaits: the caller wants more of a stream. While it is elsewhere no gap grows.
func (x *exchange) awaits() {
	if !x.handed || !x.stream() {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.watch.resume()
	}
}

// got p, the next bytes of an answer, for its caller; err = why there will be no more. It
// returns what the caller is told of that.
func (x *exchange) got(p []byte, err error) error {
	x.mu.Lock()
	if x.handed && !x.ended && len(p) > 0 {
		if content := x.passed(p); x.stream() {
			x.watch.pause(content)
		}
	}
	if err == nil {
		x.mu.Unlock()
		return nil
	}
	if err != io.EOF { //nolint:errorlint // what io.Reader promises; the watch need not be asked
		if fired := x.watchFired(); fired != nil {
			err = errors.Join(fired, err)
		}
	}
	x.broke = err
	x.ends(err)
	return err
}

var errClosed = errors.New("retryhttp: the caller closed the answer")

// Close ends the attempt; before the answer is complete the caller has left.
func (x *exchange) Close() error {
	x.finish(errClosed)
	return nil
}

// answers are those that were handed over and have not ended. They are a list
// through themselves, since every attempt is one of them for a while.
type answers struct {
	mu    sync.Mutex
	first *exchange
}

func (o *answers) add(x *exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x.after = o.first; x.after != nil {
		x.after.before = x
	}
	o.first = x
}

func (o *answers) remove(x *exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x.before != nil {
		x.before.after = x.after
	} else {
		o.first = x.after
	}
	if x.after != nil {
		x.after.before = x.before
	}
	x.before, x.after = nil, nil
}

// any of them, nil if there is none.
func (o *answers) any() *exchange {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first
}

// finish ends the attempt once: err is io.EOF, why reading failed, or errClosed.
func (x *exchange) finish(err error) {
	x.mu.Lock()
	x.ends(err)
}

// ends is finish with the lock held, which it gives back.
func (x *exchange) ends(err error) {
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
	x.c.t.open.remove(x)
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
	if x.status == http.StatusSwitchingProtocols { // delivered; what follows is another protocol's
		x.endOfTry()
		return retry.Result{Delivered: true, EndedAt: x.end, Value: x}
	}
	if (err == nil || x.reader.Complete()) && x.success() {
		x.endOfTry()
		return retry.Result{Delivered: true, EndedAt: x.end, Value: x}
	}
	err = x.leaving(err)
	left := errors.Is(err, errClosed) || errors.Is(err, context.Canceled) && x.watchFired() == nil
	if left && x.reader.Telling() == nil {
		x.endOfTry()
		return retry.Result{CallerGone: true, Err: err, EndedAt: x.end, Value: x,
			Verdict: classify.Verdict{Class: retrylens.ClassCancelled, Reason: "the caller left before the answer was complete"}}
	}
	if left {
		err = nil
	}
	res := x.verdict(err)
	if res.Verdict.Class == retrylens.ClassUnclassified && err == nil { // nothing speaks against it
		return retry.Result{Delivered: true, EndedAt: x.end, Value: x}
	}
	res.Partial = err != nil && x.content && x.stream() // what ended in order is no break
	return res
}
