package classify

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens"
)

// MaxBody is the number of body bytes that are looked at; the rest is ignored.
const MaxBody = 64 << 10

// QuotaWait is the wait above which a rate limit counts as an exhausted quota.
const QuotaWait = 5 * time.Minute

// Failure is one failed try as its caller saw it. The zero value of a field means
// "not seen". Classify reads it and keeps nothing of it, and it may be shared
// between goroutines that only read it.
type Failure struct {
	Provider string // lower-case provider name; an unknown one gets the general rules
	Err      error  // transport error of the send or of reading the body, nil if the answer was read to its end
	Trace    Trace  // what was written; see Tracer

	// HTTP2StreamID is the id of the stream that carried the request, 0 when
	// unknown. Only with it can a GOAWAY with a last stream id above 0 prove that
	// the request was not taken.
	HTTP2StreamID uint32

	HeadersReceived bool // a response head arrived; implied by Status
	ContentReceived bool // content of the answer itself arrived (for a stream: a content event, not a comment)
	Stream          bool // the answer is a stream of events
	StreamComplete  bool // the caller saw the stream's terminal event itself; otherwise it is looked for in Body

	Status int         // HTTP status, 0 without a response head
	Header http.Header // canonical keys, as net/http gives them
	Body   []byte      // as received, at most MaxBody bytes of it; may be gzip'd, truncated or a whole event stream

	// Now turns absolute times (HTTP dates, reset times) into waits where the
	// response has no Date header. Zero: absolute times then say nothing.
	Now time.Time
}

// Verdict is what a failure means.
type Verdict struct {
	Class     retrylens.ErrorClass
	Retryable bool // another try may succeed
	PreSend   bool // provably nothing executed
	NeedsKey  bool // retryable only under an idempotency key: the outcome is unknown

	// RetryAfter is the wait to honour before another try, not clamped; only ever
	// set with Retryable. Asked is what the provider asked for in any case.
	RetryAfter retrylens.Opt[time.Duration]
	Asked      retrylens.Opt[time.Duration]

	ProviderErrorType string // the provider's own type or code that spoke, at most 128 bytes
	Reason            string // one human line, never text of a body

	identity uint64
}

// Fingerprint identifies a 500 by type and body once request ids, timestamps and
// counters are stripped: two equal non-empty fingerprints in a row are a fault of
// the request. It is empty for everything that says nothing by repeating itself:
// other statuses, empty bodies, HTML pages.
func (v Verdict) Fingerprint() string {
	if v.identity == 0 {
		return ""
	}
	const digits = "0123456789abcdef"
	var b [16]byte
	for i, x := 15, v.identity; i >= 0; i, x = i-1, x>>4 {
		b[i] = digits[x&15]
	}
	return string(b[:])
}

// Identity is the fingerprint as a number, 0 where that is empty: the same verdicts
// are equal in both.
func (v Verdict) Identity() uint64 { return v.identity }

// Classifier holds the provider tables. It is immutable and safe for concurrent use.
type Classifier struct {
	providers map[string]*Provider
}

// New returns a classifier with the built-in tables and those given; a given table
// replaces a built-in one of the same name.
func New(tables ...Provider) *Classifier {
	c := &Classifier{providers: make(map[string]*Provider)}
	for _, list := range [][]Provider{builtin, tables} {
		for i := range list {
			p := list[i]
			for _, n := range append([]string{p.Name}, p.Aliases...) {
				c.providers[n] = &p
			}
		}
	}
	return c
}

var noProvider Provider

func (c *Classifier) provider(name string) *Provider {
	if p, ok := c.providers[name]; ok {
		return p
	}
	if p, ok := c.providers[strings.ToLower(strings.TrimSpace(name))]; ok {
		return p
	}
	return &noProvider
}

// finding is a class with where it comes from; the empty class is no finding.
type finding struct {
	class  retrylens.ErrorClass
	reason string
	flags  flags
}

type flags uint8

const (
	flagPermanent flags = 1 << iota // not retryable although its class is
	flagPreSend                     // provably nothing executed
	flagRetry                       // retryable although its class is not
	flagKey                         // needs a key although its class does not
	flagBody                        // the body or its type header spoke
	flagText                        // only words spoke
)

var pool = sync.Pool{New: func() any { return new(analysis) }}

// Classify tells what f means. It never fails: what nothing is known about is
// unclassified and not retried.
func (c *Classifier) Classify(f *Failure) Verdict {
	p := c.provider(f.Provider)
	a := pool.Get().(*analysis)
	a.reset(f, p)
	v := a.verdict(a.decide())
	a.release()
	pool.Put(a)
	return v
}

// decide is the decision order of docs/classification.md, first match wins.
func (a *analysis) decide() finding {
	f := a.f
	var sent finding
	if f.Err != nil {
		sent = transport(f)
		if sent.flags&flagPreSend != 0 { // 1: provably nothing executed
			return sent
		}
		if sent.class == retrylens.ClassCancelled && f.Status < 400 {
			return sent
		}
	}
	a.readBody()
	if d := a.broken(); d.class != "" { // 2: content arrived, then it broke
		return d
	}
	if f.Status >= 400 || a.inBand { // 3: the body's own type or code
		if d := a.resolve(); d.class != "" {
			return d
		}
	}
	if d := statusFinding(f.Status); d.class != "" { // 4: status
		return d
	}
	if sent.class != "" { // 5: timeouts, resets
		return sent
	}
	if d := a.notSuccess(); d.class != "" { // 6: a 200 that is none
		return d
	}
	return finding{class: retrylens.ClassUnclassified, reason: "nothing known about this failure"}
}

// broken finds rule 2. Content of a non-stream never reached its reader, so a lost
// body there stays with rule 5.
func (a *analysis) broken() finding {
	f := a.f
	if !f.ContentReceived || !f.Stream || f.Status >= 400 {
		return finding{}
	}
	switch {
	case f.Err != nil:
		return interrupted("stream broke after content")
	case a.inBand || a.finishError:
		return interrupted("error event after content")
	case !f.StreamComplete && !a.terminal:
		return interrupted("stream ended after content without its terminal event")
	}
	return finding{}
}

func interrupted(reason string) finding {
	return finding{class: retrylens.ClassStreamInterrupted, reason: reason}
}
