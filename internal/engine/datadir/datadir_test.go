package datadir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T) Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "d"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func look(t *testing.T, d Dir) (Liveness, State) {
	t.Helper()
	l, s, err := d.Look()
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

func TestLookFollowsTheLock(t *testing.T) {
	d := open(t)
	want := State{PID: 1, TCPAddr: "127.0.0.1:1", StartedAt: time.Unix(1, 0).UTC()}
	if err := d.WriteState(want); err != nil {
		t.Fatal(err)
	}
	if l, _ := look(t, d); l != Dead {
		t.Errorf("without the lock: %v, want Dead, whatever engine.json says", l)
	}
	lock, err := d.LockEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l, s := look(t, d); l != Ready || !reflect.DeepEqual(s, want) {
		t.Errorf("with both: %v %+v, want Ready %+v", l, s, want)
	}
	for range 2 {
		if err := d.RemoveState(); err != nil {
			t.Error(err)
		}
	}
	if l, _ := look(t, d); l != Busy {
		t.Errorf("without engine.json: %v, want Busy", l)
	}
	lock.Release()
	if l, _ := look(t, d); l != Dead {
		t.Errorf("after the release: %v, want Dead", l)
	}
}

func TestEngineLockIsHeldOnce(t *testing.T) {
	d := open(t)
	lock, err := d.LockEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := d.LockEngine(ctx); !errors.Is(err, ErrHeld) {
		t.Errorf("second lock = %v, want ErrHeld", err)
	}
}

func TestClientsKeepTheEngineAndAreKeptOut(t *testing.T) {
	d := open(t)
	a, err := d.JoinClients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.JoinClients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.Release()
	if _, err := d.LockOutClients(); !errors.Is(err, ErrHeld) {
		t.Errorf("with a client left: %v, want ErrHeld", err)
	}
	b.Release()
	out, err := d.LockOutClients()
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("too long")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Millisecond, cause)
	defer cancel()
	if _, err := d.JoinClients(ctx); !errors.Is(err, cause) {
		t.Errorf("joining while the engine leaves = %v, want the context's cause", err)
	}
	out.Release()
	if _, err := d.JoinClients(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPasswordsOfRacersAreTheSame(t *testing.T) {
	d := open(t)
	got := make([]Passwords, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = d.Passwords(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range got {
		if p != got[0] || len(p.User) < 20 || p.User == p.Viewer {
			t.Errorf("passwords %+v, want those of the others and good ones", p)
		}
	}
	left, _ := filepath.Glob(d.path("*"))
	if len(left) != 2 {
		t.Errorf("files left: %v, want the two passwords", left)
	}
}

func TestEmptyPasswordIsRefused(t *testing.T) {
	d := open(t)
	if err := os.WriteFile(d.path("password"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := d.Passwords(); err == nil {
		t.Errorf("an empty file gave %+v", p)
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(""); err == nil {
		t.Error("no error without a directory")
	}
	t.Chdir(t.TempDir())
	d, err := Open("relative")
	if err != nil || !filepath.IsAbs(string(d)) {
		t.Errorf("Open = %q, %v, want an absolute path", d, err)
	}
}
