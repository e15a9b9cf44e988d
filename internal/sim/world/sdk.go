package world

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/sim/des"
	"github.com/retrylens/retrylens/internal/sim/failure"
)

// SDK is how a provider's library retries by itself, unseen by whoever calls it.
type SDK struct {
	Retries       int           // after the first send
	Base, Cap     time.Duration // Base·2^n, at most Cap; Cap 0 = no cap
	From          float64       // the backoff is drawn between this share of it and all
	MaxRetryAfter time.Duration // an asked wait up to this is obeyed, others count as none; 0 = none is
	Retried       func(*failure.Reply) bool
}

// SDKs by name, with the defaults of their sources: openai-python 3.3.1
// _base_client.py, anthropic-sdk-python 0.121.0 _base_client.py, botocore 1.43.67
// retryhandler.py (legacy mode), cohere-python core/http_client.py; python-genai
// 2.19.0 retries nothing unless asked to.
var SDKs = map[string]SDK{
	"openai":    {Retries: 2, Base: 500 * time.Millisecond, Cap: 8 * time.Second, From: 0.75, MaxRetryAfter: 2 * time.Minute, Retried: stainless},
	"anthropic": {Retries: 2, Base: 500 * time.Millisecond, Cap: 8 * time.Second, From: 0.75, MaxRetryAfter: time.Minute, Retried: stainless},
	"botocore":  {Retries: 4, Base: time.Second, From: 0, Retried: botocore},
	"cohere":    {Retries: 2, Base: time.Second, Cap: time.Minute, From: 0.9, MaxRetryAfter: time.Minute, Retried: stainless},
	"genai":     {Retried: func(*failure.Reply) bool { return false }},
}

// stainless: 408, 409, 429, 5xx and everything without an answer.
func stainless(r *failure.Reply) bool {
	switch {
	case r.Kind == failure.Broken:
		return false
	case r.Status == 0, r.Status == 408, r.Status == 409, r.Status == 429:
		return true
	}
	return r.Status >= 500
}

// botocore in legacy mode: 429, 500, 502, 503, 504, 509, throttling, connections.
func botocore(r *failure.Reply) bool {
	switch r.Status {
	case 0, 429, 500, 502, 503, 504, 509:
		return r.Kind != failure.Broken
	}
	return r.Verdict.Class == retrylens.ClassRateLimited
}

// sdk is that layer between a caller and the next one.
type sdk struct {
	SDK
	events *des.Queue
	rand   *rand.Rand
	next   upstream
}

func (s *sdk) send(c *call) {
	try := &sdkCall{sdk: s, outer: c, sentAt: s.events.Now(), patience: c.patience}
	try.inner = call{intent: c.intent, cause: c.cause, back: try}
	try.send()
}

// sdkCall is one call of the SDK: several requests at most.
type sdkCall struct {
	sdk      *sdk
	outer    *call
	inner    call
	sentAt   time.Duration
	patience time.Duration
	tries    int // requests before the present one
	calls    int // what they came to below
}

func (t *sdkCall) send() {
	t.inner.patience = t.patience - (t.sdk.events.Now() - t.sentAt)
	if t.tries > 0 {
		t.inner.cause = retrylens.CauseSDK
	}
	t.sdk.next.send(&t.inner)
}

// Fire as in des.Handler: the backoff is over.
func (t *sdkCall) Fire(int) { t.send() }

func (t *sdkCall) ended(c *call) {
	t.calls += c.reply.calls
	if delay, again := t.again(); again {
		t.tries++
		t.sdk.events.After(delay, t, 0)
		return
	}
	r := c.reply
	r.calls = t.calls
	if r.ttfb >= 0 {
		r.ttfb = t.sdk.events.Now() - t.sentAt
		if t.tries == 0 {
			r.ttfb = c.reply.ttfb
		}
	}
	t.outer.reply = r
	t.outer.back.ended(t.outer)
}

// again tells whether the SDK sends once more, and after which wait; not beyond its
// caller's patience.
func (t *sdkCall) again() (time.Duration, bool) {
	r, s := t.inner.reply.failure, t.sdk
	if r == nil || t.tries >= s.Retries || !s.Retried(r) {
		return 0, false
	}
	delay := s.backoff(t.tries)
	if asked := r.RetryAfter; asked > 0 && asked <= s.MaxRetryAfter {
		delay = asked
	}
	return delay, s.events.Now()-t.sentAt+delay < t.patience
}

func (s *sdk) backoff(n int) time.Duration {
	d := float64(s.Base) * math.Pow(2, float64(n))
	if s.Cap > 0 {
		d = min(d, float64(s.Cap))
	}
	return time.Duration(d * (s.From + (1-s.From)*s.rand.Float64()))
}
