package retryhttp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
	"github.com/retrylens/retrylens/retry/usage"
)

// exchange is one attempt: a request, its answer, its record.
type exchange struct {
	c      *call
	at     retry.Attempt // with the record's cause, and the start of a question to a gateway
	number int32         // of the record; the engine's own may differ where a key was in flight

	ctx    attemptContext
	sent   reader // of the request body
	tracer *tracer
	watch  *watch
	resp   *http.Response // as returned; its Body is the exchange
	reader *usage.Reader  // nil once the answer has ended, or where nothing is read
	from   io.ReadCloser  // the body as the base transport gives it

	prefix   []byte // read before the answer was handed over, or the body of an error status
	length   int64  // bytes read
	broke    error  // why reading ended before the answer was handed over
	status   int
	format   usage.Format
	began    bool // given to the base transport
	handed   bool // to the caller
	inFlight bool // the gateway: the key is being executed
	mismatch bool // the gateway: the key was used with another body

	before, after *exchange // in the transport's list of open answers
	earlier       *exchange // of the same call

	mu    sync.Mutex // of the end, which Read and Close may race for
	ended bool

	// What the record needs once reader and tracer are gone.
	tokens   usage.Tokens
	cost     retrylens.Opt[retrylens.Money]
	model    string
	estimate int64
	content  bool // content reached the reader of the body
	final    bool // the provider's figures are
	trace    classify.Trace
	ttfb     retrylens.Opt[int64]
	end      time.Time
	asked    string      // provider_error_type
	seq      int64       // of the record once there is one, plus 1
	revision uint8       // of the next record
	follows  *exchange   // whose attempt this one goes on with, see redirect.go
	followed atomic.Bool // one goes on with this one
}

var readers = sync.Pool{New: func() any { return new(usage.Reader) }}

// send makes the try.
func (x *exchange) send(ctx context.Context) retry.Result {
	c := x.c
	out, err := c.body.open(&x.sent)
	if err != nil {
		return x.unsent(err)
	}
	x.began = true
	x.tracer = takeTracer(c.t.clock, x.at.StartedAt)
	x.watch = c.t.watches.start(ctx, x.at.StartedAt, x.at.Timeout)
	req := c.req.WithContext(x.context(ctx))
	req.Body, req.GetBody, req.Header = out, nil, c.header(x) // without GetBody the library resends no body
	resp, err := c.t.bases.of(x.at.Provider).RoundTrip(req)   //nolint:bodyclose // the caller's, as its own Body
	if err != nil {
		return x.noAnswer(err)
	}
	x.resp, x.status, x.from = resp, resp.StatusCode, resp.Body
	x.format = usage.FormatOf(first(resp.Header, "Content-Type"), first(resp.Header, "Content-Encoding"))
	resp.Body = x
	if w, ok := x.from.(io.Writer); ok && x.status == http.StatusSwitchingProtocols {
		resp.Body = upgraded{x, w}
	}
	if x.status >= 400 {
		return x.errorStatus()
	}
	return x.answer()
}

// upgraded is the connection after 101, which its caller writes to as well.
type upgraded struct {
	*exchange
	io.Writer
}

// unsent: the body could not be had again.
func (x *exchange) unsent(err error) retry.Result {
	x.end = x.c.t.clock.Now()
	x.trace = classify.Trace{Traced: true}
	return retry.Result{Err: err, Value: x, Verdict: classify.Verdict{Class: retrylens.ClassUnclassified, Reason: "the request body cannot be sent again"}}
}

// noAnswer: the base transport gave an error.
func (x *exchange) noAnswer(err error) retry.Result {
	if fired := x.watch.fired(); fired != nil {
		err = errors.Join(fired, err)
	} else {
		err = x.leaving(err)
	}
	x.close()
	return x.result(err, classify.Failure{})
}

// leaving makes it plain that err is the caller's leaving: of a context that is done the
// library may return the cause alone, and that can be any error.
func (x *exchange) leaving(err error) error {
	caller := x.ctx.values
	if gone := caller.Err(); gone != nil && err != nil && !errors.Is(err, gone) && errors.Is(err, context.Cause(caller)) {
		return errors.Join(gone, err)
	}
	return err
}

// result of a failed attempt. f tells what was seen beyond the error.
func (x *exchange) result(err error, f classify.Failure) retry.Result {
	f.Provider, f.Err, f.Trace, f.Status, f.Now = x.at.Provider, err, x.trace, x.status, x.end
	if x.resp != nil {
		f.Header, f.HeadersReceived = x.resp.Header, true
	}
	v := x.c.t.classify.Classify(&f)
	if x.c.body.sent && !x.c.body.replayable() {
		v.Retryable, v.RetryAfter = false, retrylens.Opt[time.Duration]{}
	}
	if v.PreSend && !x.trace.Traced { // refused before the library had anything to report
		x.began = false
	}
	x.asked = v.ProviderErrorType
	return retry.Result{Verdict: v, Err: err, EndedAt: x.end, Value: x}
}

// errorStatus reads the error's body, as far as it is looked at, and keeps it for the
// caller.
func (x *exchange) errorStatus() retry.Result {
	body, err := io.ReadAll(io.LimitReader(x.from, classify.MaxBody))
	if fired := x.watch.fired(); fired != nil && err != nil {
		err = fired
	}
	x.length = int64(len(body))
	x.prefix = body
	x.endOfTry()
	res := x.result(err, classify.Failure{Body: body})
	if len(body) < classify.MaxBody {
		x.broke = err
		if err == nil {
			x.broke = io.EOF
		}
		x.close()
	}
	if x.c.gateway {
		x.gatewaySays(&res)
	}
	return res
}

// gatewaySays tells a gateway's own answers from those of a provider behind it.
func (x *exchange) gatewaySays(res *retry.Result) {
	media, _, _ := mime.ParseMediaType(x.resp.Header.Get("Content-Type"))
	if media != "application/problem+json" {
		return
	}
	switch {
	case x.status == http.StatusConflict && x.resp.Header.Get("Retry-After") != "":
		x.inFlight = true
	case x.status == http.StatusUnprocessableEntity, x.asked == "key_mismatch":
		x.mismatch = true
		res.Verdict.Class, res.Verdict.Retryable = retrylens.ClassInvalidRequest, false
	}
}

// answer: a status below 400. It is handed over as it comes, but for the first event of
// a stream, which may be an error that is worth another try, and what Options.Hold asks.
func (x *exchange) answer() retry.Result {
	x.reader = readers.Get().(*usage.Reader)
	x.reader.Reset(x.format)
	hold := x.c.t.o.Hold
	if x.stream() {
		x.watch.stream(x.at.GapTimeout)
		hold = classify.MaxBody
	}
	if hold > 0 && !x.await(hold, x.stream()) {
		return x.failedEarly()
	}
	if x.stream() {
		x.watch.pause(false)
	}
	x.handed = true
	x.c.t.open.add(x)
	return retry.Result{HandedOver: true, Value: x}
}

// await reads up to limit bytes until the first event of a stream or the end of another
// answer, and tells whether the answer may be handed over.
func (x *exchange) await(limit int, stream bool) bool {
	x.prefix = make([]byte, 0, min(limit, 4<<10))
	for len(x.prefix) < limit && x.broke == nil && (!stream || x.reader.Events() == 0) {
		if len(x.prefix) == cap(x.prefix) {
			grown := make([]byte, len(x.prefix), min(limit, 2*cap(x.prefix)))
			copy(grown, x.prefix)
			x.prefix = grown
		}
		n, err := x.from.Read(x.prefix[len(x.prefix):cap(x.prefix)])
		x.prefix = x.prefix[:len(x.prefix)+n]
		if x.passed(x.prefix[len(x.prefix)-n:]) {
			x.watch.feed()
		}
		x.broke = err
	}
	if stream && x.reader.Events() > 0 {
		return x.reader.Telling() == nil || x.reader.Content()
	}
	if x.broke == nil { // longer than limit
		return true
	}
	x.reader.End()
	return errors.Is(x.broke, io.EOF) && x.success()
}

// passed has p, the next bytes of the answer, read in passing, and tells whether content
// was in it.
func (x *exchange) passed(p []byte) bool {
	x.length += int64(len(p))
	before := x.reader.Contents()
	x.reader.Write(p)
	return x.reader.Contents() != before
}

// failedEarly: the answer failed before anything of it was handed over.
func (x *exchange) failedEarly() retry.Result {
	err := x.broke
	if errors.Is(err, io.EOF) {
		err = nil
	}
	res := x.verdict(err)
	if x.broke == nil {
		x.broke = io.ErrUnexpectedEOF
	}
	x.close()
	return res
}

// success tells whether an answer that was read to its end, by its own account or the
// transport's, is one. x.reader must be there.
func (x *exchange) success() bool {
	r := x.reader
	switch {
	case r.Telling() != nil:
		return false
	case x.status >= 300 || x.status == http.StatusNoContent || x.c.req.Method == http.MethodHead:
		return true
	case x.length == 0:
		return x.c.req.Method != http.MethodPost
	case x.stream():
		return r.Complete() && (r.Answered() || !r.Generative())
	case r.Generative():
		return r.Complete() && r.Answered()
	}
	return x.format == usage.Opaque || r.Complete()
}

func (x *exchange) stream() bool { return x.format.Stream() }

// verdict of an answer of a status below 400 that failed; err = nil where it ended in
// order.
func (x *exchange) verdict(err error) retry.Result {
	if fired := x.watchFired(); fired != nil && err != nil {
		err = fired
	}
	err = x.leaving(err)
	r := x.reader
	f := classify.Failure{Stream: x.stream(), StreamComplete: r.Complete(), ContentReceived: r.Answered() || err != nil && r.Content(), Body: r.Telling()}
	if f.Body == nil && !f.Stream {
		f.Body = r.Begun()
	}
	if f.Stream && f.Body != nil && !r.Complete() {
		f.ContentReceived = x.handed && r.Content()
	}
	x.endOfTry()
	return x.result(err, f)
}

func (x *exchange) watchFired() error {
	if x.watch == nil {
		return nil
	}
	return x.watch.fired()
}

// endOfTry notes what the record needs of tracer and reader.
func (x *exchange) endOfTry() {
	x.end = x.c.t.clock.Now()
	x.trace = x.tracer.trace()
	x.ttfb = x.tracer.ttfb()
	if r := x.reader; r != nil {
		x.tokens, x.cost, x.model = r.Tokens(), r.CostUSD(), x.c.t.models.get(r.Model())
		x.content, x.final, x.estimate = r.Content(), r.Final(), r.Estimate()
	}
}

// close frees what the attempt holds.
func (x *exchange) close() {
	if x.end.IsZero() {
		x.endOfTry()
	}
	if x.from != nil {
		_ = x.from.Close()
	}
	if x.reader != nil {
		readers.Put(x.reader)
		x.reader = nil
	}
	clean := x.tracer != nil && x.resp != nil && errors.Is(x.broke, io.EOF) && x.tracer.release()
	x.tracer = nil
	if x.watch != nil {
		x.c.t.watches.release(x.watch, clean)
		x.watch = nil
	}
}
