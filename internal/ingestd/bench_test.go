package ingestd_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/spool"
)

// nowhere takes batches and forgets them.
type nowhere struct{}

func (nowhere) Append(*spool.Batch) error { return nil }
func (nowhere) Full() bool                { return false }
func (nowhere) Stats() spool.Stats        { return spool.Stats{} }

// BenchmarkBody is the way of a body of 500 records to the spool, without socket
// and disk; "decode" is what of it is decoding alone.
func BenchmarkBody(b *testing.B) {
	all := histories.Generate(1, 500)[:500]
	var body []byte
	for i := range all {
		body = append(all[i].AppendJSON(body), '\n')
	}
	h, err := ingestd.New(ingestd.Options{
		Spool: nowhere{}, Metrics: ingestd.NewMetrics(nowhere{}.Stats),
		Authenticate: func(string) (tokens.Principal, bool) { return tokens.NewPrincipal("*"), true },
		Limits:       func() retrylens.Limits { return retrylens.Limits{Now: histories.Now} },
		StoreReady:   func(context.Context) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	routes := h.Routes()
	for name, text := range map[string][]byte{"plain": body, "gzip": gz(string(body)).Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/v1/attempts", io.NopCloser(bytes.NewReader(text)))
				req.Header.Set("Content-Type", "application/x-ndjson")
				if name == "gzip" {
					req.Header.Set("Content-Encoding", "gzip")
				}
				w := httptest.NewRecorder()
				routes.ServeHTTP(w, req)
				if w.Code != http.StatusAccepted {
					b.Fatal(w.Body.String())
				}
			}
			b.ReportMetric(float64(b.Elapsed()/time.Duration(b.N))/500, "ns/record")
		})
	}
}
