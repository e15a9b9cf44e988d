package effects_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/effects"
)

// TestPostgreSQLCrashes: kill -9 of the server under 64 goroutines, again and again, each
// time at another place. What they were doing fails; once the server is back, the
// same work done again ends in exactly one effect per key.
func TestPostgreSQLCrashes(t *testing.T) {
	c, err := newCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	th := newTheatre(t, source{effects.PostgreSQL, c.create(t)})
	defer effects.SetGap(func(string) {})
	for i, gap := range []string{"once.kept", "call.pending", "call.returned", "drain.dispatched"} {
		var passed atomic.Int64
		crashed := make(chan struct{})
		effects.SetGap(func(name string) {
			if name == gap && passed.Add(1) == 3 {
				c.crash()
				close(crashed)
			}
		})
		w := inProcess(t, th, i)
		failed := w.all(t.Context())
		select {
		case <-crashed:
		default:
			t.Fatalf("the gap %s was not reached: %v", gap, failed)
		}
		if failed == nil {
			t.Errorf("no work failed while the server was away")
		}
		effects.SetGap(func(string) {})
		_ = w.db.Close()
		w.world.client.CloseIdleConnections()
		if err := c.start(); err != nil {
			t.Fatal(err)
		}
	}
	th.b.db.SetMaxIdleConns(0) // those of before the crashes lead nowhere
	th.hour = 10
	th.finish()
}

// inProcess is a worker without a process of its own, which goes on with the next phase
// when one fails.
func inProcess(t *testing.T, th *theatre, hour int) *survivor {
	t.Helper()
	w := &worker{job: job{Source: th.b.source}}
	var err error
	if w.db, err = w.job.Source.open(); err != nil {
		t.Fatal(err)
	}
	w.Store, err = effects.New(effects.Options{DB: w.db, Dialect: effects.PostgreSQL, Clock: fast{clock.Real(), time.Duration(hour) * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	w.world = &receiver{url: th.world.URL, process: fmt.Sprint("in process ", hour), client: &http.Client{Transport: &http.Transport{}}, at: func(string) {}}
	w.tools = w.world.tools()
	return &survivor{w}
}

type survivor struct{ *worker }

func (s *survivor) all(ctx context.Context) error {
	var failed error
	for _, p := range allPhases {
		s.phase.Store(&p)
		failed = errors.Join(failed, s.do(ctx, p))
	}
	return failed
}
