package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/ingestd"
	"github.com/retrylens/retrylens/internal/ingestd/drain"
	"github.com/retrylens/retrylens/internal/ingestd/tokens"
	"github.com/retrylens/retrylens/internal/spool"
)

// httpWays of sending the same lines to the ingest service.
var httpWays = []struct {
	name string
	send func(t *testing.T, s *service, lines [][]byte)
}{
	{"whole", func(t *testing.T, s *service, lines [][]byte) { s.post(t, lines, "") }},
	{"pieces_of_100", func(t *testing.T, s *service, lines [][]byte) {
		for piece := range slices.Chunk(lines, 100) {
			s.post(t, piece, "")
		}
	}},
	{"reversed", func(t *testing.T, s *service, lines [][]byte) {
		backwards := slices.Clone(lines)
		slices.Reverse(backwards)
		s.post(t, backwards, "")
	}},
	{"eight_senders", sendByEight},
	{"gzip", func(t *testing.T, s *service, lines [][]byte) { s.post(t, lines, "gzip") }},
	{"zstd", func(t *testing.T, s *service, lines [][]byte) { s.post(t, lines, "zstd") }},
}

func sendByEight(t *testing.T, s *service, lines [][]byte) {
	var wg sync.WaitGroup
	for i := range 8 {
		part := lines[i*len(lines)/9 : (i+2)*len(lines)/9] // neighbours overlap by half
		wg.Go(func() {
			for piece := range slices.Chunk(part, 250) {
				s.post(t, piece, []string{"", "gzip", "zstd"}[i%3])
			}
		})
	}
	wg.Wait()
}

// The golden attempts, sent over HTTP and drained into the real engine in every
// way that must not matter, give the golden reports.
func TestGoldenThroughHTTP(t *testing.T) {
	lines := goldenLines(t)
	e := enginetest.Start(t)
	for i, way := range httpWays {
		t.Run(way.name, func(t *testing.T) {
			store := migrated(t, clickhouse.Config{URL: address(t, e, fmt.Sprint("retrylens_http_", i)), Dial: e.DialTCP})
			s := serve(t, store, asOf)
			way.send(t, s, lines)
			s.drain(t)
			if equal := compareAll(t, store); equal != len(goldenQueries) {
				t.Errorf("%d of %d reports are equal", equal, len(goldenQueries))
			}
		})
	}
}

// service is the ingest service on a store.
type service struct {
	server *httptest.Server
	spool  *spool.Spool
	d      *drain.Drainer
}

// serve starts a service whose clock stands at now.
func serve(t *testing.T, store *clickhouse.Store, now time.Time) *service {
	t.Helper()
	dir := t.TempDir()
	sp, err := spool.Open(spool.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	metrics := ingestd.NewMetrics(sp.Stats)
	h, err := ingestd.New(ingestd.Options{
		Spool: sp, Metrics: metrics, StoreReady: store.SchemaReady,
		Authenticate: func(string) (tokens.Principal, bool) { return tokens.NewPrincipal(tokens.AnyTenant), true },
		Limits:       func() retrylens.Limits { return retrylens.Limits{Now: now, Retention: 400 * 24 * time.Hour} },
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := drain.New(drain.Options{
		Spool: sp, Sink: store, Observer: metrics, DeadLetters: drain.NewDeadLetters(dir),
		Classify: func(err error) drain.Kind { return drain.Kind(clickhouse.Classify(err)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	s := &service{httptest.NewServer(h.Routes()), sp, d}
	t.Cleanup(func() { s.server.Close(); cancel(); <-done; sp.Close() })
	return s
}

func (s *service) post(t *testing.T, lines [][]byte, encoding string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/v1/attempts", compressed(t, lines, encoding))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := s.server.Client().Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var answer struct{ Accepted int }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Accepted != len(lines) {
		t.Errorf("%d lines: %d %s", len(lines), resp.StatusCode, text)
	}
}

func compressed(t *testing.T, lines [][]byte, encoding string) io.Reader {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	default:
		return bytes.NewReader(bytes.Join(lines, []byte("\n")))
	}
	if _, err := w.Write(bytes.Join(lines, []byte("\n"))); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return &b
}

func (s *service) drain(t *testing.T) {
	t.Helper()
	s.spool.Seal()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.d.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}
