// Package classify answers two questions about a failed call of an LLM
// provider: could it have executed, and is another try worth it?
//
// A [Failure] holds what the caller of the network saw: the transport error, what
// was written (see [Tracer]), status, headers and at most 64 KiB of body. The
// answer is a [Verdict]: an error class, whether another try is allowed and under
// which conditions, and the wait that the provider asked for. docs/classification.md
// states the decision order and the signals of every provider.
//
// Errors are told by type wherever Go gives a type and by text only where it does
// not. Providers are data: a [Provider] table adds codes, statuses and headers to
// the general rules, and the general rules alone already serve a provider that no
// table knows.
//
// The package knows nothing of policies, sleeps or budgets; it never touches the
// network and never keeps or prints text of a body.
package classify
