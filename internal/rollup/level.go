package rollup

import (
	"slices"
	"time"
)

// Level is a width of buckets. Buckets are aligned to the Unix epoch.
type Level string

// Levels. Each bucket is the sum of those of the level below.
const (
	Minute Level = "minute"
	Hour   Level = "hour"
	Day    Level = "day"
)

// Levels are all levels, the finest first; their place + 1 is their number in
// storage.
var Levels = []Level{Minute, Hour, Day}

// Width is the length of a bucket.
func (l Level) Width() time.Duration {
	switch l {
	case Day:
		return 24 * time.Hour
	case Hour:
		return time.Hour
	}
	return time.Minute
}

// finer is the level below; false for minutes.
func (l Level) finer() (Level, bool) {
	switch l {
	case Day:
		return Hour, true
	case Hour:
		return Minute, true
	}
	return "", false
}

// Span is a half-open range of time in Unix milliseconds.
type Span struct{ From, To int64 }

// Empty tells whether the span holds nothing.
func (s Span) Empty() bool { return s.From >= s.To }

func (s Span) overlaps(o Span) bool { return s.From < o.To && o.From < s.To }

// floor and ceil move a time to the edge of a bucket; width is in milliseconds.
func floor(t, width int64) int64 {
	r := t % width
	if r < 0 {
		r += width
	}
	return t - r
}

func ceil(t, width int64) int64 { return -floor(-t, width) }

// Buckets are the starts of the buckets of a level that hold the given times, in
// Unix milliseconds, sorted.
func Buckets(l Level, times []int64) []int64 {
	var out []int64
	for _, t := range times {
		out = append(out, floor(t, l.Width().Milliseconds()))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
