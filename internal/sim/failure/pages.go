package failure

// dialect is how a provider words its failures.
func dialect(provider string) map[Kind]page {
	switch provider {
	case "anthropic":
		return anthropic
	case "gemini", "vertex":
		return gemini
	case "bedrock":
		return bedrock
	}
	return openai
}

// pageOf is a provider's page, else the edge's or the gateway's; false for what is
// no answer.
func pageOf(own map[Kind]page, k Kind) (page, bool) {
	p, ok := own[k]
	if !ok {
		p, ok = common[k]
	}
	return p, ok
}

// common are the pages of what stands before a provider.
var common = map[Kind]page{
	BadGateway: {502, "Content-Type: text/html",
		"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"},
	GatewayTimeout: {504, "Content-Type: text/html",
		"<html>\r\n<head><title>504 Gateway Time-out</title></head>\r\n<body>\r\n<center><h1>504 Gateway Time-out</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"},
	InFlight: {409, "Content-Type: application/problem+json",
		`{"type":"about:blank","title":"Conflict","status":409,"code":"idempotency_key_in_use","detail":"a request with this idempotency key is in progress"}`},
	GatewayShed: {503, "Content-Type: application/problem+json",
		`{"type":"about:blank","title":"Service Unavailable","status":503,"code":"service_unavailable","detail":"the gateway did not send the request on"}`},
}

var openai = map[Kind]page{
	Overloaded:  {503, "", `{"error":{"message":"Service temporarily unavailable. Please try again.","type":"service_unavailable","param":null,"code":null}}`},
	ServerError: {500, "", `{"error":{"message":"The server had an error while processing your request. Sorry about that! (Please include the request ID req_0f3a9c2b77d14e55 in your message.)","type":"server_error","param":null,"code":null}}`},
	RateLimited: {429, "X-Ratelimit-Limit-Requests: 500",
		`{"error":{"message":"Rate limit reached for requests per min (RPM): Limit 500, Used 500, Requested 1. Please try again in {wait}s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`},
	Quota: {429, "",
		`{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`},
	BadRequest: {400, "", `{"error":{"message":"Invalid value for 'messages[2].role'.","type":"invalid_request_error","param":"messages[2].role","code":"invalid_value"}}`},
}

var anthropic = map[Kind]page{
	Overloaded:  {529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`},
	ServerError: {500, "", `{"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`},
	RateLimited: {429, "Anthropic-Ratelimit-Requests-Limit: 50",
		`{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 50 requests per minute."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`},
	Quota: {400, "",
		`{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`},
	BadRequest: {400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.role: Input should be 'user' or 'assistant'"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`},
}

var gemini = map[Kind]page{
	Overloaded:  {503, "", `{"error":{"code":503,"message":"The service is currently unavailable.","status":"UNAVAILABLE"}}`},
	ServerError: {500, "", `{"error":{"code":500,"message":"An internal error has occurred. Please retry.","status":"INTERNAL"}}`},
	RateLimited: {429, "",
		`{"error":{"code":429,"message":"You exceeded your current rate of requests per minute.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{wait}s"}]}}`},
	Quota: {429, "",
		`{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_requests","quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}`},
	BadRequest: {400, "", `{"error":{"code":400,"message":"Please ensure that multiturn requests alternate between user and model.","status":"INVALID_ARGUMENT"}}`},
}

var bedrock = map[Kind]page{
	Overloaded:  {503, "X-Amzn-Errortype: ServiceUnavailableException", `{"message":"The service is temporarily unable to handle the request."}`},
	ServerError: {500, "X-Amzn-Errortype: InternalServerException", `{"message":"The system encountered an unexpected error during processing. Try your request again."}`},
	RateLimited: {429, "X-Amzn-Errortype: ThrottlingException", `{"message":"Too many requests, please wait before trying again."}`},
	Quota:       {400, "X-Amzn-Errortype: ServiceQuotaExceededException", `{"message":"Too many tokens per day, please wait before trying again."}`},
	BadRequest:  {400, "X-Amzn-Errortype: ValidationException", `{"message":"Malformed input request, please reformat your input and try again."}`},
}
