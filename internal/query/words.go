package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// TimeSyntax says what ParseTime reads.
const TimeSyntax = "RFC 3339 (2026-11-28T00:30:00Z), a date (2026-11-28, UTC), Unix seconds or milliseconds, now, now-1h, now-7d"

// epochMS is the smallest number that is read as milliseconds: as seconds it
// would be the year 5138.
const epochMS = 100_000_000_000

// ParseTime reads a time as people and scripts write it.
func ParseTime(s string, now time.Time) (time.Time, error) {
	if rest, ok := strings.CutPrefix(s, "now"); ok {
		return relativeTime(s, rest, now)
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return epochTime(s, n)
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("no time: %.60q; write %s", s, TimeSyntax)
}

func relativeTime(s, rest string, now time.Time) (time.Time, error) {
	if rest == "" {
		return now.UTC(), nil
	}
	d, err := ParseDuration(rest[1:])
	if err != nil || rest[0] != '-' && rest[0] != '+' {
		return time.Time{}, fmt.Errorf("no time: %.60q; write %s", s, TimeSyntax)
	}
	if rest[0] == '-' {
		d = -d
	}
	return now.Add(d).UTC(), nil
}

func epochTime(s string, n int64) (time.Time, error) {
	switch {
	case n < 0 || n >= epochMS*1000:
		return time.Time{}, fmt.Errorf("no time: %.60q is out of range for Unix seconds or milliseconds", s)
	case n >= epochMS:
		return time.UnixMilli(n).UTC(), nil
	}
	return time.Unix(n, 0).UTC(), nil
}

// ParseDuration reads a positive duration: 90s, 5m, 1h30m, 7d, 2w.
func ParseDuration(s string) (time.Duration, error) {
	for unit, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err == nil && n > 0 && n*hours < math.MaxInt64/float64(time.Hour) {
				return time.Duration(n * hours * float64(time.Hour)), nil
			}
			return 0, badDuration(s)
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, badDuration(s)
	}
	return d, nil
}

func badDuration(s string) error {
	return fmt.Errorf("no positive duration: %.60q; write such as 90s, 5m, 1h30m, 7d, 2w", s)
}
