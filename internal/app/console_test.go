package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/test/promtest"
)

func TestConsoleOptionsAreChecked(t *testing.T) {
	if _, err := NewConsole(ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]ConsoleOptions{
		"--top-series":   {TopSeries: -1},
		"add --insecure": {Listen: ":8481"},
		"--store":        {Store: StoreOptions{Address: "gopher://x"}},
	} {
		_, err := NewConsole(o)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// console runs analyze serve until the test ends and returns its address.
func console(t *testing.T, o ConsoleOptions) string {
	t.Helper()
	addr := make(chan net.Addr, 1)
	o.Listen, o.Listening = "127.0.0.1:0", func(a net.Addr) { addr <- a }
	c, err := NewConsole(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("analyze serve ended with %v", err)
		}
	})
	select {
	case a := <-addr:
		return "http://" + a.String()
	case err := <-done:
		t.Fatal(err)
	}
	return ""
}

// storeOf is an embedded store that holds the attempts.
func storeOf(t *testing.T, attempts []retrylens.Attempt) StoreOptions {
	t.Helper()
	t.Setenv("RETRYLENS_ENGINE", enginetest.Binary(t))
	dir := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() { enginetest.Stop(t, dir) })
	o := StoreOptions{Address: "embedded:" + dir}
	s, err := OpenStore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.writable(t.Context(), true), s.Write(t.Context(), attempts), s.Close()); err != nil {
		t.Fatal(err)
	}
	return o
}

// lately is a history that ended just now.
func lately(now time.Time) []retrylens.Attempt {
	attempts := histories.Generate(21, 2500)
	by := now.Sub(histories.Base.Add(time.Hour)).Truncate(time.Minute)
	for i := range attempts {
		a := &attempts[i]
		a.StartedAt, a.OperationStartedAt = a.StartedAt.Add(by), a.OperationStartedAt.Add(by)
	}
	return attempts
}

func fetch(t *testing.T, address, host string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestConsoleServesItsStore: the API answers as the reference fold does, promtool has
// nothing to say against /metrics, and a real Prometheus scrapes and queries it.
func TestConsoleServesItsStore(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	attempts := lately(now)
	url := console(t, ConsoleOptions{Store: storeOf(t, attempts)})
	promtest.Until(t, time.Minute, "ready", func() error { return promtest.Get(t.Context(), url+"/healthz", nil) })
	if resp, body := fetch(t, url+"/readyz", ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	}
	sameAsTheFold(t, url, attempts, now)
	promtest.Until(t, time.Minute, "figures in /metrics", func() error {
		if _, body := fetch(t, url+"/metrics", ""); !strings.Contains(body, "retrylens_amplification{") {
			return errors.New("none yet")
		}
		return nil
	})
	cmd := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	_, metricsPage := fetch(t, url+"/metrics", "")
	cmd.Stdin = strings.NewReader(metricsPage)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics (of the package prometheus): %v\n%s", err, out)
	}
	scraped(t, url)
}

func sameAsTheFold(t *testing.T, url string, attempts []retrylens.Attempt, now time.Time) {
	t.Helper()
	q := metrics.Query{From: now.Add(-3 * time.Hour), To: now, AsOf: now, GroupBy: []metrics.Dimension{metrics.DimTenant, metrics.DimProvider}}
	want, err := metrics.Fold(attempts, q)
	if err != nil {
		t.Fatal(err)
	}
	resp, body := fetch(t, fmt.Sprintf("%s/api/v1/report?from=%d&to=%d&as_of=%d&group=tenant,provider", url, q.From.Unix(), q.To.Unix(), q.AsOf.Unix()), "")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	}
	var got struct{ Rows []map[string]any }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != len(want.Rows) || len(want.Rows) == 0 {
		t.Fatalf("%d rows, want %d", len(got.Rows), len(want.Rows))
	}
	for i, row := range want.Rows {
		g := got.Rows[i]
		if g["tenant"] != row.Dims[0] || g["operations"] != float64(row.Operations) || g["upstream_calls"] != float64(row.UpstreamCalls) || g["orphaned_cost_usd"] != row.OrphanedCostUSD.String() {
			t.Errorf("row %d: %.200v, want %v %d", i, g, row.Dims, row.Operations)
		}
	}
}

// scraped asks a real Prometheus for the ratio of sums that docs/api.md advises.
func scraped(t *testing.T, url string) {
	t.Helper()
	p := promtest.Start(t, fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: retrylens
    static_configs: [{targets: [%q]}]
`, strings.TrimPrefix(url, "http://")), nil)
	promtest.Until(t, time.Minute, "amplification in Prometheus", func() error {
		got, err := p.Query(t.Context(), `sum(retrylens_upstream_calls{window="1h"}) / sum(retrylens_operations{window="1h"})`)
		if err == nil && (len(got) != 1 || got[0].Value <= 0) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
	got, err := p.Query(t.Context(), `retrylens_latency_seconds{window="1h",quantile="0.99"}`)
	if err != nil || len(got) == 0 || got[0].Labels["provider"] == "" {
		t.Errorf("%v %v", got, err)
	}
}

// TestConsoleAnswersToItsOwnNameOnly: a page from elsewhere whose name was pointed here
// reads nothing.
func TestConsoleAnswersToItsOwnNameOnly(t *testing.T) {
	away := StoreOptions{Address: "clickhouse://127.0.0.1:1/none"}
	url := console(t, ConsoleOptions{Store: away})
	port := url[strings.LastIndex(url, ":"):]
	for host, want := range map[string]int{
		"": http.StatusOK, "localhost" + port: http.StatusOK, "[::1]" + port: http.StatusOK, "127.0.0.1": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example" + port: http.StatusMisdirectedRequest, "127.0.0.1.evil.example": http.StatusMisdirectedRequest,
	} {
		if resp, _ := fetch(t, url+"/healthz", host); resp.StatusCode != want {
			t.Errorf("Host %q: %s, want %d", host, resp.Status, want)
		}
	}
}

// TestConsoleStartsWithoutItsStore, says so, and tells no client what is inside.
func TestConsoleStartsWithoutItsStore(t *testing.T) {
	url := console(t, ConsoleOptions{Store: StoreOptions{Address: "clickhouse://user:hunter2@127.0.0.1:1/none"}})
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/metrics": http.StatusOK,
		"/api/v1/report": http.StatusServiceUnavailable, "/api/v1/status": http.StatusServiceUnavailable, "/api/v1/openapi.yaml": http.StatusOK,
	} {
		resp, body := fetch(t, url+path, "")
		if resp.StatusCode != want || strings.Contains(body, "hunter2") || strings.Contains(body, "127.0.0.1:1/") {
			t.Errorf("%s: %s %.200s", path, resp.Status, body)
		}
		if want == http.StatusServiceUnavailable && path != "/readyz" && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s has no Retry-After", path)
		}
	}
}
