package retryhttp

import (
	"net/http"
	"testing"
)

// FuzzLayer: whatever headers an SDK sends, the count stays below what an attempt's
// number allows.
func FuzzLayer(f *testing.F) {
	f.Add("2", "ttl=20261130T120000Z; attempt=3; max=3", "1", "google-genai-sdk/1.77.0")
	f.Add("-1", "attempt=99999999999999999999", "x", "")
	f.Fuzz(func(t *testing.T, stainless, aws, grpc, google string) {
		for _, h := range []http.Header{
			{"X-Stainless-Retry-Count": {stainless}}, {"amz-sdk-request": {aws}, "amz-sdk-invocation-id": {google}},
			{"Grpc-Previous-Rpc-Attempts": {grpc}}, {"X-Goog-Api-Client": {google}}, {"X-Stainless-Retry-Count": {}},
		} {
			if l := layerOf(h); l.retries < 0 || l.retries > maxCount {
				t.Fatalf("%v: %+v", h, l)
			}
		}
	})
}

func TestLayerOf(t *testing.T) {
	for _, c := range []struct {
		h    http.Header
		want layer
	}{
		{http.Header{}, layer{}},
		{http.Header{"X-Stainless-Retry-Count": {"2"}}, layer{retries: 2, known: true, sdk: true}},
		{http.Header{"X-Stainless-Retry-Count": {"0"}, "X-Stainless-Lang": {"go"}}, layer{known: true, sdk: true}},
		{http.Header{"X-Stainless-Lang": {"js"}}, layer{sdk: true}},
		{http.Header{"Amz-Sdk-Request": {"attempt=3; max=5"}, "Amz-Sdk-Invocation-Id": {"i"}}, layer{retries: 2, known: true, sdk: true, id: "i"}},
		{http.Header{"amz-sdk-request": {"ttl=x; attempt=1; max=3"}, "amz-sdk-invocation-id": {"i"}}, layer{known: true, sdk: true, id: "i"}},
		{http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, layer{retries: 1, known: true, sdk: true}},
		{http.Header{"X-Goog-Api-Client": {"google-genai-sdk/1.77.0 gl-go/1.26"}}, layer{sdk: true}},
	} {
		if got := layerOf(c.h); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.h, got, c.want)
		}
	}
}

func TestModelOf(t *testing.T) {
	for path, want := range map[string]string{
		"/v1beta/models/gemini-3:generateContent":                           "gemini-3",
		"/v1/projects/p/locations/l/publishers/google/models/g-3:predict":   "g-3",
		"/model/anthropic.claude%3A0/converse":                              "anthropic.claude:0",
		"/model/arn:aws:bedrock:eu:1:inference-profile%2Fx/converse-stream": "arn:aws:bedrock:eu:1:inference-profile/x",
		"/openai/deployments/mine/chat/completions":                         "mine",
		"/v1/chat/completions":                                              "",
	} {
		if got := modelOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestProviderOf(t *testing.T) {
	for host, want := range map[string]string{
		"api.openai.com": "openai", "API.OpenAI.com:443": "openai", "x.openai.azure.com": "azure_openai", "api.anthropic.com": "anthropic",
		"us-central1-aiplatform.googleapis.com": "vertex", "bedrock-runtime-fips.us-east-1.amazonaws.com": "bedrock", "llm.internal:8080": "llm.internal",
		"evil-api.openai.com.example": "evil-api.openai.com.example",
	} {
		req, _ := http.NewRequest(http.MethodPost, "http://"+host+"/v1", nil)
		if got := ProviderOf(req); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
}
