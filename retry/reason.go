package retry

import (
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// maxReason is the length of a record's reason in bytes.
const maxReason = 256

// joint is a reason that was joined before.
type joint struct{ verdict, why, line string }

// joints remember the last reasons, as nearly all verdicts say one of a few dozen
// lines: joining costs more than all questions of the order together. An entry is
// replaced by whatever falls on the same place.
var joints [256]atomic.Pointer[joint]

// line joins the classifier's line and what was decided.
func line(verdict, why string) string {
	if verdict == "" || why == "" {
		return verdict + why
	}
	last := uint(verdict[len(verdict)-1])
	place := &joints[(uint(len(verdict))*31+uint(len(why))*7+last)%uint(len(joints))]
	if j := place.Load(); j != nil && j.verdict == verdict && j.why == why {
		return j.line
	}
	j := &joint{verdict, why, join(verdict, why)}
	place.Store(j)
	return j.line
}

// join cuts the classifier's line where both together are too long for a record.
func join(verdict, why string) string {
	const sep = "; "
	if over := len(verdict) + len(sep) + len(why) - maxReason; over > 0 {
		verdict = verdict[:max(0, len(verdict)-over)]
		for !utf8.ValidString(verdict) {
			verdict = verdict[:len(verdict)-1]
		}
		verdict = strings.TrimRight(verdict, " ;")
	}
	return verdict + sep + why
}
