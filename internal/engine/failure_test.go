package engine_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// requireFailure opens o and wants err, with a text that has all of texts.
func requireFailure(t *testing.T, o engine.Options, want error, texts ...string) {
	t.Helper()
	c, err := engine.Open(testContext(t), o)
	if err == nil {
		c.Close()
		enginetest.Stop(t, o.Dir)
		t.Fatalf("Open worked, want %v", want)
	}
	if !errors.Is(err, want) {
		t.Errorf("Open = %v, want %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error does not say %q:\n%v", text, err)
		}
	}
	if !dead(t, o.Dir) {
		t.Error("a failed start left an engine behind")
	}
}

func TestMissingLibrary(t *testing.T) {
	o := enginetest.Options(t)
	o.Library = filepath.Join(o.Dir, "none.so")
	requireFailure(t, o, engine.ErrNoLibrary, o.Library, "run: scripts/fetch-engine.sh")
}

func TestLibraryThatIsNone(t *testing.T) {
	o := enginetest.Options(t)
	o.Library = filepath.Join(t.TempDir(), "libchdb.so")
	if err := os.WriteFile(o.Library, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	requireFailure(t, o, engine.ErrNoLibrary, o.Library)
}

func TestMissingBinary(t *testing.T) {
	o := enginetest.Options(t)
	o.Binary = filepath.Join(o.Dir, "none")
	requireFailure(t, o, engine.ErrNoBinary, o.Binary, "RETRYLENS_ENGINE")
}

// TestFilesInUse: another ClickHouse holds the files, not one of our engines.
func TestFilesInUse(t *testing.T) {
	o := enginetest.Options(t)
	store := datadir.Dir(o.Dir).StoreDir()
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(store, "status"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	requireFailure(t, o, engine.ErrLocked, "another ClickHouse", "Code: 76")
}

func TestDirectoryIsAFile(t *testing.T) {
	o := enginetest.Options(t)
	o.Dir = filepath.Join(o.Dir, "file")
	if err := os.WriteFile(o.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Open(testContext(t), o); err == nil || !strings.Contains(err.Error(), o.Dir) {
		t.Errorf("Open = %v, want an error that names %s", err, o.Dir)
	}
}

func TestBusyPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, port := range []string{"http", "tcp"} {
		t.Run(port, func(t *testing.T) {
			o := enginetest.Options(t)
			if port == "http" {
				o.HTTPPort = l.Addr().(*net.TCPAddr).Port
			} else {
				o.TCPPort = l.Addr().(*net.TCPAddr).Port
			}
			requireFailure(t, o, engine.ErrPortBusy, "choose another")
		})
	}
}

func TestStartDeadline(t *testing.T) {
	o := enginetest.Options(t)
	cmd := osexec.Command(o.Binary, "start", "--data", o.Dir, "--start-timeout", "1ms")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != engine.ExitTimeout {
		t.Errorf("start = %v, want exit code %d\n%s", err, engine.ExitTimeout, &stderr)
	}
	if !dead(t, o.Dir) {
		t.Error("an engine was left behind")
	}
}

// TestHungEngine: something holds the lock and never answers.
func TestHungEngine(t *testing.T) {
	o := enginetest.Options(t)
	o.StartTimeout = 300 * time.Millisecond
	lock, err := datadir.Dir(o.Dir).LockEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	_, err = engine.Open(testContext(t), o)
	if !errors.Is(err, engine.ErrTimeout) || !strings.Contains(err.Error(), "engine.log") {
		t.Errorf("Open = %v, want ErrTimeout that names engine.log", err)
	}
}

func TestSecondEngineIsTurnedAway(t *testing.T) {
	o := enginetest.Options(t)
	enginetest.Start(t, enginetest.WithDir(o.Dir))
	out, err := osexec.Command(o.Binary, "serve", "--data", o.Dir).CombinedOutput()
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != engine.ExitLocked {
		t.Errorf("serve = %v, want exit code %d", err, engine.ExitLocked)
	}
	if !strings.Contains(string(out), "has an engine already (pid") {
		t.Errorf("serve said %q", out)
	}
}

func TestOptionsAreNamed(t *testing.T) {
	for want, o := range map[string]engine.Options{
		"Options.Dir must be given":                          {},
		"Options.Linger must not be negative, got -1s":       {Dir: "x", Linger: -time.Second},
		"Options.StartTimeout must not be negative, got -1s": {Dir: "x", StartTimeout: -time.Second},
	} {
		_, err := engine.Open(t.Context(), o)
		if !errors.Is(err, engine.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%+v) = %v, want %q", o, err, want)
		}
	}
}
