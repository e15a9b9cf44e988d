// Package clock is the time that the retry engine is driven by: [Real] in
// production, [Fake] where a test or a simulation decides how late it is.
//
// Nothing else under retry reads the wall clock or sleeps, except the Redis
// client inside redisbudget, whose network time limits are the operating
// system's.
package clock
