// Package histories generates hostile but valid attempt histories for property
// tests: the same seed gives the same history. Every attempt passes
// [retrylens.Attempt.Validate] as of [Now].
package histories
