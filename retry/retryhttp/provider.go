package retryhttp

import (
	"net/http"
	"net/url"
	"strings"
)

// hosts of providers by the end of their names; the longer end stands first.
var hosts = []struct{ suffix, provider string }{
	{"openai.azure.com", "azure_openai"}, {"cognitiveservices.azure.com", "azure_openai"}, {"services.ai.azure.com", "azure_openai"},
	{"api.openai.com", "openai"}, {"api.anthropic.com", "anthropic"}, {"generativelanguage.googleapis.com", "gemini"},
	{"aiplatform.googleapis.com", "vertex"}, {"api.mistral.ai", "mistral"}, {"api.cohere.com", "cohere"}, {"api.cohere.ai", "cohere"},
	{"api.groq.com", "groq"}, {"api.x.ai", "xai"}, {"api.deepseek.com", "deepseek"}, {"openrouter.ai", "openrouter"},
	{"api.together.xyz", "together"}, {"api.together.ai", "together"}, {"api.fireworks.ai", "fireworks"}, {"api.perplexity.ai", "perplexity"},
	{"api.cerebras.ai", "cerebras"}, {"api.sambanova.ai", "sambanova"}, {"integrate.api.nvidia.com", "nvidia"}, {"api.moonshot.ai", "moonshot"},
	{"router.huggingface.co", "huggingface"}, {"dashscope.aliyuncs.com", "dashscope"},
}

// ProviderOf names the provider of a request by its host: known hosts, Bedrock's in every
// region, else the host's own name.
func ProviderOf(r *http.Request) string {
	host := r.URL.Host
	for _, h := range hosts {
		if host == h.suffix {
			return h.provider
		}
	}
	host = strings.ToLower(r.URL.Hostname())
	for _, h := range hosts {
		if host == h.suffix || strings.HasSuffix(host, "."+h.suffix) || h.provider == "vertex" && strings.HasSuffix(host, "-"+h.suffix) {
			return h.provider
		}
	}
	if strings.HasPrefix(host, "bedrock-runtime") && strings.Contains(host, ".amazonaws.com") {
		return "bedrock"
	}
	return host
}

// provider of the request: through a gateway it is the first part of the path.
func (t *Transport) provider(r *http.Request, gateway bool) string {
	name := ""
	if gateway {
		name, _, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	}
	if name == "" {
		name = t.o.Provider(r)
	}
	if name == "" {
		return "unknown"
	}
	return strings.ToLower(name)
}

// modelOf finds the model in a path: /models/NAME:method, /model/NAME/method,
// /deployments/NAME/method; "" where the body names it.
func modelOf(path string) string {
	for _, part := range []string{"/models/", "/model/", "/deployments/"} {
		_, rest, ok := strings.Cut(path, part)
		if !ok {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest = rest[:i]
		}
		if part == "/models/" {
			rest, _, _ = strings.Cut(rest, ":")
		}
		if name, err := url.PathUnescape(rest); err == nil {
			return name
		}
		return rest
	}
	return ""
}

// streamPath tells paths whose answer is a stream, whatever the body says.
func streamPath(path string) bool {
	return strings.HasSuffix(path, ":streamGenerateContent") || strings.HasSuffix(path, ":streamRawPredict") ||
		strings.HasSuffix(path, "/converse-stream") || strings.HasSuffix(path, "/invoke-with-response-stream")
}

// requestIDs are the headers in which providers name a request, most telling first.
var requestIDs = []string{
	"X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Apim-Request-Id", "X-Generation-Id", "Mistral-Correlation-Id",
	"X-Ds-Trace-Id", "X-Debug-Trace-Id", "X-Ms-Request-Id", "X-Goog-Request-Id", "Cf-Ray",
}

func requestID(h http.Header) string {
	for _, k := range requestIDs {
		if v := h[k]; len(v) > 0 && v[0] != "" {
			return v[0]
		}
	}
	return ""
}
