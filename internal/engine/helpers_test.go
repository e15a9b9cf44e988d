package engine_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

func dialer(c *engine.Client) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) { return c.DialTCP(ctx) }
}

// openerEnv makes this test binary an opener of the directory it names.
const openerEnv = "RETRYLENS_TEST_OPENER"

// opener opens the engine in dir, prints its PID, and stays a client until its
// standard input ends.
func opener(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := engine.Open(ctx, engine.Options{
		Dir:    dir,
		Binary: os.Getenv("RETRYLENS_TEST_BINARY"),
		Linger: time.Second,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ep, err := c.Endpoint(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(ep.PID)
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// clearCloseOnExec makes children inherit f, as those of a careless program would.
func clearCloseOnExec(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}

func requireOwnSession(t *testing.T, pid int) {
	t.Helper()
	sid, err := unix.Getsid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if sid != pid {
		t.Errorf("session of the engine is %d, want its own, %d", sid, pid)
	}
}

// kill sends sig to the engine of c and waits until that process is gone.
func kill(t *testing.T, c *engine.Client, dir string, sig syscall.Signal) {
	t.Helper()
	pid := endpointOf(t, c).PID
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("engine %d is gone", pid), func() bool { return dead(t, dir) })
}

func dead(t *testing.T, dir string) bool {
	t.Helper()
	lives, err := datadir.Dir(dir).EngineLives()
	if err != nil {
		t.Fatal(err)
	}
	return !lives
}

// after returns when d has passed.  It is for spreading events, not for waiting on them.
func after(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
