package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/retrylens/retrylens/internal/wire"
)

// Reject is a line that was refused.
type Reject struct {
	Source string
	Line   int    // from 1
	Field  string // the JSON key, "" when it is about the line as a whole
	Reason string
	Raw    []byte // the line without its end, at most the first 64 KiB
}

// kind is the reason without the values it holds: of these there are few,
// whatever the lines are.
func (r Reject) kind() string {
	reason := reasonKind(r.Reason)
	if slices.Contains(wire.Fields, r.Field) {
		return r.Field + ": " + reason
	}
	return reason // no field, or a key that somebody made up
}

// reasonKind cuts the values out of a reason: what is quoted, and what comes after ", got" or a
// colon, which introduce them.
func reasonKind(reason string) string {
	prefix := ""
	if rest, ok := strings.CutPrefix(reason, invalidJSON); ok { // a closed list of faults follows
		prefix, reason = invalidJSON, rest
	}
	reason = quotedText.ReplaceAllString(reason, "…")
	reason, _, _ = strings.Cut(reason, ", got ")
	reason, _, _ = strings.Cut(reason, ": ")
	return prefix + reason
}

const invalidJSON = "invalid JSON: "

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// RejectWriter writes rejects as NDJSON of source, line, field, error and raw,
// the line as it came; bytes that are not UTF-8 become U+FFFD.
type RejectWriter struct {
	w   io.Writer
	err error
}

// NewRejectWriter returns a writer to w, which should be buffered.
func NewRejectWriter(w io.Writer) *RejectWriter { return &RejectWriter{w: w} }

// Write writes one reject. After an error it does nothing; see Err.
func (w *RejectWriter) Write(r Reject) {
	if w.err != nil {
		return
	}
	enc := json.NewEncoder(w.w)
	enc.SetEscapeHTML(false)
	w.err = enc.Encode(struct {
		Source string `json:"source"`
		Line   int    `json:"line"`
		Field  string `json:"field"`
		Error  string `json:"error"`
		Raw    string `json:"raw"`
	}{r.Source, r.Line, r.Field, r.Reason, string(bytes.ToValidUTF8(r.Raw, []byte("\ufffd")))})
}

// Err returns the first error of writing.
func (w *RejectWriter) Err() error {
	if w.err != nil {
		return fmt.Errorf("ingest: rejects: %w", w.err)
	}
	return nil
}
