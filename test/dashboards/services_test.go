package dashboards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/test/promtest"
)

// patience is how long something may take on a machine that has much else to do.
const patience = 3 * time.Minute

// services are ingest serve, analyze serve and a Prometheus that scrapes both.
type services struct {
	dir, store      string
	ingest, analyze string // addresses
	prometheus      *promtest.Prometheus
	attempts        []retrylens.Attempt // what was sent
}

// startServices sends recent attempts, half of them while they are scraped, and waits until
// Prometheus has the figures of all.
func startServices(t *testing.T) *services {
	t.Helper()
	t.Setenv("RETRYLENS_ENGINE", enginetest.Binary(t))
	s := &services{dir: t.TempDir(), ingest: promtest.FreeAddr(t), analyze: promtest.FreeAddr(t), attempts: recent(t)}
	data := filepath.Join(s.dir, "data")
	t.Cleanup(func() { enginetest.Stop(t, data) })
	s.store = "embedded:" + data
	s.build(t)
	s.run(t, "ingest", "serve", "--store", s.store, "--listen", s.ingest, "--spool", filepath.Join(s.dir, "spool"), "--insecure")
	s.prometheus = promtest.Start(t, fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs:
  - {job_name: ingest, static_configs: [{targets: [%q]}]}
  - {job_name: analyze, scrape_interval: 1s, scrape_timeout: 1s, static_configs: [{targets: [%q]}]}
`, s.ingest, s.analyze), nil)
	half := len(s.attempts) / 2
	s.send(t, s.attempts[:half])
	s.await(t, "retrylens_ingest_inserted_total", float64(half))
	s.send(t, s.attempts[half:])
	s.refused(t)
	s.await(t, "retrylens_ingest_inserted_total", float64(len(s.attempts)))
	s.run(t, "analyze", "serve", "--store", s.store, "--listen", s.analyze)
	report, err := metrics.Fold(s.attempts, metrics.Query{AsOf: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, `sum(retrylens_operations{window="1h"})`, float64(report.Rows[0].Operations))
	for _, counter := range []string{"retrylens_ingest_rejected_total", "retrylens_snapshot_failures_total"} { // a rate needs two samples
		s.await(t, "min(count_over_time("+counter+"[5m])) >= bool 2", 1)
	}
	return s
}

// recent are golden attempts of 40 minutes, as if they ended just now, and those of hostile
// names that a sender can have.
func recent(t *testing.T) []retrylens.Attempt {
	t.Helper()
	from, to := midnight.Add(time.Hour), midnight.Add(100*time.Minute)
	var out []retrylens.Attempt
	for _, a := range append(golden(t), hostileAttempts()...) {
		if !a.OperationStartedAt.Before(from) && a.OperationStartedAt.Before(to) {
			out = append(out, a)
		}
	}
	shift := time.Since(to).Truncate(time.Second) - 5*time.Second
	for i := range out {
		out[i].OperationStartedAt, out[i].StartedAt = out[i].OperationStartedAt.Add(shift), out[i].StartedAt.Add(shift)
	}
	limits := retrylens.Limits{Now: time.Now(), Retention: 24 * time.Hour}
	return slices.DeleteFunc(out, func(a retrylens.Attempt) bool { return a.Validate(limits) != nil }) // names that ingest serve refuses
}

func (s *services) build(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.dir+"/", "../../cmd/ingest", "../../cmd/analyze").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (s *services) run(t *testing.T, name string, args ...string) {
	t.Helper()
	promtest.Run(t, exec.Command(filepath.Join(s.dir, name), args...), filepath.Join(s.dir, name+".log"))
}

// send posts attempts once the service listens.
func (s *services) send(t *testing.T, attempts []retrylens.Attempt) {
	t.Helper()
	for part := range slices.Chunk(attempts, 500) {
		var lines []byte
		for i := range part {
			lines = append(part[i].AppendJSON(lines), '\n')
		}
		promtest.Until(t, patience, "ingest serve takes records", func() error { return s.post(t.Context(), lines, http.StatusAccepted) })
	}
}

// refused sends a line that is none.
func (s *services) refused(t *testing.T) {
	t.Helper()
	if err := s.post(t.Context(), []byte("{}\n"), http.StatusAccepted); err == nil {
		t.Fatal("a bad line was accepted")
	}
}

func (s *services) post(ctx context.Context, lines []byte, want int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.ingest+"/v1/attempts", bytes.NewReader(lines))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != want || bytes.Contains(text, []byte(`"accepted":0`)) {
		return errors.Join(err, fmt.Errorf("%s: %.300s", resp.Status, text))
	}
	return err
}

// await waits until Prometheus has a value.
func (s *services) await(t *testing.T, expr string, want float64) {
	t.Helper()
	promtest.Until(t, patience, fmt.Sprintf("%s is %v", expr, want), func() error {
		got, err := s.prometheus.Query(context.WithoutCancel(t.Context()), expr)
		if err == nil && (len(got) != 1 || got[0].Value != want) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
}

// metricName are the metrics of our services, and of their processes.
var metricName = regexp.MustCompile(`\b(?:retrylens|process|go)_\w+`)

// exposed are the labels of the metrics that the services expose, by name. Those that appear
// only when something happens are in the source.
func (s *services) exposed(t *testing.T) map[string]map[string]bool {
	t.Helper()
	var answer struct{ Data []map[string]string }
	err := promtest.Get(t.Context(), s.prometheus.URL+`/api/v1/series?match[]=`+`%7B__name__%3D~%22retrylens_.%2B%7Cprocess_.%2B%7Cgo_.%2B%22%7D`, &answer)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, series := range answer.Data {
		name := series["__name__"]
		if out[name] == nil {
			out[name] = map[string]bool{}
		}
		for label := range series {
			out[name][label] = true
		}
	}
	for name, from := range seldom {
		if source, err := os.ReadFile(from.file); err != nil || !bytes.Contains(source, []byte(from.declared)) {
			t.Errorf("%s does not declare %s by %s: %v", from.file, name, from.declared, err)
		}
		if out[name] == nil {
			out[name] = map[string]bool{}
		}
		for _, l := range append(from.labels, "job", "instance") {
			out[name][l] = true
		}
	}
	return out
}

// seldom are metrics that a service without trouble does not expose, and where they are.
var seldom = map[string]struct {
	file, declared string
	labels         []string
}{
	"retrylens_ingest_insert_retries_total": {"../../internal/ingestd/metrics.go", `options("insert_retries_total", "Inserts that failed and are tried again, by kind of error."), []string{"kind"}`, []string{"kind"}},
	"retrylens_detector_state":              {"../../internal/gauges/gauges.go", `desc("detector_state"`, []string{"tenant", "provider", "model", "state"}},
}
