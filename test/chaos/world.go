package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// world is everything that is harmed.
type world struct {
	o      options
	dir    string
	engine *engine.Client
	proxy  *proxy
	nodes  []*node
	crowd  *crowd
	rand   *rand.Rand
	store  string // the address behind the proxy
	disk   *disk  // of the first node; nil = none could be mounted

	refusals []int // that come next
}

func newWorld(ctx context.Context, o options, dir string) (*world, error) {
	w := &world{o: o, dir: dir, rand: rand.New(rand.NewPCG(o.seed, 1))}
	sum := sha256.Sum256([]byte(token))
	line := fmt.Sprintf(`{"sha256":%q,"tenants":["*"]}`, hex.EncodeToString(sum[:]))
	if err := os.WriteFile(filepath.Join(dir, "tokens.ndjson"), []byte(line), 0o600); err != nil {
		return nil, err
	}
	var err error
	w.engine, err = engine.Open(ctx, engine.Options{
		Dir: w.engineDir(), Binary: filepath.Join(o.bin, "engine"), Logger: o.logger, MaxBackoff: time.Second, Linger: 2 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	if w.proxy, err = newProxy(w.engine.DialTCP); err != nil {
		return nil, err
	}
	at, err := w.engine.Endpoint(ctx)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "clickhouse", User: url.UserPassword(at.User, at.Password), Host: w.proxy.listener.Addr().String(), Path: "/retrylens", RawQuery: "dial_timeout=5s&read_timeout=20s"}
	w.store = u.String()
	w.disk = mountDisk(filepath.Join(dir, "spool0"), o.logger)
	for i := range o.nodes {
		n, err := newNode(o.bin, filepath.Join(dir, fmt.Sprint("spool", i)), w.store)
		if err != nil {
			return nil, err
		}
		if i == 0 && w.disk != nil {
			n.limitMiB = 2 * diskMiB // the disk is full first
		}
		if err := n.start(); err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, n)
	}
	w.crowd = &crowd{w: w}
	return w, nil
}

func (w *world) engineDir() string { return filepath.Join(w.dir, "data") }

// close ends what newWorld began. The engine leaves by itself, and is waited for.
func (w *world) close() error {
	for _, n := range w.nodes {
		n.signal(syscall.SIGCONT)
		n.signal(syscall.SIGKILL)
		n.wait()
	}
	w.signalEngine(syscall.SIGCONT)
	err := errors.Join(w.disk.unmount(), w.proxy.listener.Close(), w.engine.Close())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if l, _, lookErr := datadir.Dir(w.engineDir()).Look(); lookErr != nil || l == datadir.Dead {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
	return err
}

func (w *world) signalEngine(s syscall.Signal) {
	if l, state, err := datadir.Dir(w.engineDir()).Look(); err == nil && l == datadir.Ready {
		_ = syscall.Kill(state.PID, s)
	}
}

// suffer lets the senders send and things fail.
func (w *world) suffer(ctx context.Context, r *result) error {
	r.Faults = map[string]int{}
	done := make(chan struct{})
	go func() { defer close(done); w.crowd.run(ctx) }()
	end := time.Now().Add(w.o.duration)
	outage := false
	for time.Now().Before(end) && ctx.Err() == nil {
		pause(ctx, time.Duration(500+w.rand.IntN(1500))*time.Millisecond)
		var name string
		if !outage && time.Until(end) < w.o.duration/2 {
			outage, name = true, "long_outage"
			w.proxy.set(refusals[0])
			pause(ctx, w.o.duration/8)
			w.proxy.set(mode{})
		} else {
			var err error
			if name, err = w.harm(ctx); err != nil {
				return err
			}
		}
		r.Faults[name]++
		w.o.logger.Debug("fault", "name", name)
	}
	w.proxy.set(mode{})
	w.crowd.stop.Store(true)
	select {
	case <-done:
	case <-time.After(90 * time.Second):
		return errors.New("senders are not answered after the faults ended")
	}
	w.crowd.mu.Lock()
	defer w.crowd.mu.Unlock()
	r.Acknowledged, r.Resent, r.SpoolFull = len(w.crowd.acknowledged), w.crowd.resent.Load(), w.crowd.full.Load()
	return errors.Join(w.crowd.failed, ctx.Err())
}

// harm does one thing and undoes it.
func (w *world) harm(ctx context.Context) (string, error) {
	n := w.nodes[w.rand.IntN(len(w.nodes))]
	switch w.rand.IntN(16) {
	case 0, 1:
		n.signal(syscall.SIGKILL)
		return "kill_ingest", n.restart()
	case 2:
		n.signal(syscall.SIGTERM)
		if w.rand.IntN(2) == 0 {
			pause(ctx, time.Duration(w.rand.IntN(500))*time.Millisecond)
			n.signal(syscall.SIGTERM)
		}
		return "terminate_ingest", n.restart()
	case 3:
		n.signal(syscall.SIGSTOP)
		pause(ctx, time.Duration(300+w.rand.IntN(2000))*time.Millisecond)
		n.signal(syscall.SIGCONT)
		return "stop_ingest", nil
	case 4:
		w.signalEngine(syscall.SIGKILL)
		return "kill_engine", nil
	case 5:
		w.signalEngine(syscall.SIGSTOP)
		pause(ctx, time.Duration(300+w.rand.IntN(2500))*time.Millisecond)
		w.signalEngine(syscall.SIGCONT)
		return "stop_engine", nil
	case 6:
		return "refused_rows", w.refuseRows(ctx)
	case 7:
		return "torn_end", w.tear(n)
	case 8:
		if w.disk != nil {
			return "full_disk", w.fillDisk(ctx)
		}
	}
	if len(w.refusals) == 0 {
		w.refusals = w.rand.Perm(len(refusals)) // every class in turn
	}
	m := refusals[w.refusals[0]]
	w.refusals = w.refusals[1:]
	w.proxy.set(m)
	pause(ctx, time.Duration(500+w.rand.IntN(3000))*time.Millisecond)
	w.proxy.set(mode{})
	return "store_" + m.name, nil
}

// refuseRows has the table itself refuse one operation of two hundred for a while:
// those become dead letters.
func (w *world) refuseRows(ctx context.Context) error {
	if err := w.exec(ctx, "ALTER TABLE attempts ADD CONSTRAINT IF NOT EXISTS chaos CHECK cityHash64(logical_id) % 200 != 0"); err != nil {
		return err
	}
	pause(ctx, time.Duration(2000+w.rand.IntN(2000))*time.Millisecond)
	return w.exec(ctx, "ALTER TABLE attempts DROP CONSTRAINT IF EXISTS chaos")
}

// exec runs a statement, again while the engine comes back.
func (w *world) exec(ctx context.Context, statement string) error {
	var err error
	for range 20 {
		if err = w.execOnce(ctx, statement); err == nil {
			return nil
		}
		pause(ctx, 500*time.Millisecond)
	}
	return err
}

func (w *world) execOnce(ctx context.Context, statement string) error {
	rows, err := w.query(ctx, statement)
	if err != nil {
		return err
	}
	return rows.Close()
}

// settle waits until all spools are empty, and ends the nodes in order.
func (w *world) settle(ctx context.Context, r *result) error {
	began := time.Now()
	for _, n := range w.nodes {
		for {
			if b, err := n.spoolBytes(); err == nil && b == 0 {
				break
			}
			if time.Since(began) > 2*time.Minute || ctx.Err() != nil {
				return fmt.Errorf("the spool of %s does not drain", n.addr)
			}
			pause(ctx, 100*time.Millisecond)
		}
	}
	r.DrainSeconds = time.Since(began).Seconds()
	for _, n := range w.nodes {
		n.signal(syscall.SIGTERM)
		n.wait()
	}
	return w.reimport(ctx, r)
}
