package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// terminal COLUMNS FILE COMMAND... runs a command whose standard output and error are a
// terminal, and writes what it shows to FILE.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: terminal COLUMNS FILE COMMAND...")
	}
	columns, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	master, slave, err := openTerminal(uint16(columns))
	ts.Check(err)
	defer master.Close()
	cmd := exec.Command(filepath.Join(bin, args[2]), args[3:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), slave, slave
	cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR="+ts.Getenv("NO_COLOR"))
	for k, v := range environment() {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var shown bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&shown, master) // ends with EIO when the last slave is closed
	}()
	err = cmd.Run()
	slave.Close()
	<-done
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), bytes.ReplaceAll(shown.Bytes(), []byte("\r\n"), []byte("\n")), 0o600))
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(columns uint16) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 50})
	}
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd))
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// TestInterruptedInOrder: an import that waits for input ends with the first
// SIGINT, says so, and leaves no lock behind.
func TestInterruptedInOrder(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { enginetest.Stop(t, filepath.Join(dir, "data")) })
	stdin, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	cmd := exec.Command(filepath.Join(bin, "ingest"), "import", "-")
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, stdin, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	waitForFile(t, filepath.Join(dir, "data", "engine.json"), ended)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(stderr.Bytes(), []byte("interrupted")) {
			t.Errorf("%v: %s", err, stderr.Bytes())
		}
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("still there 30 s after SIGINT")
	}
}

func waitForFile(t *testing.T, path string, ended <-chan error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("ended early: %v", err)
		case <-deadline:
			t.Fatalf("no %s after 60 s", path)
		}
	}
}
