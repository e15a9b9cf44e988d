// Package retrylens is the domain of Retrylens: one [Attempt] per try at
// serving one logical operation of an LLM caller, its enums, its exact money
// and the rules a record must keep (the attempt record, wire format version 1,
// docs/record.md).
//
// It imports the standard library only and knows nothing of storage, transport
// or figures; everything else in this module depends on it, never the other way
// round.
package retrylens
