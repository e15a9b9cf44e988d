package effects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/retrylens/retrylens/retry/keys"
)

// Step is one action of an agent's run.
type Step struct {
	Tool Tool
	// Args makes the arguments from the results of the steps before it; nil = no arguments. It
	// is called when the step begins, and not again: they are kept with the step. What a
	// model answers is not the same twice, so asking it is a step of its own, whose result
	// is kept.
	Args func(ctx context.Context, results [][]byte) ([]byte, error)
}

// StepError says at which step a run stopped.
type StepError struct {
	Run  string
	Step int
	Tool string
	Err  error
}

func (e *StepError) Error() string {
	return fmt.Sprintf("effects: run %.64q stopped at step %d (%s): %v", e.Run, e.Step, e.Tool, e.Err)
}

// Unwrap gives the error of the step.
func (e *StepError) Unwrap() error { return e.Err }

// Run does the steps in order, each as a Do under keys.Step(runID, index), and returns
// their results. After a failure or a crash, Run with the same id and steps resumes
// behind the last committed step, in this process or another: what is committed is not done again, and a
// step that may have happened is treated as its tool's permission says. A step that cannot be made
// idempotent is Never with a Compensate: it is undone, then done again.
//
// The id names the run after a restart: that of the job, the ticket, the conversation. Two
// processes that run it at once do each step once; the later one gets ErrInFlight. The
// names of the tools must stay what they were at each index: ErrStepsChanged otherwise. Errors of a
// step are a *StepError.
func (s *Store) Run(ctx context.Context, runID string, steps []Step) ([][]byte, error) {
	if err := checkRun(runID, steps); err != nil {
		return nil, err
	}
	kept, err := s.stepsOf(ctx, runID, steps)
	if err != nil {
		return nil, err
	}
	results := make([][]byte, 0, len(steps))
	for i := range steps {
		value, err := s.step(ctx, runID, i, &steps[i], kept[i], results)
		if err != nil {
			return nil, &StepError{Run: runID, Step: i, Tool: steps[i].Tool.Name, Err: err}
		}
		results = append(results, value)
		gap("run.stepped")
	}
	return results, nil
}

func checkRun(runID string, steps []Step) error {
	if err := checkName("the id of a run", runID); err != nil {
		return err
	}
	if len(steps) == 0 {
		return errors.New("effects: a run needs a step")
	}
	for i := range steps {
		if err := steps[i].Tool.check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// stepsOf reads what the run has begun, by index.
func (s *Store) stepsOf(ctx context.Context, runID string, steps []Step) (map[int]*call, error) {
	kept := map[int]*call{}
	err := s.each(ctx, s.o.DB, `SELECT `+callColumns+` FROM retrylens_calls WHERE run = $1 ORDER BY step`, []any{runID}, func() { clear(kept) }, func(rows *sql.Rows) error {
		var c call
		if err := rows.Scan(c.columns()...); err != nil {
			return err
		}
		kept[c.step] = &c
		return unchanged(runID, &c, steps)
	})
	if err != nil {
		return nil, fmt.Errorf("effects: %w", err)
	}
	return kept, nil
}

func unchanged(runID string, c *call, steps []Step) error {
	now := "there is none"
	if c.step < len(steps) {
		if now = steps[c.step].Tool.Name; now == c.tool {
			return nil
		}
	}
	return fmt.Errorf("%w: step %d of run %.64q was %q, now it is %q; finish the run with the steps that it began with, "+
		"or start a run with a new id: steps may be added at the end only", ErrStepsChanged, c.step, runID, c.tool, now)
}

func (s *Store) step(ctx context.Context, runID string, i int, step *Step, kept *call, results [][]byte) ([]byte, error) {
	began := s.timer.Now()
	if kept != nil && kept.state == stateCommitted {
		s.replayed(ctx, kept.intent(), began)
		return kept.result, nil
	}
	c := &call{key: keys.Step(runID, i), run: runID, step: i}
	switch {
	case kept != nil:
		c.args = kept.args
	case step.Args != nil:
		args, err := step.Args(ctx, results)
		if err != nil {
			return nil, fmt.Errorf("its arguments: %w", err)
		}
		c.args = args
	}
	res, err := s.do(ctx, &step.Tool, c)
	return res.Value, err
}
