// Package rulestest tests alert rules: a script makes attempts, says what the detector and the
// service say, and which alerts there must be at which time. Time is the script's, so
// hours pass at once.
package rulestest
