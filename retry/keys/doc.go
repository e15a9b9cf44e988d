// Package keys makes idempotency keys and keeps them.
//
// A key names one intent of a caller. It is made once, before the first try, and is the
// same for every try, in this process or after a restart; it is never made per attempt
// and never taken from what a model wrote. [New] makes a random one, to be kept with the
// intent (see [Obtain]); [Derive] computes one from what makes the intent what it is;
// [Step] is that of a step of an agent's run.
//
// Not here: sending keys (package retryhttp), enforcing them (the gateway).
package keys
