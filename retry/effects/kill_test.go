package effects_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
)

// theatre is a database and a world in which workers follow each other.
type theatre struct {
	t     *testing.T
	b     *bench
	world *world
	hour  int
}

func newTheatre(t *testing.T, s source) *theatre {
	b := newBench(t, s)
	b.ledger()
	return &theatre{t: t, b: b, world: newWorld(t)}
}

// start has the next worker begin, an hour after the one before.
func (th *theatre) start(phases []string, kill killAt) *exec.Cmd {
	th.t.Helper()
	th.hour++
	config, err := json.Marshal(job{Source: th.b.source, World: th.world.URL, Hour: th.hour, Phases: phases, Kill: kill})
	if err != nil {
		th.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(config))
	cmd.Stderr = th.t.Output()
	if err := cmd.Start(); err != nil {
		th.t.Fatal(err)
	}
	return cmd
}

// killed tells whether the worker was killed, once nothing of it has an effect any more.
func (th *theatre) killed(cmd *exec.Cmd) bool {
	th.t.Helper()
	err := cmd.Wait()
	th.world.quiet(th.t)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		th.t.Fatalf("worker: %v", err)
	}
	return false
}

// finish has a last worker do all that is left, and compares what there is with what there must be.
func (th *theatre) finish() {
	t := th.t
	t.Helper()
	if th.killed(th.start(allPhases, killAt{})) {
		t.Fatal("the last worker was killed")
	}
	th.world.mu.Lock()
	defer th.world.mu.Unlock()
	want := 0
	once := func(format string, n int) {
		for i := range n {
			want++
			if got := th.world.effects[fmt.Sprintf(format, i)]; got != 1 {
				t.Errorf("%s: %d effects, want exactly one", fmt.Sprintf(format, i), got)
			}
		}
	}
	for _, f := range []string{"outbox/%d", "charge/%d", "mail/%d", "burn/%d"} {
		once(f, workerKeys)
	}
	for step := range 3 {
		once(fmt.Sprintf("run-%%d/%d", step), workerRuns)
	}
	if len(th.world.effects) != want {
		t.Errorf("effects on %d things, want %d: %v", len(th.world.effects), want, th.world.effects)
	}
	if len(th.world.overlap) > 0 {
		t.Errorf("two dispatches at once under %q", th.world.overlap)
	}
	var distinct int
	if err := th.b.db.QueryRowContext(t.Context(), "SELECT count(DISTINCT k) FROM ledger").Scan(&distinct); err != nil || distinct != workerKeys || th.b.entries() != workerKeys {
		t.Errorf("%d entries, %d distinct, want %d of each (%v)", th.b.entries(), distinct, workerKeys, err)
	}
	s := th.b.stats()
	s.OldestReady, s.OldestPending = 0, 0
	if want := (effects.Stats{Done: workerKeys, Committed: 3*workerKeys + 3*workerRuns}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// gaps are all places where a crash parts two steps: phase, gap, and where the worker
// before was killed, so that there is something to find.
var gaps = []struct {
	phase  string
	before killAt
	gaps   []string
}{
	{"once", killAt{}, []string{"once.begin", "once.inserted", "once.running", "once.ran", "once.kept", "enqueue.begin", "enqueue.inserted", "once.committed"}},
	{"drain", killAt{}, []string{"drain.claimed", "world.before", "world.after", "drain.dispatched", "drain.finished"}},
	{"charge", killAt{}, calling},
	{"mail", killAt{}, calling},
	{"burn", killAt{}, calling},
	{"run", killAt{}, append(slices.Clone(calling), "run.stepped")},
	{"charge", killAt{"charge", "world.after", 3}, []string{"again.taken", "decide.looked", "again.decided"}},
	{"charge", killAt{"charge", "world.before", 3}, []string{"again.decided", "call.pending", "world.before", "world.after", "call.returned"}},
	{"mail", killAt{"mail", "world.after", 3}, []string{"again.taken", "again.decided", "call.pending", "world.before", "world.after", "call.returned", "call.written"}},
	{"burn", killAt{"burn", "world.after", 3}, []string{"again.taken", "world.undoing", "world.undone", "decide.compensated", "again.decided", "call.pending", "world.before", "world.after", "call.returned", "call.written"}},
	{"run", killAt{"run", "world.after", 8}, []string{"again.taken", "again.decided"}},
	{"reconcile", killAt{"charge", "world.after", 3}, []string{"reconcile.claimed", "decide.looked", "reconcile.decided", "reconcile.written"}},
	{"reconcile", killAt{"charge", "call.pending", 3}, []string{"reconcile.decided", "reconcile.written"}},
	{"reconcile", killAt{"mail", "world.after", 3}, []string{"reconcile.claimed", "reconcile.decided", "call.pending", "world.before", "world.after", "call.returned", "call.written", "reconcile.written"}},
	{"reconcile", killAt{"burn", "world.after", 3}, []string{"reconcile.claimed", "world.undoing", "world.undone", "decide.compensated", "reconcile.decided", "reconcile.written"}},
}

var calling = []string{"call.begin", "call.pending", "world.before", "world.after", "call.returned", "call.written"}

// TestKillInEveryGap: kill -9 of a process with 64 goroutines at each place; a successor finds
// exactly one effect per key, or makes it, drains the outbox and leaves nothing pending.
func TestKillInEveryGap(t *testing.T) {
	onEach(t, func(t *testing.T, s source) {
		n := 0
		for _, row := range gaps {
			for _, gap := range row.gaps {
				if n++; n%everyNth != 0 {
					continue
				}
				name := row.phase + "/" + gap
				if row.before != (killAt{}) {
					name += "/after " + row.before.Phase + " " + row.before.Gap
				}
				t.Run(name, func(t *testing.T) { killIn(t, fresh(t, s), row.phase, gap, row.before) })
			}
		}
	})
}

// fresh is another empty database of the same kind.
func fresh(t *testing.T, s source) source {
	if s.Dialect == effects.SQLite {
		s.DSN = sqliteDSN(filepath.Join(t.TempDir(), "test.db"))
	} else {
		s.DSN = postgres(t).create(t)
	}
	return s
}

func killIn(t *testing.T, s source, phase, gap string, before killAt) {
	th := newTheatre(t, s)
	kill := killAt{phase, gap, 3}
	if before != (killAt{}) {
		if !th.killed(th.start([]string{before.Phase}, before)) {
			t.Fatalf("the gap %s of %s was not reached", before.Gap, before.Phase)
		}
		kill.Nth = 1
	}
	phases := []string{phase}
	if phase == "drain" {
		phases = []string{"once", "drain"}
	}
	if !th.killed(th.start(phases, kill)) {
		t.Fatalf("the gap %s of %s was not reached", gap, phase)
	}
	th.finish()
}

// TestEveryGapIsInTheTable: no gap of the package is left out.
func TestEveryGapIsInTheTable(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range gaps {
		for _, g := range row.gaps {
			listed[g] = true
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bgap\("([^"]+)"\)`).FindAllSubmatch(text, -1) {
			found++
			if !listed[string(m[1])] {
				t.Errorf("%s: the gap %s is in no row of gaps", f, m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d gaps were found", found)
	}
}

// TestKillAtRandom: process after process is killed at any moment.
func TestKillAtRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	onEach(t, func(t *testing.T, s source) {
		began := time.Now()
		newTheatre(t, fresh(t, s)).finish()
		whole := time.Since(began)
		th := newTheatre(t, s)
		kills := 0
		for range 8 {
			phases := slices.Clone(allPhases)
			random.Shuffle(len(phases), func(i, j int) { phases[i], phases[j] = phases[j], phases[i] })
			cmd := th.start(phases, killAt{})
			time.Sleep(time.Duration(random.Int64N(int64(whole)))) // any moment is right
			_ = cmd.Process.Kill()
			if th.killed(cmd) {
				kills++
			}
		}
		t.Logf("%d of 8 were killed before their end", kills)
		th.finish()
	})
}
