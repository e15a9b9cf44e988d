package rollup

import (
	"slices"
)

// Bucket is what is known of a bucket of a rollup.
type Bucket struct {
	Start   int64 // Unix milliseconds
	Version uint64

	// States of operations hold for every as_of in [LastLossMS, NextLossMS), see
	// metrics.LossTimes.
	NextLossMS, LastLossMS int64
}

func (b *Bucket) holds(asOf int64) bool { return b.LastLossMS <= asOf && asOf < b.NextLossMS }

// Request is a window that is to be answered.
type Request struct {
	Window   Span
	Coarsest Level
	AsOf     int64  // Unix milliseconds
	Stale    []Span // must be read from attempts: rollups may not have seen all of it

	// Expired is the time in Unix milliseconds before which attempts may be gone: a
	// bucket that ends before it answers, stale or not and whatever the as_of, as there is
	// nothing better. 0 = attempts are there.
	Expired int64

	// Lookup returns the buckets of a level in sorted, disjoint spans, in any order, and
	// maybe others. One that it does not return has no operations, unless it is stale.
	Lookup func(Level, []Span) ([]Bucket, error)
}

// Plan is how a window is answered: every instant of it either by one bucket, or
// from attempts, or by nothing as nothing is there.
type Plan struct {
	Buckets  map[Level][]Bucket // sorted by start
	Attempts []Span             // sorted, disjoint
}

// MaxAttemptSpans is how many spans of attempts a plan has at most, more or less:
// each costs a fold of its own, so that beyond it what is stale, or does not hold for the
// as_of, is read by whole hours, then by whole days.
const MaxAttemptSpans = 24

// Make plans a request.
func Make(r Request) (Plan, error) {
	read := r.Stale
	for _, width := range []Level{Minute, Hour, Day} {
		p, err := r.at(widen(read, width))
		if err != nil || len(p.Attempts) <= MaxAttemptSpans || width == Day {
			return p, err
		}
		read = append(read[:len(read):len(read)], p.Attempts...) // buckets that do not hold as well
	}
	panic("unreachable")
}

// widen moves the edges of spans outwards to those of a level.
func widen(spans []Span, l Level) []Span {
	w := l.Width().Milliseconds()
	out := make([]Span, len(spans))
	for i, s := range spans {
		out[i] = Span{floor(s.From, w), ceil(s.To, w)}
	}
	return Join(out)
}

// Join sorts spans and joins those that touch.
func Join(spans []Span) []Span {
	spans = slices.DeleteFunc(slices.Clone(spans), Span.Empty)
	slices.SortFunc(spans, func(a, b Span) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		}
		return 0
	})
	var out []Span
	for _, s := range spans {
		if last := len(out) - 1; last >= 0 && s.From <= out[last].To {
			out[last].To = max(out[last].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (r *Request) at(stale []Span) (Plan, error) {
	p := Plan{Buckets: map[Level][]Bucket{}}
	left, level, ok := Join([]Span{r.Window}), r.Coarsest, true
	for ok {
		taken, rest, err := r.take(level, left, stale)
		if err != nil {
			return p, err
		}
		if len(taken) > 0 {
			p.Buckets[level] = taken
		}
		left = rest
		level, ok = level.finer()
	}
	p.Attempts = left
	return p, nil
}

// take answers what it can of the spans by buckets of a level and returns what is
// left for finer ones.
func (r *Request) take(l Level, spans, stale []Span) (taken []Bucket, left []Span, err error) {
	width := l.Width().Milliseconds()
	var inner []Span
	for _, s := range spans {
		in := Span{ceil(s.From, width), floor(s.To, width)}
		if in.Empty() {
			left = append(left, s)
			continue
		}
		inner = append(inner, in)
		left = append(left, Span{s.From, in.From}, Span{in.To, s.To})
	}
	if len(inner) == 0 {
		return nil, Join(left), nil
	}
	known, err := r.lookup(l, inner)
	if err != nil {
		return nil, nil, err
	}
	for _, in := range inner {
		for start := in.From; start < in.To; start += width {
			s := Span{start, start + width}
			stale = skip(stale, s)
			b, exists := known[start]
			switch {
			case exists && s.To <= r.Expired:
				taken = append(taken, b)
			case len(stale) > 0 && stale[0].overlaps(s), exists && !b.holds(r.AsOf):
				left = append(left, s)
			case exists:
				taken = append(taken, b)
			}
		}
	}
	return taken, Join(left), nil
}

// skip drops the spans that end before s.
func skip(sorted []Span, s Span) []Span {
	for len(sorted) > 0 && sorted[0].To <= s.From {
		sorted = sorted[1:]
	}
	return sorted
}

func (r *Request) lookup(l Level, spans []Span) (map[int64]Bucket, error) {
	all, err := r.Lookup(l, spans)
	if err != nil {
		return nil, err
	}
	known := make(map[int64]Bucket, len(all))
	for _, b := range all {
		known[b.Start] = b
	}
	return known, nil
}
