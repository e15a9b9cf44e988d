package classify

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/retrylens/retrylens"
)

// Case is one failure as written down in a file of cases, one JSON object a line.
// Unknown fields are ignored. Status is null without a response head; Body is text,
// BodyBase64 is for bodies that are not.
type Case struct {
	ID              string            `json:"id"`
	Provider        string            `json:"provider"`
	Status          *int              `json:"status"`
	Headers         map[string]Values `json:"headers"`
	Body            *string           `json:"body"`
	BodyBase64      []byte            `json:"body_base64"`
	Stream          bool              `json:"stream"`
	ContentReceived bool              `json:"content_received"`
	HeadersReceived bool              `json:"headers_received"`
	TransportError  *string           `json:"transport_error"` // the error's text, as a client prints it
	Now             time.Time         `json:"now"`
	Expect          *Answer           `json:"expect"`
	Debatable       bool              `json:"debatable"`
	Why             string            `json:"why"`
}

// Values is a header's value: one text, or a list of them.
type Values []string

// UnmarshalJSON takes a string, a list of strings or a number.
func (v *Values) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(v))
	}
	if len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		*v = Values{s}
		return err
	}
	if string(b) != "null" {
		*v = Values{string(b)}
	}
	return nil
}

// Answer is what a case expects, and what [RunCases] prints after the id.
type Answer struct {
	Class        retrylens.ErrorClass `json:"class"`
	Retryable    bool                 `json:"retryable"`
	PreSend      bool                 `json:"pre_send"`
	NeedsKey     bool                 `json:"needs_key"`
	RetryAfterMS *int64               `json:"retry_after_ms"` // null: no wait asked for, or no retry
}

// Answer is the verdict in the form of a case's expectation.
func (v Verdict) Answer() Answer {
	a := Answer{Class: v.Class, Retryable: v.Retryable, PreSend: v.PreSend, NeedsKey: v.NeedsKey}
	if v.RetryAfter.Set {
		ms := v.RetryAfter.Value.Milliseconds()
		a.RetryAfterMS = &ms
	}
	return a
}

// textError is a transport error that is known by its text only.
type textError string

func (e textError) Error() string { return string(e) }

// Failure is the failure that the case describes. Absolute times in it count from
// its now field or its Date header and say nothing without either.
func (c *Case) Failure() *Failure {
	f := &Failure{
		Provider: c.Provider, HeadersReceived: c.HeadersReceived, ContentReceived: c.ContentReceived, Stream: c.Stream,
		Header: make(http.Header, len(c.Headers)), Now: c.Now,
	}
	if c.Status != nil {
		f.Status = *c.Status
	}
	for k, vs := range c.Headers {
		for _, v := range vs {
			f.Header.Add(k, v)
		}
	}
	if c.TransportError != nil && *c.TransportError != "" {
		f.Err = textError(*c.TransportError)
	}
	f.Body = c.bytes()
	return f
}

// bytes is the body. A compressed one may be written as base64 or as one character
// a byte.
func (c *Case) bytes() []byte {
	if len(c.BodyBase64) > 0 {
		return c.BodyBase64
	}
	if c.Body == nil {
		return nil
	}
	body := *c.Body
	if len(body) > 4 && body[:4] == "H4sI" {
		if raw, err := base64.StdEncoding.DecodeString(body); err == nil {
			return raw
		}
	}
	runes := []rune(body)
	if len(runes) > 3 && (runes[0] == 0x1f && runes[1] == 0x8b || runes[0] == 0 && runes[1] == 0) {
		return latin1(runes)
	}
	return []byte(body)
}

func latin1(runes []rune) []byte {
	out := make([]byte, len(runes))
	for i, r := range runes {
		out[i] = byte(r)
	}
	return out
}

// LineError is a line of a file of cases that could not be used.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// maxLine bounds one line; a body of MaxBody doubles when it is escaped.
const maxLine = 4 << 20

var (
	errNoID    = errors.New("no id")
	errTooLong = errors.New("longer than 4 MiB")
)

// ReadCases returns the cases of r in order. Blank lines are passed over. Lines that
// are no case are left out and told, each as a [*LineError], in the joined error.
func ReadCases(r io.Reader) ([]Case, error) {
	var out []Case
	err := eachCase(r, func(c *Case) error {
		out = append(out, *c)
		return nil
	})
	return out, err
}

// RunCases classifies the cases of r and writes one JSON object a line: id and the
// fields of [Answer]. Bad lines are left out and told as by [ReadCases]; an error of
// w ends the run.
func RunCases(w io.Writer, r io.Reader) error {
	c := New()
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := eachCase(r, func(k *Case) error {
		line := struct {
			ID string `json:"id"`
			Answer
		}{k.ID, c.Classify(k.Failure()).Answer()}
		return enc.Encode(line)
	})
	return errors.Join(err, out.Flush())
}

func eachCase(r io.Reader, do func(*Case) error) error {
	var bad []error
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, readErr := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 || errors.Is(readErr, errTooLong) {
			c, err := parseCase(line)
			if errors.Is(readErr, errTooLong) {
				err = errTooLong
			}
			if err != nil {
				bad = append(bad, &LineError{n, err})
			} else if err := do(c); err != nil {
				return errors.Join(append(bad, err)...)
			}
		}
		if errors.Is(readErr, errTooLong) {
			continue
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) {
				bad = append(bad, &LineError{n, readErr})
			}
			return errors.Join(bad...)
		}
	}
}

// readLine reads one line; of one that is too long it drops the rest and says so.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line, long = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errTooLong
		}
		return line, err
	}
}

func parseCase(line []byte) (*Case, error) {
	c := new(Case)
	if err := json.Unmarshal(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")), c); err != nil {
		return nil, err
	}
	if c.ID == "" {
		return nil, errNoID
	}
	return c, nil
}
