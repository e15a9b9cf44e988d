package alerts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/retrylens/retrylens/internal/alerts/expr"
)

// Journal keeps alerts across restarts and between analyzers. Save replaces what was
// saved of the same episode (rule, group, ActiveAt).
type Journal interface {
	Load(context.Context) ([]*Alert, error) // those pending or firing, and those resolved in the last UntoldRetention
	Save(context.Context, []*Alert) error
}

// Lease says which of several analyzers evaluates: with none there is one.
type Lease interface {
	// Hold tells whether this process is the one, until the next call.
	Hold(context.Context) (bool, error)
}

// Sink gets all alerts that fire or were lately resolved, after each evaluation, and
// sees to it that somebody knows them. Deliver must not block.
type Sink interface {
	Deliver(now time.Time, all []*Alert)
}

// Teller tells a status once: that an alert fires, and that it is resolved. What it
// was told is kept in the journal, so a restart tells nothing twice; a crash between
// telling and saving does.
type Teller interface {
	Name() string // unique among the tellers, the same after every restart
	Tell(context.Context, *Alert) error
}

// ResolvedRetention is how long a resolved alert is told again: as in Prometheus.
const ResolvedRetention = 15 * time.Minute

// UntoldRetention is how long a resolved alert is kept for a Teller that knows that it
// fires and could not be told yet that it does not; of more than maxUntold the oldest are given up.
const UntoldRetention = 24 * time.Hour

const maxUntold = 1000

const minTimeout = 20 * time.Second

// DefaultEvery is the time between evaluations.
const DefaultEvery = 15 * time.Second

// Options make a Manager.
type Options struct {
	Source   Source
	Verdicts Verdicts // nil = no detector
	Journal  Journal  // nil = state is lost with the process
	Lease    Lease    // nil = always the one
	Sinks    []Sink
	Tellers  []Teller
	Rules    *Rules
	Every    time.Duration // 0 = DefaultEvery
	Timeout  time.Duration // of what the source and the journal may take in one evaluation; 0 = twice Every, at least 20 s
	Now      func() time.Time
	Logger   *slog.Logger
	Pause    func(context.Context, time.Duration) error // nil = a timer
}

// Manager evaluates rules and keeps their alerts. It is safe for concurrent use.
type Manager struct {
	o    Options
	eval evaluator

	mu      sync.Mutex
	rules   *Rules
	alerts  map[string]*Alert // by Key: pending, firing, and lately resolved
	untold  []*Alert          // resolved and no longer among alerts, the oldest first: see UntoldRetention
	doubled []*Alert          // not over, but followed by another episode of their rule and group: to be ended
	leading bool
	last    Evaluation
}

// Evaluation is how the latest one went.
type Evaluation struct {
	At      time.Time
	Took    time.Duration
	Err     error
	Leading bool // this process evaluates; else another one does
}

// New returns a manager of the rules.
func New(o Options) *Manager {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Timeout == 0 {
		o.Timeout = max(2*o.Every, minTimeout)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pause == nil {
		o.Pause = sleep
	}
	return &Manager{o: o, eval: evaluator{source: o.Source, verdicts: o.Verdicts}, rules: o.Rules, alerts: map[string]*Alert{}}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// SetRules takes other rules from the next evaluation on. Alerts of rules that are gone
// are resolved then.
func (m *Manager) SetRules(r *Rules) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = r
}

// Rules are those in force.
func (m *Manager) Rules() []*Rule {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rules.Rules
}

// Alerts are those pending, firing and lately resolved, as of the latest evaluation, by
// rule and group; copies.
func (m *Manager) Alerts() []*Alert {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted()
}

// Last is how the latest evaluation went; zero before the first.
func (m *Manager) Last() Evaluation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *Manager) sorted() []*Alert {
	out := make([]*Alert, 0, len(m.alerts))
	for _, a := range m.alerts {
		out = append(out, a.clone())
	}
	slices.SortFunc(out, compareAlerts)
	return out
}

// Run evaluates at intervals until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	for {
		if err := m.Evaluate(ctx); err != nil && ctx.Err() == nil {
			m.o.Logger.Warn("alerts: an evaluation failed; alerts stay as they are", "error", err)
		}
		if err := m.o.Pause(ctx, m.o.Every); err != nil {
			return err
		}
	}
}

// Evaluate evaluates every rule once, if this process holds the lease, saves what
// changed and tells. It must not run twice at once. When the source or the journal fails,
// alerts stay as they are and are told again, so that they do not resolve by themselves.
func (m *Manager) Evaluate(ctx context.Context) (err error) {
	now := m.o.Now().UTC().Truncate(time.Millisecond)
	began := time.Now()
	asking, cancel := context.WithTimeout(ctx, m.o.Timeout)
	defer cancel()
	leading, err := m.lead(asking)
	defer func() {
		m.mu.Lock()
		m.last = Evaluation{At: now, Took: time.Since(began), Err: err, Leading: leading}
		m.mu.Unlock()
	}()
	switch {
	case err != nil && !m.leading, err == nil && !leading:
		return err
	case err == nil:
		if err = m.round(asking, now); errors.Is(err, errLost) {
			leading = false
			return err
		}
	}
	loud := slices.DeleteFunc(m.Alerts(), func(a *Alert) bool { return a.Status == Pending })
	for _, s := range m.o.Sinks {
		s.Deliver(now, loud)
	}
	return errors.Join(err, m.tell(ctx, append(m.backlog(now), loud...)))
}

// backlog are copies of what is untold and not too old.
func (m *Manager) backlog(now time.Time) (out []*Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.untold = slices.DeleteFunc(m.untold, func(a *Alert) bool {
		old := now.Sub(*a.ResolvedAt) >= UntoldRetention
		if old {
			m.o.Logger.Warn("nobody could be told that an alert is resolved; it is given up", "rule", a.Rule, "group", a.Group)
		}
		return old || !a.untold()
	})
	m.untold = m.untold[max(0, len(m.untold)-maxUntold):]
	for _, a := range m.untold {
		out = append(out, a.clone())
	}
	return out
}

// tellTime is how long the tellers may take in one evaluation: one that hangs must not
// keep the next one waiting.
const tellTime = 5 * time.Second

// tell tells every teller what it does not know yet, all at once; what fails, or is not
// reached in time, is tried again at the next evaluation.
func (m *Manager) tell(ctx context.Context, loud []*Alert) error {
	telling, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	told, errs := make([][]*Alert, len(m.o.Tellers)), make([]error, len(m.o.Tellers))
	var wg sync.WaitGroup
	for i, t := range m.o.Tellers {
		wg.Go(func() { told[i], errs[i] = tellOne(telling, t, loud) })
	}
	wg.Wait()
	changed := map[string]*Alert{}
	for i, t := range m.o.Tellers {
		for _, a := range told[i] {
			if a.Told == nil {
				a.Told = map[string]Status{}
			}
			a.Told[t.Name()] = a.Status
			changed[a.episode()] = a
		}
	}
	return errors.Join(append(errs, m.remember(ctx, slices.SortedFunc(maps.Values(changed), compareAlerts)))...)
}

// tellOne tells one teller and returns what it knows now. Who never heard that an alert
// fires need not hear that it does not any more. After a failure it is left alone until
// the next evaluation.
func tellOne(ctx context.Context, t Teller, loud []*Alert) (told []*Alert, err error) {
	for _, a := range loud {
		switch last := a.Told[t.Name()]; {
		case last == a.Status:
			continue
		case a.Status == Resolved && last == "":
		default:
			if err := t.Tell(ctx, a); err != nil {
				return told, fmt.Errorf("alerts: %s: %w", t.Name(), err)
			}
		}
		told = append(told, a)
	}
	return told, nil
}

// remember keeps what was told of alerts.
func (m *Manager) remember(ctx context.Context, told []*Alert) error {
	if len(told) == 0 {
		return nil
	}
	m.mu.Lock()
	for _, a := range told {
		if now := m.alerts[a.Key()]; now != nil && now.episode() == a.episode() {
			m.alerts[a.Key()] = a
		}
		for i := range m.untold {
			if m.untold[i].episode() == a.episode() {
				m.untold[i] = a
			}
		}
	}
	m.mu.Unlock()
	if m.o.Journal == nil {
		return nil
	}
	if err := m.o.Journal.Save(ctx, told); err != nil {
		return fmt.Errorf("alerts: journal: %w", err)
	}
	return nil
}

// lead tells whether this process evaluates; who begins to, and who does not, reads the
// journal first.
func (m *Manager) lead(ctx context.Context) (bool, error) {
	hold := true
	var err error
	if m.o.Lease != nil {
		if hold, err = m.o.Lease.Hold(ctx); err != nil {
			return false, fmt.Errorf("alerts: lease: %w", err)
		}
	}
	if m.o.Journal != nil && (!hold || !m.leading) {
		all, err := m.o.Journal.Load(ctx)
		if err != nil {
			return false, fmt.Errorf("alerts: journal: %w", err)
		}
		m.take(all)
	}
	m.leading = hold
	return hold, nil
}

// pendingGap is how long ago a pending alert may have been saved to be taken over.
const pendingGap = 5 * time.Minute

// take takes alerts over from a journal, of several episodes the latest; an earlier one that is
// not over was begun by two analyzers at once. Whether a condition held in the meantime
// nobody knows: keep_firing_for counts from now.
func (m *Manager) take(all []*Alert) {
	now := m.o.Now().UTC().Truncate(time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alerts, m.untold, m.doubled = map[string]*Alert{}, nil, nil
	all = slices.SortedFunc(slices.Values(all), func(a, b *Alert) int { return a.ActiveAt.Compare(b.ActiveAt) })
	for _, a := range all {
		switch old := m.alerts[a.Key()]; {
		case old != nil && old.untold():
			m.untold = append(m.untold, old)
		case old != nil && !old.over():
			m.doubled = append(m.doubled, old)
		}
		switch {
		case a.Status == Resolved && now.Sub(*a.ResolvedAt) >= ResolvedRetention:
			delete(m.alerts, a.Key())
			if a.untold() {
				m.untold = append(m.untold, a)
			}
			continue
		case a.Status == Firing:
			a.HeldAt = now
		case a.Status == Pending && now.Sub(a.HeldAt) > pendingGap:
			continue // nobody saw whether the condition went on to hold: it starts anew
		}
		m.alerts[a.Key()] = a
	}
}

// round evaluates and moves every alert on. Nothing changes unless all of it is saved.
func (m *Manager) round(ctx context.Context, now time.Time) error {
	rules := m.Rules()
	found, err := m.eval.evaluate(ctx, rules, now, m.alive)
	if err != nil {
		return err
	}
	next, changed := m.move(found, rules, now)
	doubled := m.endDoubled(now)
	changed = append(changed, doubled...)
	if len(changed) > 0 {
		if err := m.stillLeads(ctx); err != nil {
			return err
		}
	}
	if m.o.Journal != nil && len(changed) > 0 {
		if err := m.o.Journal.Save(ctx, changed); err != nil {
			return fmt.Errorf("alerts: journal: %w", err)
		}
	}
	for _, a := range changed {
		m.o.Logger.Info("alert "+string(a.Status), "rule", a.Rule, "group", a.Group, "since", a.ActiveAt)
	}
	m.mu.Lock()
	m.alerts, m.doubled = next, nil
	for _, a := range doubled {
		if a.untold() {
			m.untold = append(m.untold, a)
		}
	}
	m.mu.Unlock()
	return nil
}

// stillLeads asks for the lease again before anything is begun or ended: an evaluation may
// have taken so long that another analyzer leads now, which has begun the same. Who no longer
// leads reads the journal before it does again.
func (m *Manager) stillLeads(ctx context.Context) error {
	if m.o.Lease == nil {
		return nil
	}
	hold, err := m.o.Lease.Hold(ctx)
	if err != nil {
		return fmt.Errorf("alerts: lease: %w", err)
	}
	if !hold {
		m.leading = false
		return errLost
	}
	return nil
}

var errLost = errors.New("alerts: the evaluation took so long that another analyzer leads now; nothing was changed")

// endDoubled are ended copies of the episodes of which there is another one.
func (m *Manager) endDoubled(now time.Time) (ended []*Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.doubled {
		ended = append(ended, a.ended(now))
	}
	return ended
}

// alive are the groups of a rule that have alerts which are not over.
func (m *Manager) alive(r *Rule) [][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out [][]string
	for _, a := range m.alerts {
		if a.Rule == r.Name && !a.over() && a.groupedAs(r) {
			out = append(out, a.Group)
		}
	}
	return out
}

// move is what the alerts become by what was found, and those of them to be saved.
func (m *Manager) move(found []finding, rules []*Rule, now time.Time) (next map[string]*Alert, changed []*Alert) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next = map[string]*Alert{}
	defer func() { m.keepUntold(next) }()
	for _, f := range found {
		a, was := m.alert(f, now)
		if a == nil {
			continue
		}
		if moved := a.step(f.rule, f.truth, now); moved || !was {
			changed = append(changed, a)
		}
		if f.truth == expr.True { // rules may have been read again
			a.Annotations, a.Labels = f.values.annotations(), f.values.labels()
			a.Severity, a.Runbook = f.rule.Severity, f.rule.Runbook
		}
		if a.Status != Dropped {
			next[a.Key()] = a
		}
	}
	for key, a := range m.alerts {
		if next[key] != nil {
			continue
		}
		if gone := m.orphaned(a, rules, now); gone != nil {
			if changed = append(changed, gone); gone.Status == Resolved {
				next[key] = gone
			}
		} else if a.Status == Resolved && now.Sub(*a.ResolvedAt) < ResolvedRetention {
			next[key] = a
		}
	}
	slices.SortFunc(changed, compareAlerts)
	return next, changed
}

// keepUntold puts resolved alerts that are no longer among the next ones aside while
// somebody is to be told of them.
func (m *Manager) keepUntold(next map[string]*Alert) {
	for _, a := range slices.SortedFunc(maps.Values(m.alerts), compareAlerts) {
		if now := next[a.Key()]; a.untold() && (now == nil || now.episode() != a.episode()) {
			m.untold = append(m.untold, a)
		}
	}
}

// alert is a copy of the group's alert, or a new one where the condition holds; nil =
// there is none. It tells whether there was one.
func (m *Manager) alert(f finding, now time.Time) (a *Alert, was bool) {
	key := f.rule.Name + keySeparator + groupKey(f.group)
	if old := m.alerts[key]; old != nil && !old.over() && old.groupedAs(f.rule) {
		return old.clone(), true
	}
	if f.truth != expr.True {
		return nil, false
	}
	return newAlert(f, now), false
}

// orphaned is an alert whose rule is gone or groups otherwise now: it is resolved.
func (m *Manager) orphaned(a *Alert, rules []*Rule, now time.Time) *Alert {
	if a.over() || slices.ContainsFunc(rules, func(r *Rule) bool { return r.Name == a.Rule && a.groupedAs(r) }) {
		return nil
	}
	return a.ended(now)
}
