package ingest

import "io"

// Kind is the reason of a reject without the values it holds, behind its field:
// of these there are few, whatever the lines are.
func (r Reject) Kind() string { return r.kind() }

// LineReader splits a stream into lines with a buffer of one line.
type LineReader struct{ lines *lineReader }

// NewLineReader reads r, without a byte order mark at its start.
func NewLineReader(r io.Reader) *LineReader { return &LineReader{newLineReader(r)} }

// Next returns the next line without its end, valid until the next call, and its
// number from 1. Of a line that is too long it returns the beginning and tooLong.
// err is io.EOF or what broke the stream; the line read until there is returned
// with it.
func (l *LineReader) Next() (line []byte, number int, tooLong bool, err error) {
	line, tooLong, err = l.lines.next()
	return line, l.lines.line, tooLong, err
}
