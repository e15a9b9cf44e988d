// Package budget is the retry budget: a bucket of tokens that every send beyond
// the first pays from and that successful operations fill (docs/policy.md). With
// everything failing, a process sends at most the bucket; with some successes, at
// most the bucket and a tenth of them.
//
// [Local] belongs to one process. A fleet shares one bucket through package
// redisbudget, which lives apart so that only its users depend on a Redis client.
package budget
