// Package breaker stops calls to a provider that is down: closed, open for a
// cooldown, half-open with exactly one probe (docs/policy.md).
//
// It judges outcomes that it is told; which failure is the provider's is the
// caller's knowledge. Time is an argument of every call, so it has no clock.
package breaker
