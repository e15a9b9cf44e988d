package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// service is an ingest process.
type service struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

func (b *bench) newSpool() string {
	b.spools++
	return filepath.Join(b.dir, fmt.Sprint("spool", b.spools))
}

func (b *bench) serve(ctx context.Context, store string) (*service, error) {
	return b.serveOn(ctx, store, b.newSpool())
}

// serveWithTokens is a service with a token of the good sender, one of the hostile
// ones and one of those whose bodies are valid and as large as they may be.
func (b *bench) serveWithTokens(ctx context.Context) (*service, error) {
	var lines []byte
	for _, token := range []string{"good", "hostile", "large"} {
		lines = fmt.Appendf(lines, "{\"sha256\":\"%x\",\"tenant\":\"acme\"}\n", sha256.Sum256([]byte(token)))
	}
	file := filepath.Join(b.dir, "tokens.ndjson")
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		return nil, err
	}
	return b.start(ctx, b.store, b.newSpool(), "--tokens", file)
}

func (b *bench) serveOn(ctx context.Context, store, spool string) (*service, error) {
	return b.start(ctx, store, spool, "--insecure", "--tenant", "acme")
}

func (b *bench) start(ctx context.Context, store, spool string, auth ...string) (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(filepath.Join(b.bin, "ingest"), append([]string{"serve", "--store", store, "--migrate", "--spool", spool, "--listen", addr, "--grace", "1ms"}, auth...)...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &service{cmd: cmd, url: "http://" + addr, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	for range 200 {
		if resp, err := s.client.Get(s.url + "/healthz"); err == nil {
			resp.Body.Close()
			return s, nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return nil, errors.Join(errors.New("ingest does not answer"), s.stop())
}

func (s *service) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return s.cmd.Wait()
}

// load sends from several senders until the end, and returns how many records
// were acknowledged.
func (s *service) load(ctx context.Context, senders int, encoding string, end time.Time) (int64, error) {
	return s.send(ctx, senders, encoding, func(int64) bool { return time.Now().Before(end) })
}

func (s *service) loadRecords(ctx context.Context, senders, records int) (int64, error) {
	return s.send(ctx, senders, "", func(n int64) bool { return n < int64(records) })
}

func (s *service) send(ctx context.Context, senders int, encoding string, more func(int64) bool) (int64, error) {
	bodies := encoded(encoding)
	var n atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, senders)
	for i := range senders {
		wg.Go(func() {
			for k := i; more(n.Load()) && ctx.Err() == nil; k += senders {
				accepted, err := s.post(ctx, bodies[k%len(bodies)], encoding)
				if err != nil {
					errs <- err
					return
				}
				n.Add(int64(accepted))
			}
		})
	}
	wg.Wait()
	close(errs)
	return n.Load(), errors.Join(<-errs, ctx.Err())
}

func (s *service) post(ctx context.Context, body []byte, encoding string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/attempts", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Authorization", "Bearer good")
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var answer struct{ Accepted int }
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err == nil && resp.StatusCode != http.StatusAccepted {
		err = fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return answer.Accepted, err
}

// attempts are records as emitters send them.
func attempts(n int) []retrylens.Attempt {
	all, now := make([]retrylens.Attempt, n), time.Now().UTC().Truncate(24*time.Hour)
	for i := range all {
		a := retrylens.Attempt{
			Tenant: "acme", LogicalID: fmt.Sprintf("7-%06d-d8be9742", i), Attempt: int32(i % 3), Service: []string{"agent", "search", "checkout"}[i%3],
			Environment: "prod", Operation: "summarise", Provider: "openai", Model: "gpt-4o", Endpoint: "/v1/chat/completions",
			IdempotencyKey: fmt.Sprintf("k-7-%06d-d8be9742", i), StartedAt: now.Add(time.Duration(-i) * time.Second / 2),
			OperationStartedAt: now.Add(time.Duration(-i-4) * time.Second / 2),
			DurationMS:         retrylens.Some(int64(1000 + i)), Outcome: retrylens.OutcomeSuccess, Status: retrylens.Some[uint16](200),
			Emitter: "client-agent-1", Seq: retrylens.Some(int64(i)), PromptTokens: retrylens.Some(int64(2000 + i)), CompletionTokens: retrylens.Some(int64(300)),
			CostUSD: retrylens.Some(retrylens.PicoUSD(uint64(1459012500 + i))),
		}
		if i%5 == 4 {
			a.Outcome, a.ErrorClass, a.Status = retrylens.OutcomeError, retrylens.ClassOverloaded, retrylens.Some[uint16](529)
			a.ProviderErrorType, a.DelayMS = "overloaded_error", retrylens.Some(int64(812))
		}
		a.Normalize()
		all[i] = a
	}
	return all
}

// encoded are bodies of 500 records.
func encoded(encoding string) [][]byte {
	all := attempts(40_000)
	var bodies [][]byte
	for ; len(all) > 0; all = all[500:] {
		var text []byte
		for i := range all[:500] {
			text = append(all[i].AppendJSON(text), '\n')
		}
		bodies = append(bodies, compress(text, encoding))
	}
	return bodies
}

func compress(text []byte, encoding string) []byte {
	var b bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	default:
		return text
	}
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// metric reads one figure of the service.
func (s *service) metric(name string) (float64, error) {
	resp, err := s.client.Get(s.url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

func (s *service) cpu() (float64, error) { return s.metric("process_cpu_seconds_total") }

func (s *service) spoolBytes() int64 {
	v, _ := s.metric("retrylens_ingest_spool_bytes")
	return int64(v)
}

func (s *service) drained(ctx context.Context) error {
	for range 6000 {
		if v, err := s.metric("retrylens_ingest_spool_bytes"); err == nil && v == 0 {
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return errors.New("the spool does not drain")
}

// highestRSS is VmHWM, in bytes.
func (s *service) highestRSS() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

func ownCPU() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// waitGone waits for the engine, which leaves after its last client.
func waitGone(_ *engine.Client, dir string) error {
	for range 200 {
		if l, _, err := datadir.Dir(dir).Look(); err != nil || l == datadir.Dead {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errors.New("the engine does not leave")
}
