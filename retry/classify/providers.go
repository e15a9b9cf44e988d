package classify

import "github.com/retrylens/retrylens"

// Provider is the table of one provider: only what differs from the general rules.
// A new provider is a new table, no code.
type Provider struct {
	Name    string   // as in Failure.Provider, lower case
	Aliases []string // further names

	// Codes are codes and types of this provider by their spelling in lower case
	// without '_', '-' and '.'; they come before the general ones.
	Codes map[string]Rule
	// Status replaces the class of a status where the body says nothing, or only
	// something vague.
	Status map[int]Rule
	// ModelStatus replaces Status where the words are of a model, and of no bill.
	ModelStatus map[int]Rule
	// TypeHeaders carry the error type in place of the body.
	TypeHeaders []string
	// GRPC: a small number in "code" is a gRPC status.
	GRPC bool
}

func exact(c retrylens.ErrorClass) Rule { return Rule{Class: c, Strength: Exact} }
func firm(c retrylens.ErrorClass) Rule  { return Rule{Class: c, Strength: Firm} }

var (
	quota      = exact(retrylens.ClassQuotaExhausted)
	rate       = firm(retrylens.ClassRateLimited)
	overloaded = exact(retrylens.ClassOverloaded)
	auth       = exact(retrylens.ClassAuth)
	permission = exact(retrylens.ClassPermission)
	filtered   = exact(retrylens.ClassContentFilter)
	invalid    = exact(retrylens.ClassInvalidRequest)
	tooLong    = exact(retrylens.ClassContextLength)
	notFound   = exact(retrylens.ClassNotFound)
	server     = firm(retrylens.ClassServerError)
	timedOut   = firm(retrylens.ClassTimeout)
	cancelled  = exact(retrylens.ClassCancelled)
)

// builtin are the tables of docs/classification.md, each from the provider's own
// documents.
var builtin = []Provider{
	{Name: "openai"},
	{Name: "azure_openai", Aliases: []string{"azure", "azure-openai", "azureopenai", "azure_ai", "foundry"},
		Codes: map[string]Rule{"operationnotsupported": invalid, "nocapacity": overloaded}},
	{Name: "anthropic", Aliases: []string{"claude"}},
	{Name: "gemini", Aliases: []string{"google", "google_ai_studio", "google-genai"}, GRPC: true,
		Status: map[int]Rule{499: cancelled}},
	{Name: "vertex", Aliases: []string{"vertex_ai", "vertexai", "google_vertex", "vertex-ai"}, GRPC: true,
		Status: map[int]Rule{499: cancelled}},
	{Name: "bedrock", Aliases: []string{"aws_bedrock", "aws", "bedrock_runtime", "bedrock-runtime", "sagemaker"},
		TypeHeaders: []string{"X-Amzn-Errortype"}, Status: map[int]Rule{424: server},
		Codes: map[string]Rule{"modelnotreadyexception": firm(retrylens.ClassUnavailable), "modelerrorexception": server,
			"modelstreamerrorexception": server, "resourcenotfoundexception": notFound}},
	{Name: "mistral", Codes: map[string]Rule{"1300": rate, "3505": overloaded, "3001": {}, "1000": {}, "1500": {retrylens.ClassNotFound, Exact, false},
		"1901": auth}},
	{Name: "cohere", Status: map[int]Rule{498: filtered, 499: cancelled}},
	{Name: "groq", Status: map[int]Rule{498: overloaded, 499: cancelled},
		Codes: map[string]Rule{"blockedapiaccess": quota}},
	{Name: "xai", Aliases: []string{"x-ai", "grok", "x.ai"}, GRPC: true},
	{Name: "deepseek"},
	{Name: "openrouter"},
	{Name: "together", Aliases: []string{"together_ai", "togetherai"}, Status: map[int]Rule{403: tooLong}},
	{Name: "fireworks", Aliases: []string{"fireworks_ai"}, Status: map[int]Rule{412: quota}, ModelStatus: map[int]Rule{412: notFound}},
	{Name: "vllm"}, {Name: "ollama"}, {Name: "litellm"},
	{Name: "huggingface", Aliases: []string{"huggingface_tgi", "tgi", "hf"},
		Codes: map[string]Rule{"overloaded": overloaded, "generation": server, "incompletegeneration": server}},
	{Name: "dashscope", Aliases: []string{"qwen", "alibaba"}},
	{Name: "moonshot", Aliases: []string{"kimi"}},
	{Name: "zhipu", Aliases: []string{"glm", "bigmodel", "z.ai", "zai"}, Codes: map[string]Rule{
		"1000": auth, "1001": auth, "1002": auth, "1003": auth, "1004": auth, "1110": permission, "1111": notFound, "1112": permission,
		"1113": quota, "1120": firm(retrylens.ClassUnavailable), "1210": invalid, "1211": notFound, "1212": invalid, "1213": invalid,
		"1214": invalid, "1220": permission, "1221": notFound, "1222": notFound, "1234": server, "1261": tooLong,
		"1301": filtered, "1302": rate, "1303": rate, "1304": quota, "1305": rate, "1308": quota, "1309": quota, "1310": quota, "1312": overloaded, "500": server}},
	{Name: "minimax", Codes: map[string]Rule{"1000": server, "1001": timedOut, "1002": rate, "1004": auth, "1008": quota,
		"1013": server, "1024": server, "1026": filtered, "1027": filtered, "1033": server, "1039": rate, "1041": rate,
		"1042": invalid, "2013": invalid, "2049": auth, "2056": quota}},
	{Name: "baidu", Aliases: []string{"qianfan", "ernie", "wenxin"}, Codes: map[string]Rule{"1": server, "2": firm(retrylens.ClassUnavailable),
		"3": notFound, "4": quota, "6": permission, "13": auth, "14": auth, "15": auth, "17": quota, "18": rate, "19": quota,
		"100": auth, "110": auth, "111": auth, "336000": server, "336001": invalid, "336002": invalid, "336003": invalid,
		"336100": overloaded, "336103": tooLong, "336104": invalid, "336501": rate, "336502": rate}},
	{Name: "volcengine", Aliases: []string{"ark", "doubao", "byteplus"},
		Codes: map[string]Rule{"accountoverdueerror": quota, "inferenceservicenotready": firm(retrylens.ClassUnavailable)}},
	{Name: "cloudflare", Codes: map[string]Rule{"3036": quota, "3040": overloaded, "5007": notFound, "10000": auth, "7009": auth}},
	{Name: "replicate"}, {Name: "perplexity"}, {Name: "cerebras"}, {Name: "sambanova"}, {Name: "nvidia"}, {Name: "ai21"},
}

// edgeCodes are Cloudflare's 1xxx errors, as "error code: 1015" or in its pages.
var edgeCodes = map[int]Rule{
	1015: rate, 1027: quota,
	1005: permission, 1006: permission, 1007: permission, 1008: permission, 1009: permission, 1010: permission,
	1012: permission, 1013: permission, 1020: permission, 1106: permission,
}

// grpcCodes are the google.rpc codes by number.
var grpcCodes = [17]Rule{
	1: {retrylens.ClassCancelled, Firm, false}, 2: {retrylens.ClassServerError, Vague, false},
	3: {retrylens.ClassInvalidRequest, Vague, false}, 4: {retrylens.ClassGatewayTimeout, Firm, false},
	5: {retrylens.ClassNotFound, Firm, false}, 6: {retrylens.ClassConflict, Firm, false},
	7: {retrylens.ClassPermission, Firm, false}, 8: {retrylens.ClassRateLimited, Firm, false},
	9: {retrylens.ClassInvalidRequest, Vague, false}, 10: {retrylens.ClassConflict, Firm, true},
	11: {retrylens.ClassInvalidRequest, Vague, false}, 12: {retrylens.ClassInvalidRequest, Vague, false},
	13: {retrylens.ClassServerError, Vague, false}, 14: {retrylens.ClassUnavailable, Firm, false},
	15: {retrylens.ClassServerError, Vague, false}, 16: {retrylens.ClassAuth, Firm, false},
}
