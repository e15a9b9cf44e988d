package web

import (
	"math"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// States of a verdict, by docs/metrics.md, and what cannot be told.
const (
	stateHealthy    = "healthy"
	stateFlaky      = "flaky"
	stateMasked     = "masked_outage"
	stateOutage     = "outage"
	stateRecovering = "recovering"
	stateUnknown    = "unknown"
)

// The floors of a verdict from figures alone, beside which the baseline counts. A
// detector that watches all the time knows better, and is asked first.
const (
	fewest           = 20   // operations to judge by
	errorFloor       = 0.02 // error ratio above the usual one that is an outage
	amplifyFloor     = 1.1
	amplifyRise      = 1.1 // over the usual one
	retrySuccessDrop = 0.1 // below the usual one
	slower           = 1.25
	flakyFloor       = 0.01 // attempt error ratio
)

// judged is the verdict on a group of operations.
type judged struct {
	State string
	Votes []string // what of the four signs of a masked outage was seen
	Row   *metrics.Row
}

// judge compares what happened with what is usual; usual may be nil. It says of a window
// what the spec of a masked outage says of five minutes: the error ratio stays, while
// amplification climbs and at least two of retry success, p50 and p99 are worse.
func judge(r, usual *metrics.Row) judged {
	j := judged{State: stateUnknown, Row: r}
	if r.Operations < fewest {
		return j
	}
	if usual == nil || usual.Operations < fewest {
		usual = nil
	}
	errors, _ := number("error_ratio", r)
	if errors > usualOr(usual, "error_ratio", 0)+errorFloor {
		j.State = stateOutage
		return j
	}
	j.Votes = votes(r, usual)
	attemptErrors, _ := number("attempt_error_ratio", r)
	switch {
	case len(j.Votes) >= 3 && j.Votes[0] == "amplification":
		j.State = stateMasked
	case attemptErrors > max(flakyFloor, usualOr(usual, "attempt_error_ratio", 0)*2):
		j.State = stateFlaky
	default:
		j.State = stateHealthy
	}
	return j
}

// votes are the signs of a masked outage, amplification first. Without a baseline, latency
// has no say.
func votes(r, usual *metrics.Row) []string {
	var seen []string
	amplification, _ := number("amplification", r)
	retries, _ := number("retry_ratio", r)
	if amplification > max(amplifyFloor, usualOr(usual, "amplification", 1)*amplifyRise) || retries > max(amplifyFloor, usualOr(usual, "retry_ratio", 1)*amplifyRise) {
		seen = append(seen, "amplification")
	}
	if success, ok := number("retry_success_ratio", r); ok && success < usualOr(usual, "retry_success_ratio", 1)-retrySuccessDrop {
		seen = append(seen, "retry success")
	}
	for _, name := range []string{"latency_ms{p50}", "latency_ms{p99}"} {
		now, ok := number(name, r)
		if before := usualOr(usual, name, math.Inf(1)); ok && now > before*slower {
			seen = append(seen, name)
		}
	}
	return seen
}

func usualOr(usual *metrics.Row, name string, otherwise float64) float64 {
	if usual == nil {
		return otherwise
	}
	if v, ok := number(name, usual); ok {
		return v
	}
	return otherwise
}

// gravity orders states, the worst last.
var gravity = []string{stateUnknown, stateHealthy, stateRecovering, stateFlaky, stateMasked, stateOutage}

func worse(a, b string) bool { return slices.Index(gravity, a) > slices.Index(gravity, b) }

// worst is the gravest of the verdicts on groups, of equal ones that on most failed attempts.
func worst(rows []metrics.Row, usual func(*metrics.Row) *metrics.Row) judged {
	w := judged{State: stateUnknown}
	for i := range rows {
		j := judge(&rows[i], usual(&rows[i]))
		if w.Row == nil || worse(j.State, w.State) || j.State == w.State && j.Row.FailedAttempts > w.Row.FailedAttempts {
			w = j
		}
	}
	return w
}

// since is when the trouble began that lasts until the end of the buckets: the first
// bucket from which on amplification or the error ratio stays above the band, a quiet
// bucket between aside. Zero = it cannot be told.
func since(rows []metrics.Row, amplification, errors band) time.Time {
	var began time.Time
	quiet := 0
	for i := len(rows) - 1; i >= 0 && quiet < 3; i-- {
		a, okA := number("amplification", &rows[i])
		e, okE := number("error_ratio", &rows[i])
		if okA && a > amplification.top() || okE && e > errors.top() {
			began, quiet = rows[i].Bucket, 0
			continue
		}
		quiet++
	}
	return began
}

// topClass is the most frequent error class of a row.
func topClass(r *metrics.Row) string {
	best, most := "", uint64(0)
	for class, n := range r.ErrorsByClass {
		if n > most || n == most && class < best {
			best, most = class, n
		}
	}
	return best
}
