package classify

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processor reports the processor time of the iterations once they are done: on a
// busy machine, what wall time hides.
func processor(b *testing.B) (done func()) {
	before := cpu()
	return func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkPlainStatus(b *testing.B) {
	c := New()
	f := &Failure{Provider: "openai", Status: 503, HeadersReceived: true, Header: http.Header{
		"Content-Type": {"text/plain"}, "Date": {"Wed, 21 Oct 2026 07:28:00 GMT"}, "X-Request-Id": {"r"}}}
	b.ReportAllocs()
	defer processor(b)()
	for b.Loop() {
		c.Classify(f)
	}
}

// kilobyte is an error of 1 KB as OpenAI words them.
func kilobyte(n int) []byte {
	head := `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 3082. Please try again in 9.816s. Visit https://platform.openai.com/account/rate-limits to learn more. `
	tail := `","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
	fill := "The account has been sending more than it may send and the service asks the caller to send less of it. "
	for len(head)+len(tail)+len(fill) < n {
		head += fill
	}
	return []byte(head + strings.Repeat(".", max(0, n-len(head)-len(tail))) + tail)
}

func BenchmarkJSONError(b *testing.B) {
	for name, n := range map[string]int{"300B": 300, "1KB": 1024, "8KB": 8 << 10, "64KB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			c := New()
			f := &Failure{Provider: "openai", Status: 429, Header: http.Header{"Content-Type": {"application/json"}}, Body: kilobyte(n)}
			b.SetBytes(int64(len(f.Body)))
			b.ReportAllocs()
			defer processor(b)()
			for b.Loop() {
				c.Classify(f)
			}
		})
	}
}

// BenchmarkDetailedError is 1 KB as Google sends it: little prose, many members.
func BenchmarkDetailedError(b *testing.B) {
	c := New()
	for _, k := range readCases(b, "failures.jsonl") {
		if k.ID != "gemini-429-per-minute-retryinfo" {
			continue
		}
		f := k.Failure()
		b.SetBytes(int64(len(f.Body)))
		b.ReportAllocs()
		defer processor(b)()
		for b.Loop() {
			c.Classify(f)
		}
	}
}

// BenchmarkCorpus is the mean over every case of the corpus.
func BenchmarkCorpus(b *testing.B) {
	c := New()
	var fs []*Failure
	for _, k := range readCases(b, "failures.jsonl") {
		fs = append(fs, k.Failure())
	}
	b.ReportAllocs()
	defer processor(b)()
	i := 0
	for b.Loop() {
		c.Classify(fs[i%len(fs)])
		i++
	}
}

// BenchmarkBaseline only decodes the same 1 KB with encoding/json, into the fields
// that an SDK reads.
func BenchmarkBaseline(b *testing.B) {
	body := kilobyte(1024)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	defer processor(b)()
	for b.Loop() {
		var v struct {
			Error struct {
				Message, Type string
				Param, Code   any
			}
		}
		if err := json.Unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}
