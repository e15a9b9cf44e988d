package effects_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/retrylens/retrylens/retry/clock"
	"github.com/retrylens/retrylens/retry/effects"
)

// A worker is a process that does all that the package can, with 64 goroutines, and
// kills itself at a given point: the test binary, executed again.

const workerEnv = "RETRYLENS_EFFECTS_WORKER" // its job as JSON

// job of a worker.
type job struct {
	Source source
	World  string
	Hour   int      // its clock is so many hours fast: leases of those before it are over
	Phases []string // in this order
	Kill   killAt
}

// killAt is where a worker kills itself: at the Nth passing of that gap in that phase.
type killAt struct {
	Phase, Gap string
	Nth        int64
}

const (
	goroutines = 64
	workerKeys = 8
	workerRuns = 4
)

var allPhases = []string{"once", "charge", "mail", "burn", "run", "drain", "reconcile"}

// fast is a clock that is ahead.
type fast struct {
	clock.Clock
	by time.Duration
}

func (c fast) Now() time.Time { return c.Clock.Now().Add(c.by) }

type worker struct {
	*effects.Store
	job   job
	db    *sql.DB
	world *receiver
	tools map[string]effects.Tool

	phase  atomic.Pointer[string]
	passed atomic.Int64
}

// work does the job and returns the exit code.
func work(config string) int {
	w, err := newWorker(config)
	if err == nil {
		err = w.all(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func newWorker(config string) (*worker, error) {
	w := &worker{}
	if err := json.Unmarshal([]byte(config), &w.job); err != nil {
		return nil, err
	}
	var err error
	if w.db, err = w.job.Source.open(); err != nil {
		return nil, err
	}
	w.Store, err = effects.New(effects.Options{DB: w.db, Dialect: w.job.Source.Dialect, Clock: fast{clock.Real(), time.Duration(w.job.Hour) * time.Hour}})
	w.world = &receiver{url: w.job.World, process: strconv.Itoa(os.Getpid()), client: &http.Client{}, at: w.gap}
	w.tools = w.world.tools()
	return w, err
}

func (w *worker) all(ctx context.Context) error {
	effects.SetGap(w.gap)
	for _, p := range w.job.Phases {
		w.phase.Store(&p)
		if err := w.do(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// gap kills the process if this is the place.
func (w *worker) gap(name string) {
	k := w.job.Kill
	if k.Gap == "" || name != k.Gap || *w.phase.Load() != k.Phase || w.passed.Add(1) != k.Nth {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (w *worker) do(ctx context.Context, phase string) error {
	switch phase {
	case "once":
		return w.each(workerKeys, func(i int) error { return w.once(ctx, strconv.Itoa(i)) })
	case "run":
		return w.each(workerRuns, func(i int) error { return w.run(ctx, fmt.Sprint("run-", i)) })
	case "drain":
		return w.drain(ctx)
	case "reconcile":
		return w.reconcile(ctx)
	}
	return w.each(workerKeys, func(i int) error {
		_, err := w.Do(ctx, w.tools[phase], fmt.Sprint(phase, i), []byte(strconv.Itoa(i)))
		return err
	})
}

// each does every one of n with many goroutines at once, then alone: of those that find a key in
// flight one has it.
func (w *worker) each(n int, do func(i int) error) error {
	errs := make([]error, goroutines+n)
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			if err := do(i % n); !errors.Is(err, effects.ErrInFlight) {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	for i := range n {
		errs[goroutines+i] = do(i)
	}
	return errors.Join(errs...)
}

// once writes to the ledger and to the outbox in one transaction.
func (w *worker) once(ctx context.Context, key string) error {
	err := inTx(ctx, w.db, func(tx *sql.Tx) error {
		_, err := w.Once(ctx, tx, "once"+key, []byte(key), effects.InTransaction, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			w.gap("once.running")
			_, err := tx.ExecContext(ctx, "INSERT INTO ledger VALUES ('"+key+"')")
			return nil, err
		})
		if err != nil {
			return err
		}
		_, err = w.Enqueue(ctx, tx, effects.Message{Key: "outbox" + key, Topic: "mail", Payload: []byte(key)})
		return err
	})
	w.gap("once.committed")
	return err
}

func (w *worker) run(ctx context.Context, id string) error {
	_, err := w.Run(ctx, id, []effects.Step{{Tool: w.tools["mail"]}, {Tool: w.tools["charge"]}, {Tool: w.tools["burn"]}})
	return err
}

func (w *worker) drain(ctx context.Context) error {
	_, err := w.Drain(ctx, effects.DrainOptions{Workers: 8, Handlers: map[string]effects.Handler{"mail": {Retry: effects.Keyed,
		Dispatch: func(ctx context.Context, m effects.Message) error {
			return w.world.effect(ctx, m.Key, "outbox/"+string(m.Payload), true)
		}}}})
	return err
}

func (w *worker) reconcile(ctx context.Context) error {
	_, err := w.Reconcile(ctx, effects.ReconcileOptions{Tools: []effects.Tool{w.tools["mail"], w.tools["charge"], w.tools["burn"]}})
	return err
}
