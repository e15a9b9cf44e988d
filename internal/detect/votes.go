package detect

import "math"

// Vote is the name of a figure that has left its baseline.
type Vote string

// Votes. Of a masked outage one of the first two is required.
const (
	VoteAmplification Vote = "amplification"
	VoteRetryRatio    Vote = "retry_ratio"
	VoteRetrySuccess  Vote = "retry_success_ratio"
	VoteP50           Vote = "latency_ms{p50}"
	VoteP99           Vote = "latency_ms{p99}"
	VoteError         Vote = "error_ratio" // no vote for a masked outage: against it
)

// Test is how a figure was compared with its baseline.
type Test struct {
	Vote     Vote   `json:"vote"`
	Value    Number `json:"value"`    // over the window; null = no such thing
	Baseline Number `json:"baseline"` // of the same age; null = not known
	Score    Number `json:"score"`    // standard deviations to the wrong side: the larger of window and last 2 minutes
	Drift    Number `json:"drift"`    // CUSUM of the scores of former windows
	Held     bool   `json:"held"`

	change float64 // of the score's part
}

// judgement is what the figures of one sample say, before the state has its word.
type judgement struct {
	comparison
	unmet     []string // conditions of a masked outage beside the votes
	tests     [6]Test
	joint     float64 // see Options.Joint; the larger of window and last 2 minutes
	rescued   bool    // retries hide the trouble
	failing   bool    // attempts fail more than usual, as far as hedges make more of them
	beyond    bool    // more is called or tried than a flaky provider makes
	fresh     bool    // more is called and tried than usual without the three worst slots of the last 2 minutes, too
	sustained float64 // how far calls or tries are beyond what a flaky provider makes for long
	errors    bool    // the error ratio is no longer flat
	flaky     bool    // there are more retries than usual
}

// positions of tests.
const (
	testCalls = iota
	testTries
	testSuccess
	testP50
	testP99
	testErrors
)

// priors are what is known of a series before it is judged.
type priors struct {
	sustained float64 // CUSUM of what is beyond flaky
	flaky     bool    // it has been flaky for a while, and no worse than that
}

// judge compares a sample with the baseline of its series; shape and sums of drifts are
// the series'.
func (o *Options) judge(s *Sample, b *baseline, shape *profile, drifts *[6]float64, beside priors) judgement {
	c := comparison{o: o, s: s, b: shaped(b, shape, hourOfWeek(s.At))}
	c.late = c.b.P50[ofWindow].Known && logMS(&s.Window, s.Window.P25MS) > c.b.P50[ofWindow].Log+math.Log(lateFactor)
	var j judgement
	var scores [parts][6]float64
	for part, v := range s.parts() {
		for i, compare := range [...]func(int, *View) (score, change float64){c.calls, c.tries, c.success, c.p50, c.p99, c.errors} {
			score, change := compare(part, v)
			scores[part][i] = score
			if part == 0 || score >= float64(j.tests[i].Score) {
				j.tests[i].Score, j.tests[i].change = Number(score), change
			}
		}
		j.joint = max(j.joint, c.joint(part, v, scores[part][testP99]))
	}
	c.describe(&j, drifts)
	usual := max(o.FlakyExcess, c.b.Calls.high(), c.b.Tries.high())
	j.rescued, j.beyond = c.rescued(), max(c.excess(&s.Window), c.excess(&s.Recent)) > usual
	j.failing = c.attemptsFail(&s.Window) || c.attemptsFail(&s.Recent)
	j.fresh, j.flaky = c.fresh(), j.tests[testCalls].Score >= 3 || j.tests[testTries].Score >= 3
	j.sustained = c.beyondBy(&s.Window, o.SustainedExcess)
	j.errors = j.tests[testErrors].Held && c.errorsFresh()
	j.unmet, j.comparison = o.unmet(&j, beside), c
	return j
}

// shaped moves a baseline to an hour of the week.
func shaped(b *baseline, shape *profile, hour uint8) baseline {
	out := *b
	if b.Source != SourceDay || !shape.known(hour) {
		return out
	}
	out.Source = SourceWeek
	for p := range parts {
		out.P50[p].Log += shape.at(shapeP50, hour)
		out.P99[p].Log += shape.at(shapeP99, hour)
		out.Answer[p].Log += shape.at(shapeP50, hour)
	}
	out.Calls.Mean = max(out.Calls.Mean, shape.at(shapeCalls, hour))
	out.Tries.Mean = max(out.Tries.Mean, shape.at(shapeTries, hour))
	out.Error.Mean = max(out.Error.Mean, shape.at(shapeErrors, hour))
	return out
}

// comparison of a sample with a baseline. Changes are those of VoteOptions.
type comparison struct {
	o    *Options
	s    *Sample
	b    baseline
	late bool // hardly an operation is as fast as usual: duplicates are sent because of it
}

// lateFactor is how much slower than the usual median the fastest quarter is then.
const lateFactor = 2

// slowed compares a latency with its baseline and, while that is young or none, with what
// the same operations would have taken without retries, too: the surer counts.
func (c *comparison) slowed(v *View, ms, answerMS int64, l level) (score, change float64) {
	score, change = slower(v, ms, l)
	if c.b.Source != SourceFloors && c.b.Source != SourceYoung {
		return score, change
	}
	own, by := slower(v, ms, level{logMS(v, answerMS), youngP50Noise, true})
	if own > score {
		return own, by
	}
	return score, change
}

// extra are the calls and tries that count: see [Counts.extra].
func (c *comparison) extra(v *Counts) (calls, tries int64) {
	if c.late {
		return v.unasked()
	}
	return v.extra()
}

// burst is how many calls or tries beyond the first an operation in trouble makes, in
// the mean: they are no independent events.
// With a flaky provider it is hardly more than one.
const (
	burst      = 1.5
	flakyBurst = 1.2
	// flakySuccess is the retry success ratio of a provider that fails as independently at the
	// second attempt as at the first.
	flakySuccess = 0.85
)

func (c *comparison) calls(_ int, v *View) (score, change float64) {
	calls, _ := c.extra(&v.Counts)
	return over(calls, v.Operations, c.b.Calls)
}

func (c *comparison) tries(_ int, v *View) (score, change float64) {
	_, tries := c.extra(&v.Counts)
	return over(tries, v.Operations, c.b.Tries)
}

func over(extra, operations int64, r rate) (score, change float64) {
	if operations == 0 {
		return 0, 0
	}
	return poissonScore(float64(extra)/burst, float64(operations)*r.high()/burst), ratio(extra, operations) - r.Mean
}

// success falls against its baseline, which is at most highSuccess: a ratio as high as
// that is not low, whatever it was before.
func (c *comparison) success(_ int, v *View) (score, change float64) {
	retries, successes := v.netRetries()
	if retries == 0 {
		return 0, 0
	}
	return binomialScore(retries-successes, retries, 1-c.b.Success), c.b.Success - ratio(successes, retries)
}

func (c *comparison) p50(part int, v *View) (score, change float64) {
	return c.slowed(v, v.P50MS, v.AnswerP50MS, c.b.P50[part])
}

func (c *comparison) p99(part int, v *View) (score, change float64) {
	return c.slowed(v, v.P99MS, v.AnswerP99MS, c.b.P99[part])
}

func slower(v *View, ms int64, l level) (score, change float64) {
	if !l.Known || v.Delivered < minDelivered {
		return 0, 0
	}
	d := math.Log(float64(max(ms, 1))) - l.Log
	return min(maxScore, d/l.deviation(v.Delivered)), math.Expm1(d)
}

func (c *comparison) errors(_ int, v *View) (score, change float64) {
	finished := v.Failed + v.Succeeded
	if v.Failed < 4 {
		return 0, 0
	}
	return binomialScore(v.Failed, finished, c.b.Error.high()), ratio(v.Failed, finished) - c.b.Error.Mean
}

// excess is the larger of amplification and retry ratio, without duplicates, less 1.
func (c *comparison) excess(v *View) float64 {
	calls, tries := c.extra(&v.Counts)
	return ratio(max(calls, tries), v.Operations)
}

// joint is how much all votes together are beyond a flaky provider: it calls and tries
// more than that, its answers are slow, and its retries fail.
func (c *comparison) joint(part int, v *View, p99 float64) float64 {
	if v.Operations == 0 {
		return 0
	}
	retries, successes := v.netRetries()
	hopes := binomialScore(retries-successes, retries, 1-min(flakySuccess, c.b.Success))
	answers, _ := slower(v, v.AnswerMS, c.b.Answer[part])
	return max(-4, min(c.beyond(v), 6)) + max(0, answers) + max(0, min(p99, 2))/2 + hopes
}

// beyond is how much more is called or tried than a flaky provider makes, or is usual if
// that is more; below 0 it is less.
func (c *comparison) beyond(v *View) float64 {
	return c.beyondBy(v, c.o.FlakyExcess)
}

func (c *comparison) beyondBy(v *View, flaky float64) float64 {
	n, excess, most := float64(v.Operations), c.excess(v), max(flaky, c.b.Calls.high(), c.b.Tries.high())
	if n == 0 {
		return 0
	}
	if excess > most {
		return poissonScore(n*excess/flakyBurst, n*most/flakyBurst)
	}
	return (excess - most) / math.Sqrt(flakyBurst*most/n)
}

func (c *comparison) mostUsual() float64 {
	return max(c.o.FlakyExcess, c.b.Calls.high(), c.b.Tries.high())
}

// rescued tells whether retries do hide the trouble: of the operations whose first attempt
// failed most have been delivered, and few of those that came to an end have failed. An
// outage that begins looks like a masked one until its operations give up.
func (c *comparison) rescued() bool {
	v := c.newest()
	if v.troubled() < 5 {
		v = &c.s.Window
	}
	if retries, successes := v.netRetries(); binomialScore(retries-successes, retries, hopeless) >= hopelessScore {
		return false
	}
	troubled := v.troubled()
	rescued := max(0, troubled-(v.Operations-v.Succeeded))
	return float64(rescued) >= rescuedShare*float64(troubled) && float64(v.Failed-failedAnyway) <= failedShare*float64(v.Failed+rescued)
}

// attemptsFail tells whether of the attempts more fail than of first ones as usual. Where a service
// hedges, twice as many attempts fail twice as often and nothing is worse; a layer below that
// sends again is another matter.
func (c *comparison) attemptsFail(v *View) bool {
	if ratio(v.Hedges, v.Operations) < hedgedShare || ratio(v.below(), v.Operations) >= hiddenShare {
		return true
	}
	usual := 1 - c.b.FirstSuccess
	return ratio(v.failed(), v.Attempts) >= usual+c.o.Votes.CallsChange && binomialScore(v.failed(), v.Attempts, usual) >= c.o.Votes.CallsScore
}

// hedgedShare of the operations: fewer hedges explain no page.
const hedgedShare = 0.1

// troubled operations are those whose first attempt failed; a duplicate that was refused
// did not.
func (v *View) troubled() int64 {
	return max(v.firstFailed(), v.Operations-v.Succeeded)
}

// newest are the operations of the last two minutes, or where answers take so long that of
// these only the quick ones are known, of the whole window.
func (c *comparison) newest() *View {
	if c.lateSlots() >= RecentSlots/4 {
		return &c.s.Window
	}
	return &c.s.Recent
}

// lateSlots are the newest slots of which many operations are not known yet: it takes twice
// the median latency until most are.
func (c *comparison) lateSlots() int {
	return min(int(2*c.s.Window.P50MS/Interval.Milliseconds()), SpanSlots-RecentSlots)
}

const (
	rescuedShare = 0.7 // of operations in trouble, those under way included
	failedShare  = 0.1 // of operations in trouble that came to an end
	failedAnyway = 1   // one proves nothing

	// Where more than half of the retries fail, and surely, operations will soon run out of
	// attempts.
	hopeless      = 0.5
	hopelessScore = 2
)

// fresh tells whether what is unusual goes on: it is there without the three worst of the
// newest slots too, so a blip of half a minute is none.
func (c *comparison) fresh() bool {
	known := c.s.Slots[:SpanSlots-c.lateSlots()]
	calls := trimmed(known, RecentSlots, trimmedSlots, func(s *Counts) (int64, int64) { n, _ := c.extra(s); return n, s.Operations })
	tries := trimmed(known, RecentSlots, trimmedSlots, func(s *Counts) (int64, int64) { _, n := c.extra(s); return n, s.Operations })
	troubled := trimmed(known, RecentSlots, trimmedSlots, func(s *Counts) (int64, int64) {
		return s.firstFailed(), s.FirstAttempts
	})
	change := c.o.Votes.CallsChange
	return calls.holds(c.b.Calls, change) || troubled.holds(rate{Mean: 1 - c.b.FirstSuccess}, change) || tries.holds(c.b.Tries, change)
}

// errorsFresh tells whether the errors are no blip: they are there without the worst of the
// newest slots, or, where operations take long to fail, without the worst of the window.
func (c *comparison) errorsFresh() bool {
	failed := func(s *Counts) (int64, int64) { return s.Failed, s.Failed + s.Succeeded }
	newest, all := trimmed(c.s.Slots[:], RecentSlots, trimmedErrorSlots, failed), trimmed(c.s.Slots[:], SpanSlots, trimmedErrorSlots, failed)
	return newest.holds(c.b.Error, c.o.Votes.ErrorChange/4) || all.holds(c.b.Error, c.o.Votes.ErrorChange/4)
}

// Of the newest slots in which operations are known, as many as Recent has, these are left out. Breakers stay open for a while after a
// blip, so its errors last longer than its retries.
const (
	trimmedSlots      = 3
	trimmedErrorSlots = 5
)

// remains are events and trials without the worst slots.
type remains struct{ num, den int64 }

// trimmed are the events of the newest slots that have any operations, without those with
// most events.
func trimmed(slots []Counts, newest, without int, of func(*Counts) (num, den int64)) remains {
	var worst [SpanSlots]int64
	var r remains
	taken := 0
	for i := len(slots) - 1; i >= 0 && taken < newest; i-- {
		if slots[i].Operations == 0 {
			continue
		}
		taken++
		num, den := of(&slots[i])
		r.num, r.den = r.num+num, r.den+den
		for k := range without { // the worst in descending order, the rest drops out
			if num > worst[k] {
				num, worst[k] = worst[k], num
			}
		}
	}
	for _, n := range worst[:without] {
		r.num -= n
	}
	r.den = r.den * int64(newest-without) / int64(newest)
	return r
}

// holds tells whether what remains is still unusual, if less surely so.
func (r remains) holds(usual rate, change float64) bool {
	return r.num > 0 && ratio(r.num, max(r.den, 1)) >= usual.Mean+change &&
		poissonScore(float64(r.num), float64(r.den)*usual.Mean) >= 2
}

// coldScore is enough for calls and tries over the fixed floors, which are high already.
const coldScore = 3

// describe fills in values, baselines and which votes are held.
func (c *comparison) describe(j *judgement, drifts *[6]float64) {
	w, v := &c.s.Window, &c.o.Votes
	calls := v.CallsScore
	if c.b.Source == SourceFloors {
		calls = min(calls, coldScore)
	}
	for i, d := range [...]struct {
		vote            Vote
		value, baseline Number
		score, change   float64
	}{
		{VoteAmplification, quotient(w.UpstreamCalls, w.Operations), Number(1 + c.b.Calls.Mean), calls, v.CallsChange},
		{VoteRetryRatio, quotient(w.Attempts, w.Operations), Number(1 + c.b.Tries.Mean), calls, v.CallsChange},
		{VoteRetrySuccess, quotient(w.RetrySuccesses, w.Retries), Number(c.b.Success), v.SuccessScore, v.SuccessChange},
		{VoteP50, milliseconds(w, w.P50MS), c.b.P50[ofWindow].milliseconds(), v.P50Score, v.P50Change},
		{VoteP99, milliseconds(w, w.P99MS), c.b.P99[ofWindow].milliseconds(), v.P99Score, v.P99Change},
		{VoteError, quotient(w.Failed, w.Failed+w.Succeeded), Number(c.b.Error.Mean), v.ErrorScore, v.ErrorChange},
	} {
		t := &j.tests[i]
		t.Vote, t.Value, t.Baseline, t.Drift = d.vote, d.value, d.baseline, Number(drifts[i])
		t.Held = float64(t.Score) >= d.score && t.change >= d.change || drifts[i] >= v.Drift && (i != testErrors || c.failing())
	}
}

// failing tells whether enough operations of the window fail to speak of an outage, if
// that has been so for long: a few more than usual are none, however surely.
func (c *comparison) failing() bool {
	w := &c.s.Window
	return ratio(w.Failed, w.Failed+w.Succeeded)-c.b.Error.Mean >= c.o.Votes.ErrorChange/2
}

// errorsGoOn tells whether an outage does: the newest operations end it only if they fail surely less
// often. A window with fewer errors by chance does not while one that said so is not over.
func (c *comparison) errorsGoOn(newest *View, held bool) bool {
	least := c.o.Votes.ErrorChange / 3
	if _, change := c.errors(ofRecent, newest); change < least && c.surelyFewer(newest) {
		return false
	}
	score, change := c.errors(ofWindow, &c.s.Window)
	return held || score >= c.o.Votes.ErrorScore/2 && change >= least
}

// surelyFewer tells whether of some operations fewer fail than in the whole window, or than
// make an outage of those that have failed for long, and not by chance.
func (c *comparison) surelyFewer(v *View) bool {
	w, finished := &c.s.Window, v.Failed+v.Succeeded
	level := max(ratio(w.Failed, w.Failed+w.Succeeded), c.b.Error.Mean+c.o.Votes.ErrorChange/2)
	return binomialScore(finished-v.Failed, finished, 1-level) >= surely
}

const surely = 4

// others are the votes held beside the first.
func (j *judgement) others() (n int) {
	for _, i := range [...]int{testSuccess, testP50, testP99} {
		if j.tests[i].Held {
			n++
		}
	}
	return n
}

// climbing is the vote without which there is no masked outage.
func (j *judgement) climbing() bool { return j.tests[testCalls].Held || j.tests[testTries].Held }

func quotient(num, den int64) Number {
	if den == 0 {
		return null
	}
	return Number(ratio(num, den))
}

func milliseconds(v *View, ms int64) Number {
	if v.Delivered == 0 {
		return null
	}
	return Number(ms)
}

func (l level) milliseconds() Number {
	if !l.Known {
		return null
	}
	return Number(math.Round(math.Exp(l.Log)))
}
