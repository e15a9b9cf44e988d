// Package failure holds what providers send when they fail: real statuses, headers
// and bodies of OpenAI, Anthropic, Gemini and Bedrock, and what the network does
// instead of an answer. What a failure means is asked of retry/classify, with these
// very bytes and never by hand, once for each distinct answer.
//
// When and how often something fails is not decided here.
package failure
