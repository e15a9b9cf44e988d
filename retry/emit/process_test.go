//go:build linux

package emit_test

import (
	"bufio"
	"bytes"
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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/retrylens/retrylens/retry/emit"
)

// Roles of this test's binary when it is started as a process of its own.
const (
	roleEnv = "RETRYLENS_EMIT_TEST"
	sender  = "sender"
	server  = "server"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case sender:
		os.Exit(send())
	case server:
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

// perProcess is how many records a sender emits.
const perProcess = 400

// send emits records to the address in os.Args[1] with the spool in os.Args[2], and tells the
// emitter's name and, after half of them, that it goes on.
func send() int {
	s, err := emit.OpenSpool(os.Args[2], 0)
	if err != nil {
		return fatal(err)
	}
	sink, err := emit.HTTP(emit.HTTPOptions{URL: os.Args[1], Timeout: 200 * time.Millisecond})
	if err != nil {
		return fatal(err)
	}
	e, err := emit.New(emit.Options{Sink: sink, Spool: s, BatchSize: 7, FlushEvery: 2 * time.Millisecond, Backoff: func(int) time.Duration { return time.Millisecond }})
	if err != nil {
		return fatal(err)
	}
	fmt.Println(e.Name())
	for i := range perProcess {
		e.Emit(attempt("a"), nil)
		if i == perProcess/2 {
			fmt.Println("half")
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		return fatal(err)
	}
	return 0
}

func fatal(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// serve takes records into the file os.Args[1] and tells its address.
func serve() int {
	f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, err := bodyOf(r)
		if err == nil {
			_, err = f.Write(lines)
		}
		answerTo(w, lines, err)
	}))
	fmt.Println(s.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
	s.Close()
	return 0
}

func bodyOf(r *http.Request) ([]byte, error) {
	d, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return io.ReadAll(d)
}

func answerTo(w http.ResponseWriter, lines []byte, err error) {
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"accepted":%d}`, bytes.Count(lines, []byte("\n")))
}

// process is one of the other roles.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func spawn(t *testing.T, role string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), roleEnv+"="+role)
	p.Stderr = t.Output()
	p.in, _ = p.StdinPipe()
	out, _ := p.StdoutPipe()
	p.out = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.in.Close()
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

// line is the next one that the process tells.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatal("the process ended: ", p.out.Err())
	}
	return p.out.Text()
}

func (p *process) goesOn() { fmt.Fprintln(p.in) }

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stopped waits until the process stands still.
func (p *process) stopped(t *testing.T) {
	t.Helper()
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, "T") {
			return
		}
	}
}

// came counts the records by emitter and seq.
type came map[string]map[int64]int

func countLines(t *testing.T, lines []byte) came {
	t.Helper()
	c := came{}
	for l := range bytes.Lines(lines) {
		var a struct {
			Emitter string `json:"emitter"`
			Seq     int64  `json:"seq"`
		}
		if err := json.Unmarshal(l, &a); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		if c[a.Emitter] == nil {
			c[a.Emitter] = map[int64]int{}
		}
		c[a.Emitter][a.Seq]++
	}
	return c
}

// whole: each of the emitters has sent each of its records, and no other has.
func (c came) whole(t *testing.T, names []string) {
	t.Helper()
	if len(c) != len(names) {
		t.Errorf("records of %d emitters came, want %d", len(c), len(names))
	}
	for _, name := range names {
		for seq := range int64(perProcess) {
			if c[name][seq] == 0 {
				t.Fatalf("%s: %d of %d records came; seq %d did not", name, len(c[name]), perProcess, seq)
			}
		}
	}
}

// rest has a last emitter send what the processes have left on disk.
func rest(t *testing.T, url, dir string) {
	t.Helper()
	sink, err := emit.HTTP(emit.HTTPOptions{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	spool, err := emit.OpenSpool(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := closeWithin(t, start(t, emit.Options{Sink: sink, Spool: spool}), time.Minute); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s is left", f.Name())
	}
}

// TestProcessesShareASpool: several processes put and take in one directory at once, while the
// service takes, refuses and breaks off. Nothing is lost, nothing stays, and what came twice
// is the same record by its identity.
func TestProcessesShareASpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	var mu sync.Mutex
	var all []byte
	var requests atomic.Int64
	var well atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, err := bodyOf(r)
		n := requests.Add(1)
		if n%3 == 0 && !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		all = append(all, lines...)
		mu.Unlock()
		if n%7 == 0 && !well.Load() { // taken, and the answer lost
			panic(http.ErrAbortHandler)
		}
		answerTo(w, lines, err)
	}))
	defer s.Close()
	var senders []*process
	var names []string
	for range 4 {
		p := spawn(t, sender, s.URL, dir)
		senders, names = append(senders, p), append(names, p.line(t))
	}
	for _, p := range senders {
		p.goesOn()
	}
	for _, p := range senders {
		p.line(t)
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	well.Store(true)
	rest(t, s.URL, dir)
	mu.Lock()
	defer mu.Unlock()
	countLines(t, all).whole(t, names)
}

// TestTheServiceStandsStill: a service that is stopped neither refuses nor answers. What is
// emitted meanwhile waits on disk and comes once it goes on, and so does what it had.
func TestTheServiceStandsStill(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "spool"), filepath.Join(t.TempDir(), "taken")
	srv := spawn(t, server, file)
	url := srv.line(t)
	p := spawn(t, sender, url, dir)
	name := p.line(t)
	p.line(t)
	srv.signal(t, syscall.SIGSTOP)
	srv.stopped(t)
	p.goesOn()
	for files := 0; files == 0; { // the sender has met the silence and spooled
		left, _ := os.ReadDir(dir)
		files = len(left)
	}
	srv.signal(t, syscall.SIGCONT)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	rest(t, url, dir)
	taken, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	countLines(t, taken).whole(t, []string{name})
}

// TestTheSenderStandsStill: a process that is stopped while it sends, for longer than its
// request may take, goes on and loses nothing.
func TestTheSenderStandsStill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	var mu sync.Mutex
	var all []byte
	asked, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			close(asked)
			<-goOn
		})
		lines, err := bodyOf(r)
		mu.Lock()
		all = append(all, lines...)
		mu.Unlock()
		answerTo(w, lines, err)
	}))
	defer s.Close()
	p := spawn(t, sender, s.URL, dir)
	name := p.line(t)
	<-asked
	p.signal(t, syscall.SIGSTOP)
	p.stopped(t)
	<-time.After(300 * time.Millisecond) // its timeout has passed meanwhile
	p.signal(t, syscall.SIGCONT)
	close(goOn)
	p.line(t)
	p.goesOn()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	rest(t, s.URL, dir)
	mu.Lock()
	defer mu.Unlock()
	countLines(t, all).whole(t, []string{name})
}

// TestOrphansOfTheSpool: what a process that died was writing is cleared away, what another one
// is writing now is not, and other files neither.
func TestOrphansOfTheSpool(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"tmp-1": time.Hour, "tmp-2": 0, "notes": time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := emit.OpenSpool(dir, 0); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || filepath.Base(left[0]) != "notes" || filepath.Base(left[1]) != "tmp-2" {
		t.Errorf("left: %v", left)
	}
}

// TestFilesThatCannotBeSynced: a pipe and a device know no fsync, which is no failure; a device
// that is full is one.
func TestFilesThatCannotBeSynced(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := emit.File(pipe); !errors.Is(err, syscall.ENXIO) {
		t.Errorf("a pipe that nobody reads: %v", err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, path := range []string{pipe, os.DevNull} {
		s, err := emit.File(path)
		if err != nil {
			t.Fatal(err)
		}
		e := start(t, emit.Options{Sink: s})
		e.Emit(attempt("a"), nil)
		if err := closeWithin(t, e, time.Minute); err != nil || e.Stats().Sent != 1 {
			t.Errorf("%s: %v, %+v", filepath.Base(path), err, e.Stats())
		}
	}
	if got, err := io.ReadAll(reader); err != nil || strings.Count(string(got), "\n") != 1 {
		t.Errorf("the pipe's reader got %q, %v", got, err)
	}
	s, err := emit.File("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(context.Background(), []byte("{}\n"), 1); err == nil {
		t.Error("a full device took a record")
	}
}
