// Package bulkhead limits the calls in flight to one provider: first sends,
// retries and hedges alike (docs/policy.md). The limit is halved by a rate limit
// and recovers slowly (AIMD); who waits is served in the order of arrival.
//
// Time is an argument of every call, so it has no clock. golang.org/x/sync/semaphore
// waits as fairly, but its size is fixed (docs/adr/0006-policy-parts.md).
package bulkhead
