// Package sim makes attempt records of a small fleet that never ran: callers
// with a plain retry loop, two providers and a virtual clock. It is pure and
// seeded: the same options give the same records, in no time.
//
// An incident is a [Fault] of a provider: shares of requests that fail or hang
// and a factor of latency. What a report then shows (amplification, a flat error
// ratio, a falling retry success) follows from the fault and the retry policy;
// no figure is drawn. Providers, callers and clock do not know each other's
// insides; a request and a reply are all that passes between them.
//
// Latencies are drawn with package math, whose last digit may differ between
// processor architectures: bytes are promised on one architecture.
package sim
