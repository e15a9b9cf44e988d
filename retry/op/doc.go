// Package op is the logical operation on its way through a program: one intent of a
// caller, however many tries. It travels in the context, from where the intent is
// known to where the tries are made (package retryhttp), through SDKs that know nothing
// of it.
//
// Not here: making keys (package keys), retrying (package retry), HTTP.
package op
