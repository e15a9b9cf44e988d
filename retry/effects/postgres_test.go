package effects_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"
)

// cluster is a PostgreSQL server of these tests on a loopback port, in a directory of its own.
type cluster struct {
	bin, dir, port string
	as             *syscall.Credential // PostgreSQL refuses to run as root

	mu  sync.Mutex
	cmd *exec.Cmd
	n   int // schemas made
}

const installPostgreSQL = "this test needs PostgreSQL: apt-get install postgresql (or run scripts/test-tools.sh)"

// newCluster makes the files of a server.
func newCluster() (*cluster, error) {
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("postgres"); err == nil {
		bins = []string{path}
	}
	if len(bins) == 0 {
		return nil, errors.New(installPostgreSQL)
	}
	dir, err := os.MkdirTemp("", "retrylens-postgres-")
	if err != nil {
		return nil, err
	}
	c := &cluster{bin: filepath.Dir(slices.Max(bins)), dir: dir}
	if os.Getuid() == 0 {
		if c.as, err = credential("postgres", "nobody"); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(c.as.Uid), int(c.as.Gid)); err != nil {
			return nil, err
		}
	}
	init := c.command("initdb", "-D", c.data(), "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w\n%s", err, out), os.RemoveAll(dir))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, c.port, _ = net.SplitHostPort(l.Addr().String())
	return c, l.Close()
}

func credential(names ...string) (*syscall.Credential, error) {
	for _, n := range names {
		if u, err := user.Lookup(n); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("there is none of the users %v for PostgreSQL to run as", names)
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	if c.as != nil {
		// initdb writes to /dev/null, which programs that run as root sometimes make root's alone.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_DAC_OVERRIDE}
	}
	return cmd
}

// start runs the server until stop or crash, and no longer than this process. After a
// crash the old server's children may be in the way for a moment.
func (c *cluster) start() error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		exited, err := c.launch()
		if err != nil {
			return err
		}
		for {
			err = c.ping()
			if err == nil {
				return nil
			}
			select {
			case <-exited:
			case <-time.After(20 * time.Millisecond):
				if time.Now().Before(deadline) {
					continue
				}
			}
			break
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("PostgreSQL does not answer: %w\n%s", err, log)
		}
	}
}

func (c *cluster) launch() (<-chan struct{}, error) {
	cmd := c.command("postgres", "-D", c.data(), "-p", c.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=150", "-c", "shared_buffers=32MB", "-c", "fsync=off", "-c", "dynamic_shared_memory_type=mmap")
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	started, exited := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread that starts it
		defer runtime.UnlockOSThread()
		defer close(exited)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd = cmd
	return exited, <-started
}

func (c *cluster) ping() error {
	db, err := sql.Open("pgx", c.dsn("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

func (c *cluster) dsn(name string) string {
	return fmt.Sprintf("postgres://test@127.0.0.1:%s/%s?sslmode=disable", c.port, name)
}

// crash is kill -9 of the server and of its children, which would else go on until they
// notice. It stands still meanwhile, so that it has no more of them.
func (c *cluster) crash() {
	pid := c.cmd.Process.Pid
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	c.signal(syscall.SIGKILL)
}

func (c *cluster) stop() {
	c.signal(syscall.SIGQUIT)
	_ = os.RemoveAll(c.dir)
}

func (c *cluster) signal(s syscall.Signal) {
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(s)
	for cmd.Process.Signal(syscall.Signal(0)) == nil { // until its Wait has reaped it
		time.Sleep(time.Millisecond)
	}
}

// create makes an empty schema, which is quicker than a database, and returns its address.
func (c *cluster) create(t testing.TB) string {
	t.Helper()
	c.mu.Lock()
	c.n++
	name := fmt.Sprintf("test%d", c.n)
	c.mu.Unlock()
	db, err := sql.Open("pgx", c.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	return c.dsn("postgres") + "&search_path=" + name
}

// shared is the server that most tests use.
var shared struct {
	once sync.Once
	c    *cluster
	err  error
}

func postgres(t testing.TB) *cluster {
	t.Helper()
	shared.once.Do(func() {
		if shared.c, shared.err = newCluster(); shared.err == nil {
			shared.err = shared.c.start()
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.c
}
