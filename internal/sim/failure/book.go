package failure

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/retrylens/retrylens/retry"
	"github.com/retrylens/retrylens/retry/classify"
)

// Reply is a failure as its caller saw it, and what it means.
type Reply struct {
	Kind       Kind
	Status     uint16 // 0 without a response head
	RetryAfter time.Duration
	Verdict    classify.Verdict
}

// Asks tells whether the provider named a wait.
func (r *Reply) Asks() bool { return r.Verdict.Asked.Set }

// Book is one provider's failures, each judged once. It is not safe for concurrent use.
type Book struct {
	provider string
	pages    map[Kind]page
	stream   bool
	judge    *classify.Classifier
	known    map[entry]*Reply
}

type entry struct {
	kind Kind
	wait int // whole seconds that the answer asks for
}

// page is an answer: {wait} stands for the seconds asked for.
type page struct {
	status       int
	header, body string // header "Name: value", "" for none
}

// NewBook for a provider; one whose answers are not known sends OpenAI's, as
// compatible ones do. Streams are judged as such.
func NewBook(provider string, stream bool) *Book {
	return &Book{provider: provider, pages: dialect(provider), stream: stream, judge: classify.New(), known: map[entry]*Reply{}}
}

// Reply of a kind that asks for a wait, rounded up to seconds; 0 = it asks for none.
// The same question gives the same *Reply, which must not be changed.
func (b *Book) Reply(kind Kind, wait time.Duration) *Reply {
	e := entry{kind, int((wait + time.Second - 1) / time.Second)}
	r := b.known[e]
	if r == nil {
		r = b.write(e)
		b.known[e] = r
	}
	return r
}

func (b *Book) write(e entry) *Reply {
	f := b.Seen(e.kind, e.wait)
	return &Reply{
		Kind: e.kind, Status: uint16(f.Status), //nolint:gosec // of our own pages
		RetryAfter: time.Duration(e.wait) * time.Second, Verdict: b.judge.Classify(f),
	}
}

// Seen is the failure as the classifier gets it.
func (b *Book) Seen(kind Kind, wait int) *classify.Failure {
	f := &classify.Failure{Provider: b.provider, Stream: b.stream}
	p, ok := pageOf(b.pages, kind)
	if !ok {
		f.Err = transportError(kind)
		f.Trace = classify.Trace{Traced: true, Conns: 1, Sends: 1, WroteRequest: true}
		if kind == Refused {
			f.Trace = classify.Trace{Traced: true}
		}
		if kind == Broken {
			f.Stream, f.Status, f.HeadersReceived, f.ContentReceived = true, http.StatusOK, true, true
		}
		return f
	}
	seconds := strconv.Itoa(wait)
	f.Status, f.HeadersReceived, f.Header = p.status, true, http.Header{}
	f.Body = []byte(strings.ReplaceAll(p.body, "{wait}", seconds))
	if name, value, ok := strings.Cut(p.header, ": "); ok {
		f.Header.Set(name, value)
	}
	if wait > 0 {
		f.Header.Set("Retry-After", seconds)
	}
	return f
}

func transportError(kind Kind) error {
	switch kind {
	case Refused:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case Reset:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case TimedOut:
		return retry.ErrAttemptTimeout
	case Broken:
		return io.ErrUnexpectedEOF
	}
	return errors.New("no answer of this kind")
}
