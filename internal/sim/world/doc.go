// Package world is the simulated world: callers in processes that start and end,
// layers of retries, gateways, providers with capacity, quotas and faults, on virtual
// time. A [World] is plain data; [World.Run] plays it and hands out the attempt
// records that its emitters would send.
//
// Every decision of a caller is that of retry.Engine, of each process its own, or of
// an SDK by its published defaults. Every failure is a provider's own bytes, judged by
// retry/classify. No figure of an incident is drawn: it follows.
//
// Which worlds are worth a name is not known here (package sim), nor is what the
// records mean (package metrics).
package world
