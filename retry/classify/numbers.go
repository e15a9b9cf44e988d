package classify

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
)

// maxWait is what absurdly long waits saturate at.
const maxWait = time.Duration(math.MaxInt64)

type wait = retrylens.Opt[time.Duration]

// scale is v units, saturated; the caller knows that v is not negative.
func scale(v float64, unit time.Duration) time.Duration {
	d := v * float64(unit)
	if !(d < float64(maxWait)) {
		return maxWait
	}
	return time.Duration(math.Round(d))
}

func addSaturated(a, b time.Duration) time.Duration {
	if a > maxWait-b {
		return maxWait
	}
	return a + b
}

// parseDecimal reads digits with an optional fraction at the head of b.
func parseDecimal(b []byte) (v float64, n int, ok bool) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n == 0 {
		return 0, 0, false
	}
	if n+1 < len(b) && b[n] == '.' && b[n+1] >= '0' && b[n+1] <= '9' {
		for n++; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		}
	}
	v, err := strconv.ParseFloat(string(b[:min(n, 64)]), 64)
	return v, n, err == nil || math.IsInf(v, 1)
}

// seconds reads a plain number of units: digits, fraction, exponent. Negative, NaN,
// infinite and unparsable numbers are absent.
func number(s string, unit time.Duration) wait {
	s = strings.TrimSpace(s)
	if s == "" || !plain(s) {
		return wait{}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(v, 1) || v < 0 || math.Signbit(v) || v != v {
		return wait{}
	}
	return retrylens.Some(scale(v, unit))
}

// plain keeps out "inf", "nan", hexadecimal and '_', which ParseFloat would take.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return true
}

// span reads a whole text as a duration with units ("6m0s", "20 seconds").
func span(s string) wait {
	s = strings.TrimSpace(s)
	b := []byte(s)
	d, n, ok := parseSpan(b, false)
	if !ok || n != len(b) {
		return wait{}
	}
	return retrylens.Some(d)
}

// spanOrSeconds reads "34.07s" as well as "34.07".
func spanOrSeconds(s string) wait {
	if w := number(s, time.Second); w.Set {
		return w
	}
	return span(s)
}

// until reads an absolute time, Unix seconds or milliseconds or RFC 3339 or an HTTP
// date, as a wait from now. The past and a missing now are absent.
func until(s string, now time.Time) wait {
	if now.IsZero() {
		return wait{}
	}
	t, ok := instant(strings.TrimSpace(s))
	if !ok {
		return wait{}
	}
	d := t.Sub(now) // saturates
	if d <= 0 {
		return wait{}
	}
	return retrylens.Some(d)
}

const (
	unixSeconds = 1e9  // 2001; smaller numbers are waits
	unixMillis  = 1e11 // year 5138 as seconds, 1973 as milliseconds
)

func instant(s string) (time.Time, bool) {
	if s == "" {
		return time.Time{}, false
	}
	if plain(s) {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil || v < unixSeconds || v > 1e15:
			return time.Time{}, false
		case v >= unixMillis:
			return time.UnixMilli(int64(v)), true
		}
		sec, frac := math.Modf(v)
		return time.Unix(int64(sec), int64(frac*1e9)), true
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, true
	}
	return httpDate(s)
}

var dateLayouts = []string{
	"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC,
	"Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04:05 -0700",
}

func httpDate(s string) (time.Time, bool) {
	if len(s) < 20 || len(s) > 40 {
		return time.Time{}, false
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
