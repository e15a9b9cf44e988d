package engine_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// An openerProcess is this test binary, run to open a directory.
type openerProcess struct {
	cmd    *osexec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
}

func startOpener(t *testing.T, dir string) *openerProcess {
	t.Helper()
	cmd := osexec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), openerEnv+"="+dir, "RETRYLENS_TEST_BINARY="+enginetest.Binary(t))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &openerProcess{cmd, stdin, bufio.NewReader(stdout)}
	t.Cleanup(func() { p.leave(t) })
	return p
}

// pid is the PID of the engine that the opener found or started.
func (p *openerProcess) pid(t *testing.T) int {
	t.Helper()
	var pid int
	if _, err := fmt.Fscan(p.stdout, &pid); err != nil {
		t.Fatalf("opener said no PID: %v", err)
	}
	return pid
}

// leave ends the opener in order, once.
func (p *openerProcess) leave(t *testing.T) {
	if p.cmd.ProcessState != nil {
		return
	}
	p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("opener: %v", err)
	}
}

func TestRacingOpenersShareOneEngine(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { enginetest.Stop(t, dir) })
	var openers []*openerProcess
	for range 4 {
		openers = append(openers, startOpener(t, dir))
	}
	first := openers[0].pid(t)
	for _, o := range openers[1:] {
		if got := o.pid(t); got != first {
			t.Errorf("two engines for one directory: PIDs %d and %d", first, got)
		}
	}
}

func TestEngineStaysWhileAClientIsLeftAndLeavesAfterTheLast(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { enginetest.Stop(t, dir) })
	starter, other := startOpener(t, dir), startOpener(t, dir)
	pid := starter.pid(t)
	other.pid(t)

	starter.leave(t) // it started the engine, and its short life must not matter
	deadline := time.Now().Add(1500 * time.Millisecond)
	for time.Now().Before(deadline) {
		l, s, err := datadir.Dir(dir).Look()
		if err != nil || l != datadir.Ready || s.PID != pid {
			t.Fatalf("engine left with a client there: %v, PID %d, %v", l, s.PID, err)
		}
		datadir.Pause(t.Context())
	}

	began := time.Now()
	if err := other.cmd.Process.Kill(); err != nil { // no Close: the kernel must tell
		t.Fatal(err)
	}
	other.cmd.Wait()
	eventually(t, "engine leaves", func() bool { return dead(t, dir) })
	if took := time.Since(began); took < 700*time.Millisecond || took > 8*time.Second {
		t.Errorf("engine left after %v, want about 1 s", took)
	}
	if _, err := os.Stat(datadir.Dir(dir).StateFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("engine.json was left behind: %v", err)
	}
}

// TestOpenWhileEngineLeaves opens again and again right when the engine goes.
func TestOpenWhileEngineLeaves(t *testing.T) {
	o := enginetest.Options(t)
	o.Linger = 30 * time.Millisecond
	t.Cleanup(func() { enginetest.Stop(t, o.Dir) })
	pids := map[int]bool{}
	for i := range 8 {
		c := enginetest.Open(t, o)
		conn := connect(t, c)
		scalar[uint8](t, conn, "SELECT 1")
		pids[endpointOf(t, c).PID] = true
		conn.Close()
		c.Close()
		after(t, time.Duration(10*i)*time.Millisecond) // vary where in the leaving the next Open falls
	}
	t.Logf("%d engines served 8 clients", len(pids))
}

func TestCrashedEngineIsRestartedByTheNextDial(t *testing.T) {
	o := enginetest.Options(t)
	c := enginetest.Start(t, enginetest.WithDir(o.Dir))
	before := endpointOf(t, c)
	kill(t, c, o.Dir, syscall.SIGKILL)
	conn, err := c.DialTCP(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	after := endpointOf(t, c)
	if after.PID == before.PID {
		t.Errorf("PID is still %d", after.PID)
	}
	if after.Password != before.Password {
		t.Error("the password changed: pools that are open would be locked out")
	}
}

func TestStaleStateIsIgnored(t *testing.T) {
	dir := t.TempDir()
	d := datadir.Dir(dir)
	// As a kill -9 leaves it, and its PID used again: by this test.
	stale := datadir.State{PID: os.Getpid(), TCPAddr: "127.0.0.1:1", HTTPAddr: "127.0.0.1:1"}
	if err := d.WriteState(stale); err != nil {
		t.Fatal(err)
	}
	c := enginetest.Start(t, enginetest.WithDir(dir))
	if got := endpointOf(t, c); got.PID == os.Getpid() || got.TCPAddr == stale.TCPAddr {
		t.Errorf("stale engine.json was believed: %+v", got)
	}
}

func TestClosedClient(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c := enginetest.Start(t)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.DialTCP(t.Context()); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("DialTCP after Close = %v, want ErrClosed", err)
	}
}

func TestSIGTERMWithARunningQuery(t *testing.T) {
	o := enginetest.Options(t)
	c := enginetest.Start(t, enginetest.WithDir(o.Dir))
	conn := connect(t, c)
	exec(t, conn, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n")
	exec(t, conn, "INSERT INTO kept SELECT number FROM numbers(1000)")
	ended := make(chan error, 1)
	go func() {
		ended <- conn.Exec(testContext(t), "SELECT sum(sleepEachRow(0.01)) FROM numbers(3000) SETTINGS max_block_size = 10, function_sleep_max_microseconds_per_block = 60000000")
	}()
	eventually(t, "query runs", func() bool {
		return scalar[uint64](t, conn, "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sleep%'") > 0
	})
	began := time.Now()
	kill(t, c, o.Dir, syscall.SIGTERM)
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	if err := <-ended; err == nil {
		t.Error("the query that was cut off reported success")
	}
	if got := scalar[uint64](t, conn, "SELECT count() FROM kept"); got != 1000 {
		t.Errorf("%d rows after the restart, want 1000", got)
	}
	log, err := os.ReadFile(filepath.Join(o.Dir, "engine.log"))
	if err != nil || !strings.Contains(string(log), "engine stopped") {
		t.Errorf("engine.log tells of no orderly stop (%v):\n%s", err, log)
	}
}

func TestForegroundStopsInOrder(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			o := enginetest.Options(t)
			cmd := osexec.Command(o.Binary, "serve", "--data", o.Dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			d := datadir.Dir(o.Dir)
			eventually(t, "engine is ready", func() bool { l, _, _ := d.Look(); return l == datadir.Ready })
			c := enginetest.Open(t, o) // finds it
			if got := endpointOf(t, c).PID; got != cmd.Process.Pid {
				t.Errorf("PID %d, want that of the one in the foreground, %d", got, cmd.Process.Pid)
			}
			cmd.Process.Signal(sig)
			if err := cmd.Wait(); err != nil {
				t.Errorf("serve = %v, want exit code 0", err)
			}
		})
	}
}
