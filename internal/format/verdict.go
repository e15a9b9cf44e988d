package format

import (
	"fmt"
	"strings"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
)

// Sentences say the verdict, the main one first.
func Sentences(v metrics.Verdict) []string {
	lines := []string{outcome(v), fmt.Sprintf("%s, %s, %s",
		Plural(v.Attempts, "attempt", "attempts"), Plural(v.Retries, "retry", "retries"), Plural(int(v.UpstreamCalls), "upstream call", "upstream calls"))}
	lines = append(lines, waste(v)...)
	if v.RetryAfterViolations > 0 {
		lines = append(lines, "Retry-After not respected: "+Plural(v.RetryAfterViolations, "time", "times"))
	}
	if v.UnkeyedAfterSend > 0 {
		lines = append(lines, "sent again without idempotency key after a send: "+Plural(v.UnkeyedAfterSend, "time", "times"))
	}
	return lines
}

func outcome(v metrics.Verdict) string {
	if v.State == "" {
		return "no counted record: its key was taken by another intent (key conflict)"
	}
	s := string(v.State)
	switch {
	case v.LatencyMS != nil:
		s += " in " + MS(*v.LatencyMS)
	case v.State == metrics.StateSucceeded:
		s += ", latency not known (no duration_ms)"
	}
	if v.RetryTaxMS != nil {
		s += ", retry tax " + MS(*v.RetryTaxMS)
	}
	if v.Rescued {
		s += ", rescued by a retry"
	}
	return s
}

func waste(v metrics.Verdict) []string {
	var lines []string
	if v.OrphanedAttempts == 0 {
		lines = append(lines, "wasted nothing that is known")
	} else {
		lines = append(lines, fmt.Sprintf("wasted %s tokens, %s USD (%s)",
			Grouped(v.OrphanedTokens), USD(v.OrphanedCostUSD), joined(v.OrphanReasons)))
	}
	if v.OrphanSuspects > 0 {
		lines = append(lines, Plural(v.OrphanSuspects, "attempt", "attempts")+" may have been executed too: usage unknown, not priced")
	}
	if v.RecoveredTokens > 0 {
		lines = append(lines, "recovered "+Grouped(v.RecoveredTokens)+" tokens from the dedupe store")
	}
	if v.RedundantTokens > 0 {
		lines = append(lines, "bought "+Grouped(v.RedundantTokens)+" tokens twice")
	}
	return lines
}

func joined[T ~string](words []T) string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return strings.Join(out, ", ")
}

// Plural counts in words: 1 retry, 2 retries.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + many
}

// Fate is what became of an attempt, in words; "" of a client's where the gateway tells.
func Fate(r *metrics.Record) string {
	switch {
	case r.Outcome == retrylens.OutcomeKeyMismatch:
		return "key conflict"
	case !r.Inner && r.Delivery == retrylens.DeliveryFull:
		return FateReceived
	case !r.Inner:
		return ""
	case r.Fate == metrics.FateOrphaned:
		return "orphaned: " + string(r.OrphanReason)
	case r.Fate == metrics.FateUnspent:
		return "not billed"
	case r.Fate != "":
		return string(r.Fate)
	case r.Outcome == retrylens.OutcomeReplayed:
		return "replayed"
	}
	return "not sent"
}

// FateReceived is the fate of a client's attempt that got its answer from a gateway.
const FateReceived = "received"
