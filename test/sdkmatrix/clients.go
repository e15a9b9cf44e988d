package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	bedrock "github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"
)

// sdk is one SDK as the matrix drives it: call makes one call to its end, with so many
// retries of the SDK's own.
type sdk struct {
	name, provider string
	counts         bool // it tells its retries in headers
	call           func(ctx context.Context, client *http.Client, url string, stream bool, retries int) error
	overload       fault
	quota          fault
}

// fault is how the provider words a failure.
type fault struct {
	status int
	body   string
	header http.Header
}

var sdks = []sdk{
	{"openai-go v3", "openai", true, callOpenAI,
		fault{503, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"server_error","code":null}}`, nil},
		fault{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, nil}},
	{"anthropic-sdk-go v2", "anthropic", true, callAnthropic,
		fault{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, nil},
		fault{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API"}}`, nil}},
	{"google.golang.org/genai", "gemini", false, callGemini,
		fault{503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, nil},
		fault{429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}`, nil}},
	{"aws-sdk-go-v2 bedrockruntime", "bedrock", true, callBedrock,
		fault{503, `{"message":"Bedrock is unable to process your request."}`, http.Header{"X-Amzn-Errortype": {"ServiceUnavailableException"}}},
		fault{400, `{"message":"Your request exceeds the service quota for your account."}`, http.Header{"X-Amzn-Errortype": {"ServiceQuotaExceededException"}}}},
}

func callOpenAI(ctx context.Context, client *http.Client, url string, stream bool, retries int) error {
	c := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("test"), openaioption.WithHTTPClient(client), openaioption.WithMaxRetries(retries))
	params := openai.ChatCompletionNewParams{Model: "gpt-5-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
	if !stream {
		_, err := c.Chat.Completions.New(ctx, params)
		return err
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(ctx, params)
	defer s.Close()
	for s.Next() {
	}
	return s.Err()
}

func callAnthropic(ctx context.Context, client *http.Client, url string, stream bool, retries int) error {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("test"), anthropicoption.WithHTTPClient(client), anthropicoption.WithMaxRetries(retries))
	params := anthropic.MessageNewParams{Model: "claude-sonnet-5", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))}}
	if !stream {
		_, err := c.Messages.New(ctx, params)
		return err
	}
	s := c.Messages.NewStreaming(ctx, params)
	defer s.Close()
	for s.Next() {
	}
	return s.Err()
}

func callGemini(ctx context.Context, client *http.Client, url string, stream bool, retries int) error {
	o := genai.HTTPOptions{BaseURL: url, APIVersion: "v1beta"}
	if retries > 0 {
		o.RetryOptions = &genai.HTTPRetryOptions{Attempts: genai.Ptr(int32(retries + 1)), InitialDelay: genai.Ptr(0.01), MaxDelay: genai.Ptr(0.02)}
	}
	c, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "test", Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: o})
	if err != nil {
		return err
	}
	if !stream {
		_, err := c.Models.GenerateContent(ctx, "gemini-3-flash", genai.Text("hi"), nil)
		return err
	}
	for _, err := range c.Models.GenerateContentStream(ctx, "gemini-3-flash", genai.Text("hi"), nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

func callBedrock(ctx context.Context, client *http.Client, url string, stream bool, retries int) error {
	c := bedrockruntime.New(bedrockruntime.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(url), HTTPClient: client,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = retries + 1
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 10 * time.Millisecond, nil })
		}),
	})
	messages := []bedrock.Message{{Role: bedrock.ConversationRoleUser, Content: []bedrock.ContentBlock{&bedrock.ContentBlockMemberText{Value: "hi"}}}}
	if !stream {
		_, err := c.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("claude"), Messages: messages})
		return err
	}
	out, err := c.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{ModelId: aws.String("claude"), Messages: messages})
	if err != nil {
		return err
	}
	stopped := false
	for e := range out.GetStream().Events() {
		if _, ok := e.(*bedrock.ConverseStreamOutputMemberMessageStop); ok {
			stopped = true
		}
	}
	if err := errors.Join(out.GetStream().Err(), out.GetStream().Close()); err != nil {
		return err
	}
	if !stopped {
		return fmt.Errorf("the stream ended without messageStop")
	}
	return nil
}
