package retryhttp

import (
	"container/list"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrylens/retrylens/retry/op"
)

// layer is what the headers tell of a retry layer above: an SDK that was not told to
// leave retries to us.
type layer struct {
	retries int    // of the SDK before this call; 0 = its first
	id      string // names the SDK's call, the same for all of its tries; "" = it tells none
	known   bool   // it counts its tries at all
	sdk     bool   // it is an SDK, whether it counts or not
}

// layerOf reads the headers of Stainless SDKs (openai, anthropic, groq, together, …),
// AWS SDKs, gRPC and Google's.
func layerOf(h http.Header) (l layer) {
	if v := first(h, "X-Stainless-Retry-Count"); v != "" {
		l.retries, l.known, l.sdk = count(v), true, true
		return l
	}
	if v := or(first(h, "Amz-Sdk-Request"), first(h, "amz-sdk-request")); v != "" { // as AWS spells it
		l.known, l.sdk, l.id = true, true, or(first(h, "Amz-Sdk-Invocation-Id"), first(h, "amz-sdk-invocation-id"))
		for part := range strings.SplitSeq(v, ";") {
			if name, n, ok := strings.Cut(strings.TrimSpace(part), "="); ok && name == "attempt" {
				l.retries = max(0, count(n)-1)
			}
		}
		return l
	}
	if v := first(h, "Grpc-Previous-Rpc-Attempts"); v != "" {
		l.retries, l.known, l.sdk = count(v), true, true
		return l
	}
	l.sdk = first(h, "X-Stainless-Lang") != "" || strings.Contains(first(h, "X-Goog-Api-Client"), "google-genai-sdk")
	return l
}

func first(h http.Header, key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// count of tries as an SDK sends it; what is no sensible count is none.
func count(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > maxCount {
		return 0
	}
	return n
}

const maxCount = 50 // position of an attempt is below 100

// layers finds the operation again to which a retry of an SDK belongs where the context
// names none: by the id of the SDK's call, else by equal request and credential of a call
// that failed a while ago. It forgets after a while.
type layers struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	order list.List // of *waiting, oldest first
}

type waiting struct {
	key   string
	h     *op.Handle
	since time.Time
}

const (
	maxWaiting  = 4096
	waitingTime = 10 * time.Minute
)

// put remembers that a call of h failed and may come again under key.
func (l *layers) put(key string, h *op.Handle, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[string]*list.Element{}
	}
	if e := l.byKey[key]; e != nil {
		l.drop(e)
	}
	l.byKey[key] = l.order.PushBack(&waiting{key, h, now})
	for e := l.order.Front(); e != nil && (l.order.Len() > maxWaiting || now.Sub(e.Value.(*waiting).since) > waitingTime); e = l.order.Front() {
		l.drop(e)
	}
}

// take finds and forgets; nil if there is none.
func (l *layers) take(key string, now time.Time) *op.Handle {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byKey[key]
	if e == nil {
		return nil
	}
	w := e.Value.(*waiting)
	l.drop(e)
	if now.Sub(w.since) > waitingTime {
		return nil
	}
	return w.h
}

func (l *layers) drop(e *list.Element) {
	delete(l.byKey, e.Value.(*waiting).key)
	l.order.Remove(e)
}

// layerKey under which the try with that count of retries of the same call is found.
func (c *call) layerKey(retries int) string {
	if c.layer.id != "" {
		return "id " + c.layer.id
	}
	sum := sha256.New()
	for _, s := range []string{c.req.Method, c.req.URL.String(), credential(c.req.Header), strconv.Itoa(retries)} {
		sum.Write([]byte(s))
		sum.Write([]byte{0})
	}
	sum.Write(c.body.bytes)
	return string(sum.Sum(nil))
}

// credential is what tells callers apart; it is hashed and never kept.
func credential(h http.Header) string {
	for _, k := range credentials {
		if v := first(h, k); v != "" {
			return v
		}
	}
	return ""
}

var credentials = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}
