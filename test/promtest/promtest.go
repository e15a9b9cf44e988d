// Package promtest starts a real Prometheus for tests and asks it. It is for tests
// only.
package promtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Hint says what to do when a program is missing.
const Hint = "is missing: install the package prometheus (as root: apt-get install prometheus)"

const (
	startTimeout = 30 * time.Second
	poll         = 100 * time.Millisecond
)

// Prometheus is a server that runs until its test ends.
type Prometheus struct{ URL string }

// Start runs a Prometheus with that configuration (prometheus.yml) in a directory of
// its own; files are written beside the configuration.
func Start(tb testing.TB, config string, files map[string]string) *Prometheus {
	tb.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		tb.Fatal("prometheus " + Hint)
	}
	dir := tb.TempDir()
	files = withConfig(files, config)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	addr := FreeAddr(tb)
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--log.level=warn")
	Run(tb, cmd, filepath.Join(dir, "log"))
	p := &Prometheus{URL: "http://" + addr}
	Until(tb, startTimeout, "prometheus is ready", func() error { return Get(tb.Context(), p.URL+"/-/ready", nil) })
	return p
}

func withConfig(files map[string]string, config string) map[string]string {
	out := map[string]string{"prometheus.yml": config}
	for k, v := range files {
		out[k] = v
	}
	return out
}

// Sample is one series of an answer.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Sample, error) {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := Get(ctx, p.URL+"/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		return nil, err
	}
	var out []Sample
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		out = append(out, Sample{r.Metric, v})
	}
	return out, nil
}

// Run starts a program and ends it, by its own pid, with the test; what it says goes
// to a file that is shown when the test fails.
func Run(tb testing.TB, cmd *exec.Cmd, logFile string) {
	tb.Helper()
	log, err := os.Create(logFile)
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(logFile); err == nil && tb.Failed() {
			tb.Logf("%s said:\n%s", cmd.Path, text)
		}
		_ = log.Close()
	})
}

// FreeAddr is a loopback address that was free just now.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Get asks for JSON; to may be nil. Any status but 200 is an error.
func Get(ctx context.Context, address string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.300s", address, resp.Status, b)
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(b, to)
}

// Until asks again until there is no error, and fails the test when that takes too
// long.
func Until(tb testing.TB, within time.Duration, what string, try func() error) {
	tb.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		last := try()
		if last == nil {
			return
		}
		select {
		case <-deadline.C:
			tb.Fatalf("%s: not within %s: %v", what, within, last)
		case <-tick.C:
		}
	}
}
