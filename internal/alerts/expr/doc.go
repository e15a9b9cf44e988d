// Package expr reads and evaluates the conditions of alert rules: comparisons of
// figures over windows, such as
//
//	amplification[5m] > 1.2 and amplification[1m] > 1.2 and operations[5m] >= 50
//
// A figure without value makes a comparison unknown, and unknown goes through and, or
// and not as in Kleene's logic: it is true or false only where the other side decides.
// It knows figures by name only; what they are is the caller's.
package expr
