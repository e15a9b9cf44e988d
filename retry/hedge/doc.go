// Package hedge tells when a second copy of a call is worth sending: after a
// quantile of the latencies of the last minutes, and for no more than a share of
// the calls (docs/policy.md). Time is an argument of every call.
package hedge
