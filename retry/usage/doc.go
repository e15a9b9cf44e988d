// Package usage reads, in passing, what an answer of an LLM provider says about
// itself: tokens used, model, how it ended, whether content came.
//
// A [Reader] is fed the bytes of the body as they pass; it keeps none of them but the
// event that tells of a failure, buffers nothing, allocates nothing per chunk and never
// fails: what it cannot read it passes over. It reads JSON documents of any length,
// server-sent events, JSON lines and the binary event stream of Amazon Bedrock, and
// the shapes of OpenAI (chat, responses), Anthropic, Gemini, Bedrock, Cohere, Ollama and
// those who follow them, told by their members alone, not by the provider's name.
//
// Not here: whether a failure is worth another try (package classify), HTTP, prices.
package usage
