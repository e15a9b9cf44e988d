package ingestd

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// linger is how long the rest of a body may still come once its answer is
	// known: net/http reads as much as 256 KiB of it before it answers, so that a
	// sender who does not read meanwhile gets the answer.
	linger     = time.Second
	answerTime = 30 * time.Second // for an answer to be taken
)

// bounded keeps every request, whatever its path, from holding its connection
// after the answer is known.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answerWriter{ResponseWriter: w, control: http.NewResponseController(w)}
		_ = a.control.SetReadDeadline(time.Time{}) // the server's own is for what reaches no handler
		if r.Body != nil && r.Body != http.NoBody {
			a.body = &watchedBody{ReadCloser: r.Body}
			r = r.WithContext(r.Context()) // net/http looks at the body of its own
			r.Body = a.body
		}
		next.ServeHTTP(a, r)
		a.begin()
	})
}

// watchedBody remembers how a body ended: io.EOF, what broke it, or nil.
type watchedBody struct {
	io.ReadCloser
	err error
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.err = err
	}
	return n, err
}

// answerWriter sets the deadlines of an answer as it begins.
type answerWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	body    *watchedBody // nil = the request has none
	begun   bool
}

// Unwrap is for http.ResponseController.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answerWriter) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answerWriter) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

func (a *answerWriter) begin() {
	if a.begun {
		return
	}
	a.begun = true
	now := time.Now()
	_ = a.control.SetWriteDeadline(now.Add(answerTime)) // net/http ends it after the answer
	switch {
	case a.body == nil || errors.Is(a.body.err, io.EOF):
	case a.body.err != nil:
		_ = a.control.SetReadDeadline(now)
	default:
		_ = a.control.SetReadDeadline(now.Add(linger))
	}
}
