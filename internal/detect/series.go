package detect

import (
	"hash/fnv"
	"math"
	"time"
)

// series is what is remembered of one.
type series struct {
	key     Key
	turn    int64 // see due
	state   State
	since   time.Time
	began   time.Time // of the trouble; zero = none
	fell    bool      // first attempts have done worse than usual in it
	last    time.Time // evaluation
	judged  time.Time // last evaluation with enough operations
	strikes int       // evaluations in a row that said what pages
	strike  State     // said by them
	said    time.Time // last evaluation that said what pages
	clean   int       // evaluations in a row without votes, while recovering

	history   history
	base      baseline
	shape     *profile // nil until something is learned
	drifts    [6]float64
	sustained float64 // CUSUM of what is beyond flaky
	shifted   [2]int  // samples in a row in which p50, p99 were elsewhere: above 0 higher, below 0 lower
	learned   int
	classes   classRates
}

func newSeries(k Key, at time.Time) *series {
	return &series{key: k, turn: turnOf(k), state: Healthy, since: at, base: coldBaseline()}
}

// move moves what is remembered of times.
func (s *series) move(by time.Duration) {
	for _, at := range []*time.Time{&s.since, &s.began, &s.last, &s.judged, &s.said} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
}

// evaluate judges a sample and learns from it.
func (s *series) evaluate(o *Options, m *baseliner, sample *Sample) Evaluation {
	at := sample.At
	e := Evaluation{At: at, Key: s.key, Votes: []Vote{}, Signs: []Sign{}, Unmet: []string{}, Tests: []Test{}, Figures: sample.Window.Figures(), Recent: sample.Recent.Figures(), Baseline: s.base.Source}
	before := s.state
	if sample.Window.Operations >= o.MinOperations {
		j := o.judge(sample, &s.base, s.shape, &s.drifts, priors{s.sustained, s.history.flaky(o.FlakyExcess / 2)})
		s.step(o, sample, &j)
		s.describe(&e, sample, &j)
		s.learn(o, m, sample, &j)
		s.judged = at
	} else {
		s.strikes = 0
		if s.state != Healthy && at.Sub(s.judged) >= o.HoldSmall {
			s.enter(Healthy, at)
		}
	}
	if s.state != before {
		e.Previous = before
	}
	e.State, e.Since, e.Incident = s.state, s.since, s.began
	s.last = at
	return e
}

// step moves the state on.
func (s *series) step(o *Options, sample *Sample, j *judgement) {
	said := o.verdict(j)
	if s.state.Pages() && j.tests[testErrors].Held {
		said = Outage // that it is no blip is known already
	}
	if !said.Pages() {
		s.strikes = 0
		s.calm(o, sample, j, said)
		return
	}
	if said != s.strike {
		s.strikes = 0
	}
	s.strike, s.said = said, sample.At
	if s.strikes++; s.strikes >= o.Confirm || s.state.Pages() {
		s.enter(said, sample.At)
	}
}

// verdict is what a judgement says by itself.
func (o *Options) verdict(j *judgement) State {
	switch {
	case j.errors:
		return Outage
	case j.climbing() && j.others() >= 2 && len(j.unmet) == 0:
		return MaskedOutage
	case j.flaky:
		return Flaky
	}
	return Healthy
}

// unmet names the conditions of a masked outage beside the votes that are not met; see
// docs/detector.md.
func (o *Options) unmet(j *judgement, beside priors) []string {
	edge := o.Joint
	if beside.flaky {
		edge *= stillFlaky
	}
	out := []string{}
	for _, c := range [...]struct {
		name string
		met  bool
	}{
		{"errors_flat", !j.tests[testErrors].Held}, {"goes_on", j.fresh}, {"rescued", j.rescued}, {"attempts_fail", j.failing}, {"beyond_flaky", j.beyond},
		{"joint", j.joint >= edge || beside.sustained >= o.Votes.Drift},
	} {
		if !c.met {
			out = append(out, c.name)
		}
	}
	return out
}

// calm is a step without a verdict that pages.
func (s *series) calm(o *Options, sample *Sample, j *judgement, said State) {
	switch {
	case s.state.Pages() && s.goesOn(o, sample, j): // hysteresis
	case s.state.Pages():
		s.enter(Recovering, sample.At)
		s.clean = 1
	case s.state == Recovering:
		if s.clean++; s.clean > o.Clean {
			s.enter(said, sample.At)
		}
	default:
		s.enter(said, sample.At)
	}
}

// goesOn tells whether a state that pages stays without being said again: while a window
// that said so is not over, unless the newest operations are well, and after it while they
// are as bad as that.
func (s *series) goesOn(o *Options, sample *Sample, j *judgement) bool {
	c := j.comparison
	newest := c.newest()
	if newest.Operations < steady {
		newest = &sample.Window
	}
	held := sample.At.Sub(s.said) < holds
	if s.state == Outage {
		return c.errorsGoOn(newest, held)
	}
	excess := c.excess(newest)
	return held && excess >= max(o.FlakyExcess/2, c.b.Calls.high(), c.b.Tries.high()) || excess >= c.mostUsual() && j.others() > 0
}

// A state that pages is held for so long after it was last said, and what ends it sooner is
// so many operations that are well.
const (
	holds  = 2 * Span
	steady = 50
)

func (s *series) enter(state State, at time.Time) {
	if state == s.state {
		return
	}
	if state.Pages() && s.began.IsZero() {
		s.began = at
		s.history.waiting = s.history.waiting[:0] // its run-up is not usual
	}
	if state == Healthy || state == Flaky {
		s.began, s.fell = time.Time{}, false
	}
	s.state, s.since, s.clean = state, at, 0
}

// describe fills in what was judged.
func (s *series) describe(e *Evaluation, sample *Sample, j *judgement) {
	e.Judged, e.Tests, e.Joint, e.Unmet = true, append(e.Tests, j.tests[:]...), Number(j.joint), j.unmet
	for i := range j.tests {
		if j.tests[i].Held {
			e.Votes = append(e.Votes, j.tests[i].Vote)
		}
	}
	e.Signs = append(e.Signs, s.signs(sample, j)...)
	e.Classes = s.classes.shares(sample)
	if s.base.Source == SourceDay && s.shape.known(hourOfWeek(sample.At)) {
		e.Baseline = SourceWeek
	}
}

// Edges of the signs.
const (
	metastableExcess = 0.2
	metastableSlack  = 0.02
	fallen           = 0.05
	hiddenShare      = 0.1
	hiddenFactor     = 1.5
	hiddenCalls      = 5
)

func (s *series) signs(sample *Sample, j *judgement) (signs []Sign) {
	r := &sample.Recent
	calls, _ := r.extra()
	first := ratio(r.FirstAttempts-r.firstFailed(), r.FirstAttempts) - s.base.FirstSuccess
	s.fell = s.fell || !s.began.IsZero() && r.FirstAttempts > 0 && first < -fallen
	if s.fell && j.fresh && ratio(calls, r.Operations) >= metastableExcess && first >= -metastableSlack {
		signs = append(signs, SignMetastable)
	}
	w := &sample.Window
	if w.HiddenCalls >= hiddenCalls && ratio(w.HiddenCalls, w.Operations) >= hiddenShare ||
		w.LayerUpstreamCalls-w.LayerAttempts >= hiddenCalls && ratio(w.LayerUpstreamCalls, w.LayerAttempts) >= hiddenFactor {
		signs = append(signs, SignHiddenLayer)
	}
	return signs
}

// learn takes a sample into the history, every learnEvery, unless it is part of an incident.
func (s *series) learn(o *Options, m *baseliner, sample *Sample, j *judgement) {
	if !s.due(sample.At) {
		return
	}
	s.drift(o, j)
	s.sustained = o.cusum(s.sustained, j.sustained)
	if (s.state.Pages() || s.state == Recovering) && !s.neverOtherwise(sample) || unusual(&sample.Window.Counts) {
		return
	}
	s.shift(j)
	e, ok := s.history.take(newEntry(sample))
	s.classes.learn(sample)
	if !ok || len(s.history.ring) < warm {
		s.base = m.make(&s.history, s.shape)
	}
	if !ok {
		return
	}
	if s.shape == nil {
		s.shape = &profile{}
	}
	s.shape.learn(e, &s.base)
	if s.learned++; s.learned <= 3*warm || s.learned%3 == 0 {
		s.base = m.make(&s.history, s.shape)
	}
}

// neverOtherwise tells of an outage that nothing precedes, and in which few fail (callers whose
// inputs are refused, say), that it has lasted for a day: that is what is usual.
func (s *series) neverOtherwise(sample *Sample) bool {
	w := &sample.Window
	return s.state == Outage && len(s.history.ring) == 0 && sample.At.Sub(s.since) >= 24*time.Hour &&
		ratio(w.Failed, w.Failed+w.Succeeded) < mostUsual
}

// stillFlaky is by how much more it takes to say that a provider which has been flaky for ten
// minutes is a masked outage now: what begins at once was not flaky before.
const stillFlaky = 1.8

// unusual tells that so much is retried as is usual for nobody.
func unusual(c *Counts) bool {
	calls, tries := c.extra()
	return ratio(max(calls, tries), c.Operations) > mostUsual
}

// due spreads the series over the time between samples.
func (s *series) due(at time.Time) bool {
	return (at.UnixMilli()/Interval.Milliseconds()+s.turn)%int64(SpanSlots) == 0
}

// turnOf is when a series learns: the same in every process.
func turnOf(k Key) int64 {
	h := fnv.New32a()
	for _, part := range []string{k.Tenant, k.Provider, k.Model} {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return int64(h.Sum32())
}

// Of a CUSUM: what is taken off every score, and the most that one adds. It is at most so
// many times the edge: what was there for hours is forgotten half an hour after its end.
const (
	driftSlack = 1
	driftMost  = 3
	driftEdges = 2
)

func (o *Options) cusum(sum, score float64) float64 {
	return min(driftEdges*o.Votes.Drift, max(0, sum+min(driftMost, score)-driftSlack))
}

// drift sums up how far windows that share no operation lie on the wrong side: what comes
// too slowly for any one of them.
func (s *series) drift(o *Options, j *judgement) {
	if s.base.Source != SourceDay {
		return
	}
	for i := range s.drifts {
		s.drifts[i] = o.cusum(s.drifts[i], float64(j.tests[i].Score))
	}
}

// settled is how many samples in a row make another level of latency the usual one: two
// hours.
const settled = 24

// shift notices a latency that has moved for good while nothing is retried: a deploy,
// another model behind the name. It forgets what was before.
func (s *series) shift(j *judgement) {
	if s.base.Source != SourceDay {
		return
	}
	for i, t := range [...]int{testP50, testP99} {
		score := float64(j.tests[t].Score)
		switch {
		case j.climbing() || math.Abs(score) < 2:
			s.shifted[i] = 0
		case score > 0:
			s.shifted[i] = max(0, s.shifted[i]) + 1
		default:
			s.shifted[i] = min(0, s.shifted[i]) - 1
		}
		if s.shifted[i] >= settled || s.shifted[i] <= -settled {
			s.forget(t)
			s.shifted[i] = 0
		}
	}
}

// forget the latencies of before the shift.
func (s *series) forget(test int) {
	nan := float32(math.NaN())
	s.history.split(settled-quarantine, func(e *entry) {
		for p := range e.Latency {
			if test == testP50 {
				e.Latency[p].P50, e.Latency[p].Answer = nan, nan
			} else {
				e.Latency[p].P99 = nan
			}
		}
	})
	s.drifts[test] = 0
}
