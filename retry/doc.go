// Package retry decides whether, when and where a failed call of an LLM provider
// is tried again. It is one engine for all who call: the client transport, the
// gateway and the simulator; it knows none of them.
//
// An [Engine] holds what calls share: per provider a retry budget, a breaker, a
// bulkhead and a hedge tracker. A [Run] is one logical operation. For every failure
// the order of questions is fixed (docs/policy.md):
//
//	classify → retryable? → attempts left? → keyed or pre-send? → still worth it? →
//	does the delay fit the deadline? → retry-budget token → sleep → bulkhead slot →
//	breaker → send
//
// and every "no" is a [Decision] with a stop reason, seen by the [Observer] and
// ready to land in the attempt's record.
//
// The engine can be driven in two ways. [Engine.Do] blocks, sleeps on the injected
// clock and runs hedges. [Engine.Begin] gives a [Run] whose decisions are pure: no
// goroutine, no sleep, the time from the clock and the randomness from the source
// that were injected, so that a simulated day is repeatable. Do is built on Begin.
//
// What is not here: HTTP, keys, records, emitters, prices.
package retry
