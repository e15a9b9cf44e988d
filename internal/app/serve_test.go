package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
	"github.com/retrylens/retrylens/internal/metrics"
)

func TestServeOptionsAreChecked(t *testing.T) {
	good := ServeOptions{SpoolDir: "spool", TokensFile: "tokens"}
	if _, err := NewServe(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*ServeOptions){
		"--spool DIR":                 func(o *ServeOptions) { o.SpoolDir = "" },
		"--tokens FILE must be given": func(o *ServeOptions) { o.TokensFile = "" },
		"exclude each other":          func(o *ServeOptions) { o.Insecure = true },
		"needs a loopback address":    func(o *ServeOptions) { o.TokensFile, o.Insecure, o.Listen = "", true, ":8480" },
		"--tenant is for --insecure":  func(o *ServeOptions) { o.Tenant = "acme" },
		"--tls-cert and --tls-key":    func(o *ServeOptions) { o.TLS.Cert = "c" },
		"--client-ca needs":           func(o *ServeOptions) { o.TLS.ClientCA = "c" },
		"--durability must be":        func(o *ServeOptions) { o.Durability = "hope" },
		"--store":                     func(o *ServeOptions) { o.Store.Address = "gopher://x" },
		"--grace":                     func(o *ServeOptions) { o.Grace = -1 },
	} {
		o := good
		change(&o)
		_, err := NewServe(o)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// log is a writer that tells the address once the service listens.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
	addr chan string
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := listening.FindSubmatch(p); m != nil {
		l.addr <- string(m[1])
	}
	return l.text.Write(p)
}

// running is a service under way.
type running struct {
	url  string
	log  *log
	stop context.CancelFunc
	done chan error
}

func startServe(t *testing.T, o ServeOptions) *running {
	t.Helper()
	l := &log{addr: make(chan string, 1)}
	o.Listen, o.Insecure, o.Tenant, o.Streams = "127.0.0.1:0", true, "acme", Streams{Err: l}
	s, err := NewServe(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{log: l, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	select {
	case addr := <-l.addr:
		r.url = "http://" + addr
	case err := <-r.done:
		t.Fatal(err)
	}
	return r
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func (r *running) post(t *testing.T, n int) {
	t.Helper()
	var body strings.Builder
	at := time.Now().UTC().Format(time.RFC3339)
	for i := range n {
		fmt.Fprintf(&body, `{"logical_id":"op-%d","attempt":0,"provider":"openai","started_at":%q,"outcome":"success"}`+"\n", i, at)
	}
	body.WriteString("secret body\n")
	resp, err := http.Post(r.url+"/v1/attempts", "application/x-ndjson", strings.NewReader(body.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
}

// The store is away when the service starts, and until it stops: what it took
// stays in the spool, and the next run brings it to the store.
func TestServeStartsWithoutAStore(t *testing.T) {
	t.Setenv("RETRYLENS_ENGINE", enginetest.Binary(t))
	dir := t.TempDir()
	o := ServeOptions{SpoolDir: filepath.Join(dir, "spool"), Store: StoreOptions{Address: "clickhouse://127.0.0.1:1/none"}, Grace: 100 * time.Millisecond}
	r := startServe(t, o)
	r.post(t, 100)
	r.end(t)
	segments, err := filepath.Glob(filepath.Join(o.SpoolDir, "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v %v", segments, err)
	}
	o.Store.Address, o.Grace = "embedded:"+filepath.Join(dir, "data"), time.Minute
	t.Cleanup(func() { enginetest.Stop(t, filepath.Join(dir, "data")) })
	r = startServe(t, o)
	r.end(t) // drains first
	requireOperations(t, o.Store, 100)
	if strings.Contains(r.log.text.String(), "secret") {
		t.Error("a body is in the log")
	}
	if entries, err := os.ReadDir(o.SpoolDir); err != nil || len(entries) != 2 { // lock, quarantine
		t.Errorf("left: %v %v", entries, err)
	}
}

func requireOperations(t *testing.T, o StoreOptions, want uint64) {
	t.Helper()
	s, err := OpenStore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Report(t.Context(), metrics.Query{AsOf: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Rows) != 1 || report.Rows[0].Operations != want {
		t.Errorf("%+v", report.Rows)
	}
	if c := report.Completeness; !c.SpoolAgeMS.Set || !c.RejectedLines.Set {
		t.Errorf("the ingest node is not in the report: %+v", c)
	}
}
