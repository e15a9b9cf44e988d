package classify

import (
	"net/http"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
)

// header reads a header by its canonical name without allocating.
func header(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// millisecondHeaders come first: they are the most precise.
var millisecondHeaders = [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"}

// now is the clock that absolute times are measured against: the server's own where
// it sent it.
func (a *analysis) now() time.Time {
	if t, ok := httpDate(header(a.f.Header, "Date")); ok {
		return t
	}
	return a.f.Now
}

// asked is the wait that the provider asked for: header, field of the body, text,
// and for a rate limit the reset headers, in this order.
func (a *analysis) asked(class retrylens.ErrorClass) wait {
	if len(a.f.Header) > 0 {
		if w := a.retryAfter(); w.Set {
			return w
		}
	}
	if a.bodyWait.Set {
		return a.bodyWait
	}
	if a.textWait.Set {
		return a.textWait
	}
	if class == retrylens.ClassRateLimited && len(a.f.Header) > 0 {
		return a.resetWait()
	}
	return wait{}
}

func (a *analysis) retryAfter() wait {
	h := a.f.Header
	for _, name := range millisecondHeaders {
		if v := header(h, name); v != "" {
			if w := number(v, time.Millisecond); w.Set {
				return w
			}
		}
	}
	if v := header(h, "Retry-After"); v != "" {
		if w := spanOrSeconds(v); w.Set {
			return w
		}
		return until(v, a.now())
	}
	return wait{}
}

// resets gathers the waits of the reset headers by what is known of their limit.
type resets struct{ spent, unknown, left, unknownMin wait }

// resetWait picks among x-ratelimit-reset*, anthropic-ratelimit-*-reset and the
// IETF's ratelimit-reset: the longest of those whose allowance is spent; without any
// the longest of those whose allowance is not told (the shortest if that is beyond
// QuotaWait); without any the shortest.
func (a *analysis) resetWait() wait {
	var r resets
	for name, values := range a.f.Header {
		if len(values) == 0 || !isReset(name) {
			continue
		}
		w := a.reset1(name, values[0])
		if !w.Set || w.Value == 0 { // 0 is what is sent when nothing is known
			continue
		}
		switch remaining := a.remaining(name); {
		case remaining == "0":
			longest(&r.spent, w)
		case remaining == "" || strings.HasPrefix(remaining, "-"):
			longest(&r.unknown, w)
			shortest(&r.unknownMin, w)
		default:
			shortest(&r.left, w)
		}
	}
	switch {
	case r.spent.Set:
		return r.spent
	case r.unknown.Set && r.unknown.Value <= QuotaWait:
		return r.unknown
	case r.unknown.Set:
		return r.unknownMin
	}
	return r.left
}

func isReset(name string) bool {
	if !strings.Contains(name, "Reset") {
		return false
	}
	return strings.HasPrefix(name, "X-Ratelimit-Reset") || strings.HasPrefix(name, "Anthropic-Ratelimit-") && strings.HasSuffix(name, "-Reset") ||
		strings.HasPrefix(name, "Ratelimit-Reset") || strings.HasPrefix(name, "X-Ratelimit-") && strings.HasSuffix(name, "-Reset") ||
		strings.HasPrefix(name, "X-Rate-Limit-Reset") || strings.HasPrefix(name, "Anthropic-Priority-") && strings.HasSuffix(name, "-Reset")
}

// remaining finds the header that tells what is left of the limit of a reset header.
func (a *analysis) remaining(reset string) string {
	return strings.TrimSpace(header(a.f.Header, strings.Replace(reset, "Reset", "Remaining", 1)))
}

// reset1 reads one reset header: a duration, seconds, milliseconds by name, Unix or
// RFC 3339 time.
func (a *analysis) reset1(name, v string) wait {
	if w := until(v, a.now()); w.Set {
		return w
	}
	if _, absolute := instant(strings.TrimSpace(v)); absolute {
		return wait{}
	}
	if strings.HasSuffix(name, "-Ms") {
		return number(v, time.Millisecond)
	}
	return spanOrSeconds(v)
}

func longest(w *wait, x wait) {
	if !w.Set || x.Value > w.Value {
		*w = x
	}
}

func shortest(w *wait, x wait) {
	if !w.Set || x.Value < w.Value {
		*w = x
	}
}

// wall tells why a rate limit is really an exhausted quota, "" if it is not.
func (a *analysis) wall(asked wait) string {
	switch {
	case a.inFlight():
		return ""
	case a.limitZero:
		return "a limit of 0: no allowance at all"
	case a.day:
		return "an allowance per day or longer is used up"
	case asked.Set && asked.Value > QuotaWait:
		return "rate limit with a wait above 5 minutes"
	}
	return ""
}
