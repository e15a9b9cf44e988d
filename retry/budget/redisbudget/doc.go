// Package redisbudget is a retry budget that a fleet shares through Redis: ten
// services with 100 tokens each would be a storm of 1,000.
//
// One Lua script does everything, on one key, in thousandths of a token; so it is
// one round trip for a retry and atomic between processes. Successes are collected
// in process and go along with the next retry, or by themselves once they make up a
// token.
package redisbudget
