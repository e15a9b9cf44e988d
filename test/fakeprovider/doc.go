// Package fakeprovider simulates LLM providers on real sockets, for tests: OpenAI chat
// and responses, Anthropic messages, Gemini, Bedrock Converse, each in its own wire
// format, whole or streamed, told by the path of the request. A script says how each
// request is served; the server keeps its own count of requests and of the tokens that it
// reported, to be compared with what others recorded.
package fakeprovider
