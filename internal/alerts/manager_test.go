package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrylens/retrylens/internal/alerts"
	"github.com/retrylens/retrylens/internal/alerts/expr"
	"github.com/retrylens/retrylens/internal/metrics"
)

var start = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// world is a source whose figures a test sets: upstream calls of 100 operations, by
// provider; no entry = no operations.
type world struct {
	now     time.Time
	calls   map[string]uint64
	unknown []string
	service map[string]float64
	err     error
	hang    bool
	during  func() // of an evaluation
	queries int
}

func (w *world) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	w.queries++
	if w.during != nil {
		w.during()
	}
	if w.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if w.err != nil {
		return nil, w.err
	}
	var rows []metrics.Row
	for provider, calls := range w.calls {
		row := metrics.Row{Counters: metrics.Counters{Operations: 100, Attempts: 100, UpstreamCalls: calls}}
		for _, d := range q.GroupBy {
			row.Dims = append(row.Dims, map[metrics.Dimension]string{"provider": provider, "tenant": "t"}[d])
		}
		rows = append(rows, row)
	}
	r := metrics.NewReport(q, rows, 0, nil)
	r.Unknown = w.unknown
	return r, nil
}

func (w *world) Service(context.Context, time.Time) (map[string]float64, error) {
	return w.service, w.err
}

// memory is a journal that a test can look into, break, and hand to another manager.
type memory struct {
	saved map[string]string // by episode
	err   error
}

func (m *memory) Load(context.Context) ([]*alerts.Alert, error) {
	if m.err != nil {
		return nil, m.err
	}
	var out []*alerts.Alert
	for _, body := range m.saved {
		var a alerts.Alert
		if err := json.Unmarshal([]byte(body), &a); err != nil {
			return nil, err
		}
		if a.Status != alerts.Dropped {
			out = append(out, &a)
		}
	}
	return out, nil
}

func (m *memory) Save(_ context.Context, all []*alerts.Alert) error {
	if m.err != nil {
		return m.err
	}
	for _, a := range all {
		m.saved[a.Key()+a.ActiveAt.String()] = a.JSON()
	}
	return nil
}

// teller notes what it is told.
type teller struct {
	name string
	told []string
	err  error
}

func (t *teller) Name() string { return t.name }

func (t *teller) Tell(_ context.Context, a *alerts.Alert) error {
	if t.err == nil {
		t.told = append(t.told, string(a.Status)+" "+a.Labels["provider"])
	}
	return t.err
}

func rules(t *testing.T, text string) *alerts.Rules {
	t.Helper()
	r, err := alerts.Load("rules.yml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const high = `
rules:
  - {alert: High, expr: 'amplification[5m] > 1.2', by: [provider], for: 30s, keep_firing_for: 1m,
     annotations: {summary: '{{label "provider"}} {{figure "amplification[5m]"}}'}}
`

type bench struct {
	*world
	journal *memory
	lease   *lease
	sink    *sink
	teller  *teller
	m       *alerts.Manager
}

// sink counts what it is handed.
type sink struct{ deliveries, firing int }

func (s *sink) Deliver(_ time.Time, all []*alerts.Alert) {
	s.deliveries, s.firing = s.deliveries+1, 0
	for _, a := range all {
		if a.Status == alerts.Firing {
			s.firing++
		}
	}
}

func newBench(t *testing.T, text string) *bench {
	t.Helper()
	b := &bench{world: &world{now: start, calls: map[string]uint64{}, service: map[string]float64{}}, journal: &memory{saved: map[string]string{}}, teller: &teller{name: "hook"}, lease: &lease{held: true}, sink: &sink{}}
	b.restart(rules(t, text))
	return b
}

func (b *bench) restart(r *alerts.Rules) {
	b.m = alerts.New(alerts.Options{
		Source: b.world, Journal: b.journal, Lease: b.lease, Rules: r, Sinks: []alerts.Sink{b.sink}, Tellers: []alerts.Teller{b.teller},
		Now: func() time.Time { return b.now },
	})
}

// at evaluates so long after the start and says what there is.
func (b *bench) at(t *testing.T, after time.Duration) string {
	t.Helper()
	b.now = start.Add(after)
	if err := b.m.Evaluate(t.Context()); err != nil {
		t.Fatalf("at %v: %v", after, err)
	}
	return b.list()
}

func (b *bench) list() string {
	var out []string
	for _, a := range b.m.Alerts() {
		out = append(out, string(a.Status)+" "+strings.Join(a.Group, ","))
	}
	return strings.Join(out, "; ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestAnAlertsLife(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 120
	want(t, "at the edge", b.at(t, 0), "")
	b.calls["p"] = 121
	want(t, "over it", b.at(t, 15*time.Second), "pending p")
	want(t, "not long enough", b.at(t, 44*time.Second), "pending p")
	want(t, "long enough", b.at(t, 45*time.Second), "firing p")
	want(t, "said", b.m.Alerts()[0].Annotations["summary"], "p 1.21")
	b.calls["p"] = 130
	b.at(t, 60*time.Second)
	want(t, "said anew", b.m.Alerts()[0].Annotations["summary"], "p 1.3")
	b.calls["p"] = 100
	want(t, "kept", b.at(t, 119*time.Second), "firing p")
	want(t, "resolved", b.at(t, 120*time.Second), "resolved p")
	want(t, "still told", b.at(t, 120*time.Second+alerts.ResolvedRetention-time.Second), "resolved p")
	want(t, "forgotten", b.at(t, 120*time.Second+alerts.ResolvedRetention), "")
	want(t, "told", fmt.Sprint(b.teller.told), "[firing p resolved p]")
}

// TestPendingStartsAnew when the condition is interrupted, by false and by unknown.
func TestPendingStartsAnew(t *testing.T) {
	for name, interrupt := range map[string]func(*bench){
		"false":   func(b *bench) { b.calls["p"] = 100 },
		"gone":    func(b *bench) { delete(b.calls, "p") },
		"unknown": func(b *bench) { b.unknown = []string{"amplification"} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, high)
			b.calls["p"] = 200
			want(t, "begun", b.at(t, 0), "pending p")
			interrupt(b)
			want(t, "interrupted", b.at(t, 20*time.Second), "")
			b.calls["p"], b.unknown = 200, nil
			want(t, "again", b.at(t, 30*time.Second), "pending p")
			want(t, "not yet", b.at(t, 59*time.Second), "pending p")
			want(t, "fires", b.at(t, 60*time.Second), "firing p")
		})
	}
}

// TestAClockIsSetBack: an hour earlier all goes on as if it were now; nothing waits for the hour to
// pass again.
func TestAClockIsSetBack(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"], b.calls["q"] = 200, 200
	b.at(t, time.Hour)
	want(t, "both fire", b.at(t, time.Hour+30*time.Second), "firing p; firing q")
	b.calls["r"] = 200
	want(t, "one is pending", b.at(t, time.Hour+45*time.Second), "firing p; firing q; pending r")
	b.calls["p"] = 100
	want(t, "set back", b.at(t, 0), "firing p; firing q")
	want(t, "pending anew", b.at(t, 15*time.Second), "firing p; firing q; pending r")
	want(t, "fires, and is resolved", b.at(t, 60*time.Second), "resolved p; firing q; firing r")
	b.restart(rules(t, high))
	want(t, "restarted", b.at(t, 75*time.Second), "resolved p; firing q; firing r")
}

// TestUnknownEndsNothing: a figure that cannot be known resolves no alert, however long.
func TestUnknownEndsNothing(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	want(t, "fires", b.at(t, 30*time.Second), "firing p")
	b.unknown = []string{"amplification"}
	want(t, "unknown for an hour", b.at(t, time.Hour), "firing p")
	b.unknown, b.calls["p"] = nil, 100
	want(t, "known again", b.at(t, time.Hour+15*time.Second), "resolved p")
}

// TestFailuresChangeNothing: of the source, of the journal; alerts are told on meanwhile.
func TestFailuresChangeNothing(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.at(t, 30*time.Second)
	clock := 2 * time.Minute
	for _, broken := range []struct {
		name string
		set  func(error)
	}{{"source", func(e error) { b.err = e }}, {"journal", func(e error) { b.journal.err = e }}, {"lease", func(e error) { b.lease.err = e }}} {
		broken.set(errors.New("away"))
		b.calls["p"] = 100
		for range 3 {
			clock += 70 * time.Second // so that the alert would be resolved
			b.now = start.Add(clock)
			before := b.sink.deliveries
			if err := b.m.Evaluate(t.Context()); err == nil {
				t.Errorf("%s: no error", broken.name)
			}
			want(t, broken.name+" away", b.list(), "firing p")
			if last := b.m.Last(); last.Err == nil || !last.At.Equal(b.now) {
				t.Errorf("%s: %+v", broken.name, last)
			}
			if b.sink.deliveries != before+1 || b.sink.firing != 1 {
				t.Errorf("%s: told %d times of %d alerts", broken.name, b.sink.deliveries-before, b.sink.firing)
			}
		}
		broken.set(nil)
		b.calls["p"] = 200
		clock += 15 * time.Second
		want(t, broken.name+" back", b.at(t, clock), "firing p")
	}
	want(t, "told", fmt.Sprint(b.teller.told), "[firing p]")
}

// TestARestartForgetsAndRepeatsNothing: pending goes on pending, firing keeps its beginning
// and is told once.
func TestARestartForgetsAndRepeatsNothing(t *testing.T) {
	b := newBench(t, high)
	r := rules(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.restart(r)
	want(t, "pending goes on", b.at(t, 30*time.Second), "firing p")
	fired := *b.m.Alerts()[0].FiredAt
	b.restart(r)
	want(t, "firing goes on", b.at(t, 45*time.Second), "firing p")
	if got := *b.m.Alerts()[0].FiredAt; !got.Equal(fired) {
		t.Errorf("starts at %v, was %v", got, fired)
	}
	b.calls["p"] = 100
	b.restart(r)
	want(t, "kept from the restart on", b.at(t, 60*time.Second), "firing p")
	want(t, "resolved", b.at(t, 2*time.Minute), "resolved p")
	b.restart(r)
	want(t, "still told", b.at(t, 3*time.Minute), "resolved p")
	want(t, "told", fmt.Sprint(b.teller.told), "[firing p resolved p]")
}

// TestWhoIsAwayIsToldLater, and others are not told twice for it.
func TestWhoIsAwayIsToldLater(t *testing.T) {
	b := newBench(t, high)
	away := &teller{name: "away", err: errors.New("refused")}
	b.m = alerts.New(alerts.Options{Source: b.world, Journal: b.journal, Rules: rules(t, high), Tellers: []alerts.Teller{b.teller, away}, Now: func() time.Time { return b.now }})
	b.calls["p"] = 200
	b.at(t, 0)
	for i := range 3 {
		b.now = start.Add(30*time.Second + time.Duration(i)*15*time.Second)
		if err := b.m.Evaluate(t.Context()); err == nil || !strings.Contains(err.Error(), "away: refused") {
			t.Errorf("%v", err)
		}
	}
	away.err = nil
	b.at(t, 90*time.Second)
	want(t, "who was there", fmt.Sprint(b.teller.told), "[firing p]")
	want(t, "who was away", fmt.Sprint(away.told), "[firing p]")
}

// TestRulesThatAreGoneAreResolved, as are those that group otherwise.
func TestRulesThatAreGoneAreResolved(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.at(t, 30*time.Second)
	b.m.SetRules(rules(t, strings.ReplaceAll(high, "[provider]", "[tenant, provider]")))
	want(t, "grouped otherwise", b.at(t, 45*time.Second), "resolved p; pending t,p")
	b.m.SetRules(rules(t, "rules: []"))
	want(t, "gone", b.at(t, 60*time.Second), "resolved p")
}

// TestOnlyTheLeaderEvaluates; who takes over goes on where the other was.
func TestOnlyTheLeaderEvaluates(t *testing.T) {
	b := newBench(t, high)
	l := &lease{}
	b.lease = l
	b.m = alerts.New(alerts.Options{Source: b.world, Journal: b.journal, Lease: l, Rules: rules(t, high), Tellers: []alerts.Teller{b.teller}, Now: func() time.Time { return b.now }})
	other := alerts.New(alerts.Options{Source: b.world, Journal: b.journal, Rules: rules(t, high), Tellers: []alerts.Teller{b.teller}, Now: func() time.Time { return b.now }})
	b.calls["p"] = 200
	for _, after := range []time.Duration{0, 30 * time.Second} {
		b.now = start.Add(after)
		if err := other.Evaluate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	asked := b.queries
	want(t, "shows what the leader found", b.at(t, 31*time.Second), "firing p")
	if b.queries != asked || b.m.Last().Leading {
		t.Error("it evaluates without the lease")
	}
	l.held = true
	want(t, "takes over", b.at(t, 45*time.Second), "firing p")
	want(t, "told once", fmt.Sprint(b.teller.told), "[firing p]")
}

// TestALeaseLostInASlowEvaluationChangesNothing: another analyzer has begun the same
// meanwhile, and only that is there.
func TestALeaseLostInASlowEvaluationChangesNothing(t *testing.T) {
	b := newBench(t, high)
	other := alerts.New(alerts.Options{Source: b.world, Journal: b.journal, Rules: rules(t, high), Tellers: []alerts.Teller{b.teller}, Now: func() time.Time { return b.now }})
	b.calls["p"] = 200
	b.during = func() {
		b.during, b.lease.held = nil, false
		b.now = start.Add(20 * time.Second)
		if err := other.Evaluate(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := b.m.Evaluate(t.Context()); err == nil || b.m.Last().Leading {
		t.Errorf("the evaluation that lost its lease: %v", err)
	}
	if len(b.journal.saved) != 1 {
		t.Errorf("%d episodes, want the one of the analyzer that leads", len(b.journal.saved))
	}
	b.lease.held = true
	want(t, "goes on with the other's", b.at(t, time.Minute), "firing p")
	if got := b.m.Alerts()[0].ActiveAt; !got.Equal(start.Add(20 * time.Second)) {
		t.Errorf("active since %v", got)
	}
	want(t, "told once", fmt.Sprint(b.teller.told), "[firing p]")
}

// TestEpisodesBegunTwiceAreOneForWhoLeadsNext: all but the latest are resolved, and who
// was told of them is told that.
func TestEpisodesBegunTwiceAreOneForWhoLeadsNext(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	for i := range 3 { // each sees nothing of the others until its end
		alone := &memory{saved: map[string]string{}}
		m := alerts.New(alerts.Options{Source: b.world, Journal: alone, Rules: rules(t, high), Tellers: []alerts.Teller{b.teller}, Now: func() time.Time { return b.now }})
		for _, after := range []time.Duration{0, 30 * time.Second} {
			b.now = start.Add(time.Duration(i)*time.Second + after)
			if err := m.Evaluate(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		maps.Copy(b.journal.saved, alone.saved)
	}
	b.restart(rules(t, high))
	want(t, "one goes on", b.at(t, time.Minute), "firing p")
	states := map[alerts.Status]int{}
	all, err := b.journal.Load(t.Context())
	for _, a := range all {
		states[a.Status]++
	}
	if err != nil || states[alerts.Firing] != 1 || states[alerts.Resolved] != 2 {
		t.Errorf("the journal: %v, %v", states, err)
	}
	b.at(t, 75*time.Second)
	want(t, "told", fmt.Sprint(b.teller.told), "[firing p firing p firing p resolved p resolved p]")
}

type lease struct {
	held bool
	err  error
}

func (l *lease) Hold(context.Context) (bool, error) { return l.held && l.err == nil, l.err }

// TestATellerThatHangsKeepsNobodyWaiting: others are told in the same evaluation, which
// ends in seconds however many alerts there are.
func TestATellerThatHangsKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, high)
		b.m = alerts.New(alerts.Options{
			Source: b.world, Rules: rules(t, strings.Replace(high, "for: 30s", "for: 0s", 1)), Sinks: []alerts.Sink{b.sink}, Tellers: []alerts.Teller{hanging{}, b.teller},
			Now: func() time.Time { return b.now },
		})
		for i := range 100 {
			b.calls[fmt.Sprint("p", i)] = 200
		}
		began := time.Now()
		if err := b.m.Evaluate(t.Context()); err == nil {
			t.Error("no error of the one that hangs")
		}
		if took := time.Since(began); took > 10*time.Second || b.sink.deliveries != 1 || len(b.teller.told) != 100 {
			t.Errorf("took %v, %d deliveries, %d told", took, b.sink.deliveries, len(b.teller.told))
		}
	})
}

type hanging struct{}

func (hanging) Name() string { return "hanging" }

func (hanging) Tell(ctx context.Context, _ *alerts.Alert) error { <-ctx.Done(); return ctx.Err() }

// TestAStoreThatHangsEndsAnEvaluation, and alerts are told on.
func TestAStoreThatHangsEndsAnEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, high)
		b.calls["p"] = 200
		b.at(t, 0)
		b.at(t, 30*time.Second)
		b.world.hang = true
		b.now = start.Add(time.Minute)
		began, before := time.Now(), b.sink.deliveries
		if err := b.m.Evaluate(t.Context()); err == nil || time.Since(began) > time.Minute || b.sink.deliveries != before+1 {
			t.Errorf("%v after %v, %d deliveries", err, time.Since(began), b.sink.deliveries-before)
		}
	})
}

// TestRulesReadAgainReachFiringAlerts: their labels, and whom they group.
func TestRulesReadAgainReachFiringAlerts(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.at(t, 30*time.Second)
	b.m.SetRules(rules(t, strings.Replace(high, "for: 30s", "for: 30s, severity: page, labels: {team: sre}", 1)))
	want(t, "goes on", b.at(t, 45*time.Second), "firing p")
	if l := b.m.Alerts()[0].Labels; l["severity"] != "page" || l["team"] != "sre" {
		t.Errorf("%v", l)
	}
	b.m.SetRules(rules(t, strings.NewReplacer("[provider]", "[tenant]", `{{label "provider"}}`, "").Replace(high)))
	want(t, "as many dimensions, others", b.at(t, time.Minute), "resolved p; pending t")
}

// TestAGapStartsPendingAnew: nobody saw whether the condition held meanwhile.
func TestAGapStartsPendingAnew(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.restart(rules(t, high))
	want(t, "days later", b.at(t, 72*time.Hour), "pending p")
	if at := b.m.Alerts()[0].ActiveAt; !at.Equal(b.now) {
		t.Errorf("since %v", at)
	}
}

// TestWhoNeverHeardOfAnAlertIsNotToldThatItEnded.
func TestWhoNeverHeardOfAnAlertIsNotToldThatItEnded(t *testing.T) {
	b := newBench(t, high)
	b.calls["p"] = 200
	b.at(t, 0)
	b.at(t, 30*time.Second)
	b.calls["p"] = 100
	b.at(t, 2*time.Minute)
	b.teller = &teller{name: "new"}
	b.restart(rules(t, high))
	b.at(t, 3*time.Minute)
	want(t, "told", fmt.Sprint(b.teller.told), "[]")
}

// TestLongWindowsAreNotReadEveryTime: a sixtieth of the window may pass.
func TestLongWindowsAreNotReadEveryTime(t *testing.T) {
	b := newBench(t, `rules: [{alert: Long, expr: 'retries[1h] > 1 and retries[5m] > 1'}]`)
	for i := range 8 {
		b.at(t, time.Duration(i)*15*time.Second)
	}
	if b.queries != 8+2 {
		t.Errorf("%d reports in 2 minutes", b.queries)
	}
}

// TestServiceFiguresNeedNoOperations, and an unknown one fires nothing.
func TestServiceFiguresNeedNoOperations(t *testing.T) {
	b := newBench(t, `rules: [{alert: Missing, expr: 'newest_attempt_age_ms > 1000', by: []}]`)
	want(t, "unknown", b.at(t, 0), "")
	b.service["newest_attempt_age_ms"] = 1001
	want(t, "known", b.at(t, 15*time.Second), "firing ")
	if labels := b.m.Alerts()[0].Labels; len(labels) != 2 {
		t.Errorf("labels %v", labels)
	}
}

// TestStatesComeFromTheDetector, of the same series only.
func TestStatesComeFromTheDetector(t *testing.T) {
	b := newBench(t, high)
	r := rules(t, `rules: [{alert: M, expr: 'state(masked_outage)'}]`)
	b.calls["p"], b.calls["q"] = 100, 100
	b.m = alerts.New(alerts.Options{Source: b.world, Rules: r, Verdicts: verdicts{"q": "masked_outage"}, Now: func() time.Time { return b.now }})
	want(t, "of its own series", b.at(t, 0), "firing t,q,")
}

type verdicts map[string]string

func (v verdicts) State(series map[metrics.Dimension]string, name string) expr.Truth {
	if v[series["provider"]] == name {
		return expr.True
	}
	return expr.False
}

// TestDefaultRulesLoad: those that the product promises are there, each with a summary.
func TestDefaultRulesLoad(t *testing.T) {
	names := map[string]bool{}
	for _, r := range alerts.DefaultRules().Rules {
		names[r.Name] = true
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Name)
		}
	}
	for _, n := range []string{
		"AmplificationHigh", "RetryRatioHigh", "MaskedOutage", "VisibleOutage", "MetastableRetries", "OrphanedSpendRate", "QuotaExhausted",
		"RetryBudgetExhausted", "HiddenRetryLayer", "UnkeyedRetriesAfterSend", "RetryAfterIgnored", "KeyConflicts", "TelemetryMissing", "TelemetryIncomplete",
	} {
		if !names[n] {
			t.Errorf("no default rule %s", n)
		}
	}
}

// TestFaultsOfRulesAreNamedWithTheirLine, all of them at once.
func TestFaultsOfRulesAreNamedWithTheirLine(t *testing.T) {
	for text, faults := range map[string][]string{
		"":                       {"rules.yml:1: is empty"},
		"rules: 3":               {"rules.yml:1: has no list of rules"},
		"rulez: []":              {`rules.yml:1: unknown key "rulez"`, "has no list"},
		"rules: [":               {"rules.yml:1:"},
		"rules:\n\t- x":          {"rules.yml:2:"},
		"rules: [3]":             {"rules.yml:1: expected keys"},
		"rules:\n  - {alert: A}": {"rules.yml:2: alert A has no expr"},
		"rules:\n  - {alert: 'a b', expr: 'retries[5m] > 1'}": {"needs a name of letters"},
		"rules:\n  - alert: A\n    expr: retries[5m] >\n    by: [colour, executed_model, tenant, tenant]\n    for: soon\n    severity: loud\n    labels: {tenant: x, 'a-b': y}\n    min_operations: -1": {
			"rules.yml:3: expr: column 14", `rules.yml:4: by: cannot group by "colour"`, `cannot group by "executed_model"`, "by names tenant twice",
			"rules.yml:5: no positive duration", "rules.yml:6: severity must be one of", "rules.yml:7: the label tenant is set", "rules.yml:7: no name of a label", "rules.yml:8: must be a whole number",
		},
		"rules:\n  - {alert: A, expr: 'retries > 1'}":                                                                                        {"retries needs a window, such as retries[5m]"},
		"rules:\n  - {alert: A, expr: 'errors_by_class[5m] > 1'}":                                                                            {"write errors_by_class{"},
		"rules:\n  - {alert: A, expr: 'retries{x}[5m] > 1'}":                                                                                 {"without {}"},
		"rules:\n  - {alert: A, expr: 'dead_letters[5m] > 1'}":                                                                               {"write it without a window"},
		"rules:\n  - {alert: A, expr: 'amplification[999999999d] > 1'}":                                                                      {"longer than 31d"},
		"rules:\n  - {alert: A, expr: 'amplification[213504d] > 1'}":                                                                         {"longer than 31d"},
		"rules:\n  - {alert: A, expr: 'state(outage)', by: [service]}":                                                                       {"the detector judges by"},
		"rules:\n  - {alert: A, expr: 'retries[5m] > 1', annotations: {s: '{{if eq (state) \"outage\"}}{{figure \"nothing[5m]\"}}{{end}}'}}": {"unknown figure"},
		"rules:\n  - {alert: A, expr: 'state(happy)'}":                                                                                       {`unknown state "happy"`},
		"rules:\n  - {alert: A, expr: 'dead_letters > 1', min_operations: 3}":                                                                {"min_operations needs a condition with a window"},
		"rules:\n  - {alert: A, expr: 'retries[5m] > 1', annotations: {s: '{{figure \"nothing[5m]\"}}'}}":                                    {"annotation s:", "unknown figure"},
		"rules:\n  - {alert: A, expr: 'retries[5m] > 1', annotations: {s: '{{label \"service\"}}'}}":                                         {"has no label service"},
		"rules:\n  - {alert: A, expr: 'retries[5m] > 1', annotations: {s: '{{'}}":                                                            {"annotation s:"},
		"rules:\n  - {alert: A, expr: 'retries[5m] > 1'}\n  - {alert: A, expr: 'retries[5m] > 1'}":                                           {"rules.yml:3: alert A is also at line 2"},
		"rules:\n  - {alert: A, alert: B, expr: 'retries[5m] > 1'}":                                                                          {"rules.yml:2:"},
		"rules:\n  - alert: A\n    expr: retries[5m] > 1\n    annotations:\n      a: '{{figure \"nothing[5m]\"}}'\n      b: fine\n      c: '{{label \"nothing\"}}'": {
			"rules.yml:5: annotation a: unknown figure", "rules.yml:7: annotation c:",
		},
		"rules: []\n---\nrules: []":                              {"rules.yml:2: a second document"},
		"rules: []\n--- [":                                       {"rules.yml:2:"},
		"rules:\n  - {alert: A,\n     expr: '\xff'}":             {"rules.yml:3: no UTF-8"},
		"rules:\n  - {by: 3,\n     alert: A,\n     expr: 'x'}\n": {"rules.yml:2: by must be a list, such as [tenant, provider, model], or []\nrules.yml:4: expr"},
	} {
		_, err := alerts.Load("rules.yml", strings.NewReader(text))
		for _, f := range faults {
			if err == nil || !strings.Contains(err.Error(), f) {
				t.Errorf("%q: %v does not say %q", text, err, f)
			}
		}
	}
}

// TestAnnotationsEnd: no text keeps an evaluation, or the check of a file, for long, or
// takes much memory.
func TestAnnotationsEnd(t *testing.T) {
	for _, text := range []string{
		"{{range 10000000000}}x{{end}}", "{{range 10000000000}}{{end}}", "{{if state}}{{else}}{{range 10000000000}}{{end}}{{end}}",
		`{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`, `{{block "a" .}}{{end}}`, `{{template "nothing"}}`,
		`{{with "x"}}{{with printf "%s%s" . .}}{{.}}{{end}}{{end}}`,
		`{{$x := "x"}}{{$x = printf "%s%s" $x $x}}{{$x}}`, `{{if $x := "x"}}{{$x}}{{end}}`,
	} {
		if _, err := alerts.Load("r", strings.NewReader("rules: [{alert: A, expr: 'retries[5m] > 1', annotations: {s: '"+text+"'}}]")); err == nil || !strings.Contains(err.Error(), "r:1: annotation s: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`{{printf "%999999d" 1}}{{printf "%999999d" 1}}`, `{{if eq (state) "outage"}}a{{else if state}}b{{else}}c{{end}}`, "{{/* nothing */}}", ""} {
		if _, err := alerts.Load("r", strings.NewReader("rules: [{alert: A, expr: 'retries[5m] > 1', annotations: {s: '"+text+"'}}]")); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzLoad: no text panics; every fault has a line.
func FuzzLoad(f *testing.F) {
	f.Add(alerts.DefaultRulesYAML())
	f.Add("rules: [{alert: A, expr: 'retries[5m] > 1', annotations: {s: '{{figure \"retries[5m]\"}}'}}]")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := alerts.Load("r", strings.NewReader(s)); err != nil {
			var at *alerts.RuleError
			if !errors.As(err, &at) || at.Line < 1 {
				t.Fatalf("%q: %v", s, err)
			}
		}
	})
}

// TestLabelsHoldNoFigure: the same labels whatever the figures are.
func TestLabelsHoldNoFigure(t *testing.T) {
	b := newBench(t, high)
	var seen []string
	for i, calls := range []uint64{150, 170, 190} {
		b.calls["p"] = calls
		b.at(t, time.Duration(i)*15*time.Second)
		seen = append(seen, fmt.Sprint(b.m.Alerts()[0].Labels))
	}
	if seen[0] != seen[1] || seen[0] != seen[2] {
		t.Errorf("%v", seen)
	}
}
