// Package arith does the field's arithmetic of retries: what a storm of clients
// does, what a policy buys in an outage, what a timeout, a hedge and a layer too
// many cost. It holds pure functions and small simulations on virtual time; the same
// options give the same figures. Money is exact.
//
// What is not here: stores, files, clocks, command lines, the simulated fleet
// (internal/sim).
package arith
