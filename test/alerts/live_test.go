package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/app"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/test/promtest"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Run(m)) }

// The rules of the test look through seconds where the shipped ones look through minutes,
// so that an incident takes half a minute; in all else they are AmplificationHigh.
const quickRules = `
rules:
  - alert: AmplificationHigh
    expr: amplification[20s] > 1.2 and amplification[5s] > 1.2
    min_operations: 20
    keep_firing_for: 2s
    severity: page
    annotations: {summary: '{{label "provider"}} {{figure "amplification[20s]"}}'}
`

// incident is how long after the test's start the provider is well again.
const incident = 45 * time.Second

// load is ten operations a second: amplification 1.3 from a minute before now until the
// incident is over, 1.0 afterwards; they are in the store from the beginning, and come into
// the windows as time passes.
func load(now time.Time) []retrylens.Attempt {
	var out []retrylens.Attempt
	for i, at := 0, now.Add(-time.Minute); at.Before(now.Add(3 * time.Minute)); i, at = i+1, at.Add(100*time.Millisecond) {
		calls := uint16(1)
		if i%10 < 3 && at.Before(now.Add(incident)) {
			calls = 2
		}
		a := retrylens.Attempt{
			Tenant: "acme", LogicalID: fmt.Sprint("op-", i), Provider: "openai", Model: "gpt-4o", StartedAt: at.UTC().Truncate(time.Millisecond),
			DurationMS: retrylens.Some[int64](50), Outcome: retrylens.OutcomeSuccess, UpstreamCalls: retrylens.Some(calls),
		}
		a.Normalize()
		out = append(out, a)
	}
	return out
}

// stage is everything that runs in the test.
type stage struct {
	dir      string
	store    string
	binary   string
	manager  string // address of the Alertmanager
	receiver *receiver
}

func newStage(t *testing.T, now time.Time) *stage {
	t.Helper()
	t.Setenv("RETRYLENS_ENGINE", enginetest.Binary(t))
	s := &stage{dir: t.TempDir(), receiver: newReceiver(t)}
	data := filepath.Join(s.dir, "data")
	t.Cleanup(func() { enginetest.Stop(t, data) })
	s.store, s.binary, s.manager = "embedded:"+data, filepath.Join(s.dir, "analyze"), promtest.FreeAddr(t)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "../../cmd/analyze").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, err := app.OpenStore(t.Context(), app.StoreOptions{Address: s.store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Write(t.Context(), load(now)), store.Close()); err != nil {
		t.Fatal(err)
	}
	s.write(t, "rules.yml", quickRules)
	s.write(t, "alertmanager.yml", fmt.Sprintf(`
route: {receiver: hook, group_by: [alertname, provider, model], group_wait: 100ms, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: hook, webhook_configs: [{url: %q, send_resolved: true}]}]
`, s.receiver.URL))
	return s
}

func (s *stage) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// analyze starts analyze serve; kill ends it without a word, at the end at the latest.
func (s *stage) analyze(t *testing.T, run string) (url string, kill func()) {
	t.Helper()
	logFile := filepath.Join(s.dir, run+".log")
	log, err := os.Create(logFile)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(s.binary, "serve", "--store", s.store, "--listen", "127.0.0.1:0", "--rules", filepath.Join(s.dir, "rules.yml"),
		"--alertmanager", "http://"+s.manager, "--evaluate-every", "1s", "--external-url", "http://lens.example", "--runbook-url", "http://books.example")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() { once.Do(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = log.Close() }) }
	t.Cleanup(func() {
		kill()
		if text, _ := os.ReadFile(logFile); t.Failed() {
			t.Logf("analyze serve (%s):\n%s", run, text)
		}
	})
	promtest.Until(t, 30*time.Second, "analyze serve listens", func() error {
		text, err := os.ReadFile(logFile)
		if m := regexp.MustCompile(`msg=listening addr=(\S+)`).FindSubmatch(text); m != nil {
			url = "http://" + string(m[1])
			return nil
		}
		return errors.Join(err, errors.New("not yet"))
	})
	return url, kill
}

// alertmanager starts a real one; a second one takes the place of the first.
func (s *stage) alertmanager(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath("prometheus-alertmanager")
	if err != nil {
		t.Fatal("prometheus-alertmanager is missing: install the package prometheus-alertmanager (as root: apt-get install prometheus-alertmanager)")
	}
	cmd := exec.Command(path, "--config.file="+filepath.Join(s.dir, "alertmanager.yml"), "--storage.path="+filepath.Join(s.dir, "am"),
		"--web.listen-address="+s.manager, "--cluster.listen-address=", "--log.level=warn")
	promtest.Run(t, cmd, filepath.Join(s.dir, "alertmanager.log"))
	promtest.Until(t, 30*time.Second, "Alertmanager is ready", func() error { return promtest.Get(t.Context(), "http://"+s.manager+"/-/ready", nil) })
}

// receiver is who is paged.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	pages []page
}

type page struct {
	Status string
	Alerts []struct {
		Status              string
		Labels, Annotations map[string]string
		StartsAt            time.Time
		GeneratorURL        string
	}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		var p page
		if b, err := io.ReadAll(req.Body); err == nil && json.Unmarshal(b, &p) == nil {
			r.mu.Lock()
			r.pages = append(r.pages, p)
			r.mu.Unlock()
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// of returns the pages of that status.
func (r *receiver) of(status string) []page {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []page
	for _, p := range r.pages {
		if p.Status == status {
			out = append(out, p)
		}
	}
	return out
}

func (r *receiver) wait(t *testing.T, within time.Duration, status string) page {
	t.Helper()
	promtest.Until(t, within, "a page that says "+status, func() error {
		if len(r.of(status)) == 0 {
			return errors.New("none")
		}
		return nil
	})
	return r.of(status)[0]
}

// TestAmplificationPages: a simulated amplification of 1.3 reaches a receiver through a real
// Alertmanager that was away at first, with the right labels; analyze, killed and started
// again, neither pages again nor forgets; a real Prometheus that scrapes analyze fires the same alert; when the
// provider is well again the page is resolved, once.
func TestAmplificationPages(t *testing.T) {
	now := time.Now()
	s := newStage(t, now)
	url, kill := s.analyze(t, "first")
	fired := evaluated(t, url)
	s.alertmanager(t) // away until now
	first := s.receiver.wait(t, 20*time.Second, "firing")
	a := first.Alerts[0]
	for name, want := range map[string]string{"alertname": "AmplificationHigh", "severity": "page", "tenant": "acme", "provider": "openai", "model": "gpt-4o"} {
		if a.Labels[name] != want {
			t.Errorf("label %s is %q, want %q", name, a.Labels[name], want)
		}
	}
	if len(a.Labels) != 5 || a.Annotations["summary"] != "openai 1.3" || a.Annotations["runbook_url"] != "http://books.example/AmplificationHigh.md" ||
		!strings.HasPrefix(a.GeneratorURL, "http://lens.example/?from=") || !a.StartsAt.Equal(fired) {
		t.Errorf("%+v, fired at %v", a, fired)
	}
	kill()
	url, _ = s.analyze(t, "second")
	samePrometheus(t, s, url)
	s.receiver.wait(t, incident+60*time.Second-time.Since(now), "resolved")
	if n := len(s.receiver.of("firing")); n != 1 {
		t.Errorf("paged %d times: %+v", n, s.receiver.of("firing"))
	}
	if again := s.receiver.of("resolved")[0].Alerts[0]; !again.StartsAt.Equal(fired) {
		t.Errorf("resolved as begun at %v, was %v", again.StartsAt, fired)
	}
	var list struct{ Incidents []struct{ Status string } }
	if err := promtest.Get(t.Context(), url+"/api/v1/incidents?from=now-1h&to=now%2B1h", &list); err != nil || len(list.Incidents) != 1 || list.Incidents[0].Status != "resolved" {
		t.Errorf("%+v %v", list, err)
	}
}

// evaluated waits until the alert fires and says since when; it must be by the second
// evaluation, as the window held the incident from the beginning.
func evaluated(t *testing.T, url string) time.Time {
	t.Helper()
	var list struct {
		EvaluatedAt time.Time `json:"evaluated_at"`
		Alerts      []struct {
			Status   string
			ActiveAt time.Time `json:"active_at"`
			FiredAt  time.Time `json:"fired_at"`
		}
	}
	promtest.Until(t, 30*time.Second, "an evaluation", func() error {
		if err := promtest.Get(t.Context(), url+"/api/v1/alerts", &list); err != nil {
			return err
		}
		if list.EvaluatedAt.IsZero() {
			return errors.New("none yet")
		}
		return nil
	})
	if len(list.Alerts) != 1 || list.Alerts[0].Status != "firing" {
		t.Fatalf("after the first evaluation: %+v", list)
	}
	return list.Alerts[0].FiredAt
}

// samePrometheus: the rules for Prometheus, on what analyze serves, give an alert with the
// same labels.
func samePrometheus(t *testing.T, s *stage, url string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dashboards, "rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	p := promtest.Start(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs: [{job_name: retrylens, static_configs: [{targets: [%q]}]}]
`, strings.TrimPrefix(url, "http://")), map[string]string{"rules.yml": strings.Replace(string(text), "interval: 15s", "interval: 1s", 1)})
	promtest.Until(t, 40*time.Second, "the alert of Prometheus", func() error {
		got, err := p.Query(context.WithoutCancel(t.Context()), `ALERTS{alertname="AmplificationHigh", alertstate="firing", severity="page", tenant="acme", provider="openai", model="gpt-4o"}`)
		if err == nil && len(got) != 1 {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
}
