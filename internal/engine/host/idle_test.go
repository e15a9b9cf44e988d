package host

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

func TestIdleNeverWithoutLinger(t *testing.T) {
	defer goleak.VerifyNone(t)
	select {
	case <-idle(t.Context(), datadir.Dir(t.TempDir()), 0):
		t.Error("an engine without --linger left")
	default:
	}
}

func TestIdleCountsFromTheLastClient(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := datadir.Dir(t.TempDir())
	member, err := d.JoinClients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	gone := idle(ctx, d, 200*time.Millisecond)
	datadir.Pause(ctx)
	if len(gone) > 0 {
		t.Fatal("it left with a client there")
	}
	leftAt := time.Now()
	member.Release()
	select {
	case lock := <-gone:
		lock.Release()
		if took := time.Since(leftAt); took < 150*time.Millisecond {
			t.Errorf("left after %v, want 200ms", took)
		}
	case <-ctx.Done():
		t.Error("never left")
	}
}

func TestLatestIgnoresTheFuture(t *testing.T) {
	now := time.Now()
	if got := latest(now, now.Add(time.Hour)); !got.Equal(now) {
		t.Errorf("latest = %v: a clock that was set back would keep the engine", got)
	}
	if got := latest(now.Add(-time.Hour), now); !got.Equal(now) {
		t.Errorf("latest = %v, want %v", got, now)
	}
}

func TestValidateNamesTheFlag(t *testing.T) {
	good := Options{Dir: "d", LogLevel: "warning", StartTimeout: 1, StopTimeout: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for flag, spoil := range map[string]func(*Options){
		"--data":          func(o *Options) { o.Dir = "" },
		"--http":          func(o *Options) { o.HTTPPort = -1 },
		"--tcp":           func(o *Options) { o.TCPPort = 65536 },
		"--http and":      func(o *Options) { o.HTTPPort, o.TCPPort = 9000, 9000 },
		"--linger":        func(o *Options) { o.Linger = -1 },
		"--memory":        func(o *Options) { o.MemoryBytes = -1 },
		"--log-level":     func(o *Options) { o.LogLevel = "loud" },
		"--start-timeout": func(o *Options) { o.StartTimeout = 0 },
		"--stop-timeout":  func(o *Options) { o.StopTimeout = 0 },
	} {
		o := good
		spoil(&o)
		requireUsage(t, o.Validate(), flag)
	}
}
