package retryhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/retrylens/retrylens/retry/fingerprint"
	"github.com/retrylens/retrylens/retry/usage"
)

// body is the request body, read once and sent with every try.
type body struct {
	bytes []byte                        // the whole, nil if it is larger than MaxBody or there is none
	rest  io.ReadCloser                 // of one that is larger: its first send
	again func() (io.ReadCloser, error) // of one that is larger: further sends; nil = there are none
	sent  bool
	probe [1]byte

	known atomic.Pointer[facts]
}

// facts are what is read in a request body, outside of the call.
type facts struct {
	fingerprint string
	info        usage.Request
}

var errNotReplayable = errors.New("retryhttp: the body is larger than Options.MaxBody and the request has no GetBody: it cannot be sent again")

// read takes the body of a request and closes it.
func (b *body) read(r *http.Request, limit int64) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > limit {
		b.rest, b.again = r.Body, r.GetBody
		return nil
	}
	var err error
	if n := r.ContentLength; n > 0 {
		b.bytes = make([]byte, n)
		var got int
		if got, err = io.ReadFull(r.Body, b.bytes); err == nil {
			err = b.atEnd(r.Body)
		} else {
			err = fmt.Errorf("retryhttp: the request body ended after %d of %d bytes: %w", got, n, err)
		}
	} else {
		b.bytes, err = io.ReadAll(io.LimitReader(r.Body, limit+1))
		if err == nil && int64(len(b.bytes)) > limit {
			b.rest = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(b.bytes), r.Body), r.Body}
			b.bytes, b.again = nil, r.GetBody
			return nil
		}
	}
	if closed := r.Body.Close(); err == nil {
		err = closed
	}
	return err
}

// atEnd: a body longer than its ContentLength is a mistake of the caller, which must not
// be cut in silence.
func (b *body) atEnd(r io.Reader) error {
	if n, err := r.Read(b.probe[:]); n > 0 {
		return errors.New("retryhttp: the request body is longer than its ContentLength")
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// open returns what the next try sends, in r if that will do; nil for no body.
func (b *body) open(r *reader) (io.ReadCloser, error) {
	switch {
	case b.bytes != nil:
		r.Reset(b.bytes)
		return r, nil
	case b.rest == nil:
		return nil, nil
	case !b.sent:
		b.sent = true
		return b.rest, nil
	case b.again != nil:
		return b.again()
	}
	return nil, errNotReplayable
}

// replayable tells whether another try can send the body.
func (b *body) replayable() bool { return b.rest == nil || b.again != nil }

func (b *body) close() {
	if b.rest != nil && !b.sent {
		_ = b.rest.Close()
	}
}

type reader struct{ bytes.Reader }

func (*reader) Close() error { return nil }

// facts of the body, made when they are first asked for.
func (b *body) facts() *facts {
	if f := b.known.Load(); f != nil {
		return f
	}
	f := new(facts)
	if len(b.bytes) > 0 {
		f.fingerprint, f.info = fingerprint.Body(b.bytes), usage.ReadRequest(b.bytes)
	}
	b.known.Store(f) // who asks at the same time comes to the same
	return f
}
