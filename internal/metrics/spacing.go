package metrics

const (
	spacingToleranceMS = 50     // how much too early a successor may start
	retryAfterCapMS    = 20_000 // the most of a retry-after that a caller must wait
)

// checkSpacing marks the pairs of neighbouring tries within a run (attempt div
// 100) that break a rule:
//
//   - retry_after_violations: a counted record with retry_after_ms and
//     duration_ms whose successor (the counted record with the next higher
//     attempt and a cause other than hedge and redelivery, so these are passed
//     over) started more than 50 ms before its end + min(retry_after_ms, 20 s);
//   - unkeyed_after_send: a retry without idempotency_key whose predecessor
//     (the next lower counted attempt, of any cause) had upstream_calls ≥ 1.
func (op *Operation) checkSpacing() {
	var next, previous *Record
	for i := len(op.Records) - 1; i >= 0; i-- {
		r := &op.Records[i]
		if !r.Counted {
			continue
		}
		if next != nil && next.Run() == r.Run() {
			r.RetryAfterViolated = tooEarly(r, next)
		}
		if previous != nil && previous.Run() == r.Run() && previous.Retry && previous.IdempotencyKey == "" {
			previous.UnkeyedAfterSend = r.UpstreamCalls.Value > 0
		}
		if previous = r; !fromOutside(r.Cause) {
			next = r
		}
	}
}

// tooEarly tells whether next started before r allowed it.
func tooEarly(r, next *Record) bool {
	if !r.RetryAfterMS.Set || !r.DurationMS.Set {
		return false
	}
	allowed := r.EndUnixMS() + min(r.RetryAfterMS.Value, retryAfterCapMS)
	return next.StartedAt.UnixMilli() < allowed-spacingToleranceMS
}
