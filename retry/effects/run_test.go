package effects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/retry/effects"
	"github.com/retrylens/retrylens/retry/keys"
)

// agent is a run of three steps that counts its calls.
type agent struct {
	calls  [3]int
	undone int
	asked  [3]int // for arguments
	fail   int    // the step that fails, from 1
	args   string // of what differs from run to run
}

func (a *agent) steps() []effects.Step {
	step := func(i int, name string, may effects.Permission) effects.Step {
		return effects.Step{
			Tool: effects.Tool{Name: name, Retry: may, Call: func(_ context.Context, c effects.Call) ([]byte, error) {
				a.calls[i]++
				if a.fail == i+1 {
					return nil, errLost
				}
				return fmt.Appendf(nil, "%d(%s)", c.Step, c.Args), nil
			}},
			Args: func(_ context.Context, results [][]byte) ([]byte, error) {
				a.asked[i]++
				var last []byte
				if len(results) > 0 {
					last = results[len(results)-1]
				}
				return fmt.Appendf(nil, "%s%s", a.args, last), nil
			},
		}
	}
	all := []effects.Step{step(0, "ask", effects.Repeatable), step(1, "mail", effects.Keyed), step(2, "print", effects.Never)}
	all[2].Tool.Compensate = func(context.Context, effects.Call) error {
		a.undone++
		return nil
	}
	return all
}

func TestRunResumesBehindTheLastCommittedStep(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		a := &agent{args: "x", fail: 2}
		_, err := b.Run(t.Context(), "run-1", a.steps())
		wantError(t, err, errLost)
		var e *effects.StepError
		if !errors.As(err, &e) || e.Run != "run-1" || e.Step != 1 || e.Tool != "mail" {
			t.Fatalf("%#v", err)
		}
		a.args, a.fail = "another answer of the model", 0
		a.asked = [3]int{}
		for range 2 {
			results, err := b.Run(t.Context(), "run-1", a.steps())
			if err != nil || len(results) != 3 || string(results[1]) != "1(x0(x))" {
				t.Fatalf("%q, %v", results, err)
			}
		}
		if a.calls != [3]int{1, 2, 1} || a.asked != [3]int{0, 0, 1} {
			t.Errorf("calls %v, arguments asked for %v", a.calls, a.asked)
		}
		all := b.records.want(t, 4) // one, then three
		if all[0].IdempotencyKey != keys.Step("run-1", 0) || all[0].Operation != "ask" {
			t.Errorf("%+v", all[0])
		}
		a = &agent{}
		if _, err := b.Run(t.Context(), "run-2", a.steps()); err != nil || a.calls != [3]int{1, 1, 1} {
			t.Errorf("another run: %v, %v", a.calls, err)
		}
	})
}

func TestRunCompensatesWhatCannotBeRepeated(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		a := &agent{fail: 3}
		_, err := b.Run(t.Context(), "run", a.steps())
		wantError(t, err, effects.ErrUnknown)
		a.fail = 0
		_, err = b.Run(t.Context(), "run", a.steps()) // it still may happen
		wantError(t, err, effects.ErrUnknown)
		if a.undone != 0 || a.calls[2] != 1 {
			t.Errorf("undone %d times, called %d times", a.undone, a.calls[2])
		}
		b.clock.Advance(time.Minute)
		if _, err := b.Run(t.Context(), "run", a.steps()); err != nil || a.undone != 1 || a.calls != [3]int{1, 1, 2} {
			t.Errorf("%v, undone %d times, calls %v", err, a.undone, a.calls)
		}
	})
}

func TestRunWithOtherSteps(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		a := &agent{fail: 3}
		_, err := b.Run(t.Context(), "run", a.steps())
		wantError(t, err, effects.ErrUnknown)
		renamed, shorter, longer := a.steps(), a.steps()[:2], a.steps()
		renamed[1].Tool.Name = "letter"
		swapped := slices.Clone(a.steps())
		swapped[0], swapped[1] = swapped[1], swapped[0]
		calls := a.calls
		for what, steps := range map[string][]effects.Step{`step 1 of run "run" was "mail", now it is "letter"`: renamed,
			`step 2 of run "run" was "print", now it is "there is none"`: shorter, `step 0 of run "run" was "ask", now it is "mail"`: swapped} {
			_, err := b.Run(t.Context(), "run", steps)
			wantError(t, err, effects.ErrStepsChanged)
			if !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "start a run with a new id") {
				t.Errorf("%v, want %s", err, what)
			}
		}
		if a.calls != calls {
			t.Error("a step was called")
		}
		b.clock.Advance(time.Hour)
		a.fail = 0
		extra := longer[0]
		extra.Tool.Name = "thank"
		if results, err := b.Run(t.Context(), "run", append(longer, extra)); err != nil || len(results) != 4 {
			t.Errorf("a step at the end: %q, %v", results, err)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	b := newBench(t, source{effects.SQLite, sqliteDSN(t.TempDir() + "/test.db")})
	a := &agent{}
	for _, c := range []struct {
		id    string
		steps []effects.Step
		want  string
	}{{"", a.steps(), "id of a run"}, {"run", nil, "needs a step"}} {
		if _, err := b.Run(t.Context(), c.id, c.steps); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	no := errors.New("no arguments")
	steps := a.steps()
	steps[0].Args = func(context.Context, [][]byte) ([]byte, error) { return nil, no }
	_, err := b.Run(t.Context(), "run", steps)
	wantError(t, err, no)
	if s := b.stats(); s.Pending != 0 || a.calls[0] != 0 {
		t.Errorf("%+v", s)
	}
	steps[0].Args = nil
	if _, err := b.Run(t.Context(), "run", steps); err != nil {
		t.Error(err)
	}
}

// TestRunByTwo: the second one takes the arguments that the first has begun a step with, and
// does not do the step while the first is at it.
func TestRunByTwo(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		first, second := &agent{args: "x"}, &agent{args: "another answer of the model"}
		steps := first.steps()
		call := steps[0].Tool.Call
		steps[0].Tool.Call = func(ctx context.Context, c effects.Call) ([]byte, error) {
			_, err := b.another(effects.Options{}).Run(t.Context(), "run", second.steps())
			wantError(t, err, effects.ErrInFlight)
			return call(ctx, c)
		}
		want, err := b.Run(t.Context(), "run", steps)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.another(effects.Options{}).Run(t.Context(), "run", second.steps())
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) || second.calls != [3]int{} {
			t.Errorf("%q, want %q; %v; calls %v", got, want, err, second.calls)
		}
	})
}
