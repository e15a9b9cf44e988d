package rulestest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/query"
)

// Script is a file of tests.
type Script struct{ Tests []Test }

// Test is one of them: what happens, and what is expected when.
type Test struct {
	Name    string
	Every   duration // between evaluations; default 15 s
	Load    []Load
	States  []State
	Service []Service
	Expect  []Expect
}

// Load makes operations: one each Every, from From until before To, of these attempts.
type Load struct {
	From, To, Every duration
	Tenant          string
	Provider        string
	Model           string
	Service         string
	Attempts        []Attempt
}

// Attempt is a success, or an error class, with what differs from the defaults: 100 ms
// long, followed at once by the next, the last one final.
type Attempt struct {
	Outcome    string // success, replayed, key_mismatch, shed, or an error class
	Upstream   *uint16
	Duration   duration
	RetryAfter duration `yaml:"retry_after"`
	Cause      string
	Key        string
	Cost       string
	Tokens     int64
	StopReason string `yaml:"stop_reason"`
}

// UnmarshalYAML reads a bare word as the outcome.
func (spec *Attempt) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&spec.Outcome)
	}
	type plain Attempt
	return n.Decode((*plain)(spec))
}

// State is the detector's verdict on a series for a time.
type State struct {
	From, To                duration
	Tenant, Provider, Model string
	State                   string
}

// Service is how the service is doing from From on.
type Service struct {
	From   duration
	Values map[string]float64
}

// Expect are the alerts that fire at At, by the labels that are named; pending ones
// apart. None named = none fires.
type Expect struct {
	At      duration
	Firing  []map[string]string
	Pending []map[string]string
}

// duration is written 5m; 0 when left out.
type duration time.Duration

// UnmarshalYAML reads 0 and what query.ParseDuration reads.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "0" || n.Value == "0s" {
		return nil
	}
	v, err := query.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = duration(v)
	return nil
}

// Parse reads a script and says of a bad one what is wrong where.
func Parse(r io.Reader) (*Script, error) {
	var s Script
	dec := yaml.NewDecoder(io.LimitReader(r, 1<<20))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("rules test: %w", err)
	}
	if len(s.Tests) == 0 {
		return nil, errors.New("rules test: no tests")
	}
	for i := range s.Tests {
		if err := s.Tests[i].check(); err != nil {
			return nil, fmt.Errorf("rules test: %q: %w", s.Tests[i].Name, err)
		}
	}
	return &s, nil
}

// maxEvaluations and maxOperations bound what a test costs.
const (
	maxEvaluations = 100_000
	maxOperations  = 1_000_000
)

func (t *Test) check() error {
	if t.Every == 0 {
		t.Every = duration(15 * time.Second)
	}
	switch {
	case t.Name == "":
		return errors.New("a test has no name")
	case len(t.Expect) == 0:
		return errors.New("expects nothing")
	case t.end()/time.Duration(t.Every) > maxEvaluations:
		return fmt.Errorf("takes more than %d evaluations", maxEvaluations)
	}
	if !slices.IsSortedFunc(t.Expect, func(a, b Expect) int { return int(a.At - b.At) }) {
		return errors.New("expect must be in order of at")
	}
	total := 0
	for i := range t.Load {
		l := &t.Load[i]
		if l.Every <= 0 || l.To <= l.From || l.Provider == "" || len(l.Attempts) == 0 {
			return errors.New("a load needs provider, attempts, every, and from before to")
		}
		if total += int((l.To - l.From) / l.Every); total > maxOperations {
			return fmt.Errorf("more than %d operations", maxOperations)
		}
	}
	return nil
}

func (t *Test) end() time.Duration { return time.Duration(t.Expect[len(t.Expect)-1].At) }

// attempts are the records of the loads.
func (t *Test) attempts(base time.Time) ([]retrylens.Attempt, error) {
	var out []retrylens.Attempt
	for i, l := range t.Load {
		for n, at := 0, l.From; at < l.To; n, at = n+1, at+l.Every {
			records, err := l.operation(fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name, " ", "-"), i, n), base.Add(time.Duration(at)))
			if err != nil {
				return nil, fmt.Errorf("load %d: %w", i, err)
			}
			out = append(out, records...)
		}
	}
	return out, nil
}

func (l *Load) operation(id string, start time.Time) ([]retrylens.Attempt, error) {
	at := start
	var out []retrylens.Attempt
	for i, spec := range l.Attempts {
		a := retrylens.Attempt{
			Tenant: l.Tenant, LogicalID: id, OperationStartedAt: start, Attempt: int32(i), Service: l.Service,
			Provider: l.Provider, Model: l.Model, StartedAt: at, Cause: retrylens.Cause(spec.Cause), IdempotencyKey: spec.Key,
			StopReason: retrylens.StopReason(spec.StopReason), Outcome: retrylens.Outcome(spec.Outcome),
		}
		if class := retrylens.ErrorClass(spec.Outcome); class.Valid() && class != "" {
			a.Outcome, a.ErrorClass = retrylens.OutcomeError, class
		}
		if err := spec.fill(&a, i == len(l.Attempts)-1); err != nil {
			return nil, err
		}
		if err := a.Validate(retrylens.Limits{Now: start.Add(24 * time.Hour)}); err != nil {
			return nil, fmt.Errorf("attempt %d: %w", i, err)
		}
		out = append(out, a)
		at = at.Add(time.Duration(a.DurationMS.Value) * time.Millisecond)
	}
	return out, nil
}

const defaultDuration = 100 * time.Millisecond

func (spec *Attempt) fill(a *retrylens.Attempt, last bool) error {
	d := time.Duration(spec.Duration)
	if d == 0 {
		d = defaultDuration
	}
	a.DurationMS = retrylens.Some(d.Milliseconds())
	a.Final = retrylens.Some(last)
	if a.Outcome == retrylens.OutcomeShed || a.Outcome == retrylens.OutcomeKeyMismatch {
		a.ErrorClass = retrylens.ClassUnclassified
	}
	if spec.Upstream != nil {
		a.UpstreamCalls = retrylens.Some(*spec.Upstream)
	}
	if spec.RetryAfter > 0 {
		a.RetryAfterMS = retrylens.Some(time.Duration(spec.RetryAfter).Milliseconds())
	}
	if spec.Tokens > 0 {
		a.CompletionTokens = retrylens.Some(spec.Tokens)
	}
	if spec.Cost != "" {
		m, err := retrylens.ParseMoney(spec.Cost)
		if err != nil {
			return fmt.Errorf("cost: %w", err)
		}
		a.CostUSD = retrylens.Some(m)
	}
	a.Normalize()
	return nil
}
