package detect_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/detect"
)

// TestMaskedOutage: said at once, held, then two clean evaluations of recovery.
func TestMaskedOutage(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 3).says(detect.Healthy).votes()
	s.next(bad, 1).says(detect.MaskedOutage)
	s.votes(detect.VoteAmplification, detect.VoteRetryRatio, detect.VoteRetrySuccess, detect.VoteP50, detect.VoteP99)
	began := s.at
	if !s.Changed() || s.Previous != detect.Healthy || !s.Since.Equal(began) || !s.Incident.Equal(began) || s.Baseline != detect.SourceDay {
		t.Errorf("%+v", s.Evaluation)
	}
	s.next(bad, 40).says(detect.MaskedOutage)
	if s.Changed() || !s.Since.Equal(began) {
		t.Errorf("still on: %+v", s.Evaluation)
	}
	s.next(usual, 1).says(detect.Recovering)
	if !s.Incident.Equal(began) {
		t.Errorf("the recovery is part of the incident: %+v", s.Evaluation)
	}
	s.next(usual, 1).says(detect.Recovering).next(usual, 1).says(detect.Healthy)
	if !s.Incident.IsZero() {
		t.Errorf("the incident is over: %+v", s.Evaluation)
	}
}

// TestVotesNeeded: three, the first among them; two of the others do without it in vain.
func TestVotesNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		shape shape
		want  detect.State
	}{
		"all":                             {bad, detect.MaskedOutage},
		"retries and both latencies":      {shape{operations: 200, extra: 4, p50: 4000, p99: 30_000}, detect.MaskedOutage},
		"retries that fail, p99":          {shape{operations: 200, extra: 4, retriesFail: 1, p99: 30_000}, detect.MaskedOutage},
		"retries only":                    {shape{operations: 200, extra: 4}, detect.Flaky},
		"retries and p99":                 {shape{operations: 200, extra: 4, p99: 30_000}, detect.Flaky},
		"latencies only":                  {shape{operations: 200, p50: 4000, p99: 30_000}, detect.Healthy},
		"latencies, two retries in all":   {shape{operations: 200, p50: 4000, p99: 30_000, extra: 1, only: 2}, detect.Healthy},
		"faster":                          {shape{operations: 200, extra: 4, p50: 500, p99: 900}, detect.Flaky},
		"redelivered and slow":            {shape{operations: 200, redelivered: 4, p50: 40_000, p99: 90_000}, detect.MaskedOutage},
		"submitted twice, refused":        {shape{operations: 200, refused: 8, p50: 3000, p99: 30_000}, detect.Healthy},
		"submitted twice, replayed":       {shape{operations: 200, served: 8, refused: 4, p50: 3000, p99: 30_000}, detect.Healthy},
		"blip of half a minute":           {shape{operations: 200, extra: 10, retriesFail: 4, p50: 4000, p99: 30_000, only: 3}, detect.Flaky},
		"a minute and a quarter":          {shape{operations: 200, extra: 10, retriesFail: 3, p50: 4000, p99: 30_000, only: 5}, detect.MaskedOutage},
		"nobody is rescued":               {shape{operations: 200, extra: 4, retriesFail: 4, open: 4, p50: 4000, p99: 30_000}, detect.Flaky},
		"errors":                          {shape{operations: 200, extra: 4, retriesFail: 2, failed: 2, p50: 4000, p99: 30_000}, detect.Outage},
		"errors only":                     {shape{operations: 200, failed: 1}, detect.Outage},
		"errors of half a minute":         {shape{operations: 200, failed: 6, only: 3}, detect.Healthy},
		"five times the operations":       {shape{operations: 1000, p50: 2100}, detect.Healthy},
		"nineteen operations are no case": {shape{operations: 0, extra: 4}, detect.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			newStory(t, detect.Options{}).hours(usual, 3).next(c.shape, 1).says(c.want)
		})
	}
}

// TestMinimumSample is 20 operations: before, at, after the edge.
func TestMinimumSample(t *testing.T) {
	low := shape{operations: 20, extra: 1, retriesFail: 0, p50: 9000, p99: 60_000}
	for min, want := range map[int64]bool{19: true, 20: true, 21: false} {
		s := newStory(t, detect.Options{MinOperations: min}).hours(shape{operations: 40}, 3).next(low, 1)
		if s.Judged != want || want == (s.State == detect.Healthy) || !want && len(s.Votes) > 0 {
			t.Errorf("at least %d of 20: %+v", min, s.Evaluation)
		}
	}
}

// TestSmallWindowHoldsTheState for ten minutes.
func TestSmallWindowHoldsTheState(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 3).next(bad, 4).says(detect.MaskedOutage)
	s.next(shape{}, 39).says(detect.MaskedOutage)
	if s.Judged {
		t.Error("judged without operations")
	}
	s.next(shape{}, 1).says(detect.Healthy)
}

// TestFrozenWhileFiring: an incident of two days teaches nothing.
func TestFrozenWhileFiring(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 3).hours(bad, 48).says(detect.MaskedOutage)
	if b := float64(s.Tests[3].Baseline); b < 1900 || b > 2100 {
		t.Errorf("the baseline of p50 has become %v", b)
	}
}

// TestRunUpIsNotLearned: what came in the half hour before an incident was part of it.
func TestRunUpIsNotLearned(t *testing.T) {
	slow := shape{operations: 200, p50: 2600, p99: 16_000}
	s := newStory(t, detect.Options{}).hours(usual, 2).next(slow, 100).next(bad, 40).says(detect.MaskedOutage).next(usual, 60).says(detect.Healthy)
	if b := float64(s.Tests[3].Baseline); b > 2100 {
		t.Errorf("the baseline of p50 has become %v", b)
	}
}

// TestColdStart: floors say what is too much before anything has been learned.
func TestColdStart(t *testing.T) {
	s := newStory(t, detect.Options{}).next(usual, 10).says(detect.Healthy)
	if s.Baseline != detect.SourceFloors {
		t.Errorf("baseline %q", s.Baseline)
	}
	s.next(shape{operations: 200, p50: 30_000, p99: 120_000}, 1).says(detect.Healthy) // it may be usual, for all that is known
	s.next(shape{operations: 200, extra: 6, retriesFail: 1, p50: 30_000, p99: 120_000, answer: 20_000}, 1).says(detect.MaskedOutage)
	newStory(t, detect.Options{}).next(shape{operations: 200, failed: 2}, 1).says(detect.Outage)
	s = newStory(t, detect.Options{}).next(usual, 100).next(bad, 1).says(detect.MaskedOutage) // 25 minutes
	if s.Baseline != detect.SourceYoung {
		t.Errorf("baseline %q", s.Baseline)
	}
}

// TestThereFromTheFirstRecordOn: what is beyond all that is usual for anybody is said without
// any history, whatever is retried and however long it lasts, and is never learned.
func TestThereFromTheFirstRecordOn(t *testing.T) {
	for name, c := range map[string]struct {
		shape shape
		want  detect.State
	}{
		"retries that fail":         {shape{operations: 200, extra: 8, retriesFail: 3, answer: 1000}, detect.MaskedOutage},
		"retries that succeed":      {shape{operations: 200, extra: 4, answer: 1200}, detect.MaskedOutage},
		"calls below the policy":    {shape{operations: 200, hidden: 8, answer: 1000}, detect.MaskedOutage},
		"half an hour of few":       {shape{operations: 60, extra: 2, retriesFail: 1, answer: 1000}, detect.MaskedOutage},
		"a tenth is retried":        {shape{operations: 200, extra: 1, answer: 1700}, detect.Healthy},
		"slow":                      {shape{operations: 200, p50: 20_000, p99: 90_000}, detect.Healthy},
		"hedged":                    {shape{operations: 200, hedged: 8, beaten: 8}, detect.Healthy},
		"submitted twice, answered": {shape{operations: 200, redelivered: 8}, detect.Healthy},
		"errors":                    {shape{operations: 200, failed: 2}, detect.Outage},
	} {
		t.Run(name, func(t *testing.T) {
			newStory(t, detect.Options{}).next(c.shape, 2).says(c.want).hours(c.shape, 30).says(c.want).hours(usual, 1).says(detect.Healthy)
		})
	}
}

// TestErrorsThatHaveAlwaysBeenThere: a fifth and more is an outage for as long as it lasts; fewer are
// what is usual after a day, and what comes on top of them is one again.
func TestErrorsThatHaveAlwaysBeenThere(t *testing.T) {
	few := shape{operations: 2000, failed: 10} // 10 %
	s := newStory(t, detect.Options{}).next(few, 2).says(detect.Outage).hours(few, 23).says(detect.Outage)
	s.hours(few, 3).says(detect.Healthy).hours(few, 24).says(detect.Healthy)
	s.next(shape{operations: 2000, failed: 20}, 1).says(detect.Outage)
	newStory(t, detect.Options{}).hours(shape{operations: 2000, failed: 20}, 48).says(detect.Outage)
	newStory(t, detect.Options{}).hours(usual, 1).hours(few, 48).says(detect.Outage) // it was otherwise
}

// TestSteadyErrorsDoNotAlternate: 1.7 % of the operations fail for a day, as chance has it. What began
// is held over windows that have fewer by chance, and ends when there are none.
func TestSteadyErrorsDoNotAlternate(t *testing.T) {
	for _, perSlot := range []int64{5, 10, 25, 50, 100} {
		r := rand.New(rand.NewPCG(uint64(perSlot), 17))
		s := newStory(t, detect.Options{}).hours(shape{operations: 20 * perSlot}, 5)
		begun := 0
		var slots [detect.SpanSlots]int64
		for range 24 * 240 {
			copy(slots[:], slots[1:])
			slots[len(slots)-1] = 0
			for range perSlot {
				if r.Float64() < 0.017 {
					slots[len(slots)-1]++
				}
			}
			s.next(shape{operations: 20 * perSlot, failures: slots[:]}, 1)
			if s.Changed() && s.State == detect.Outage {
				begun++
			}
		}
		if begun > 6 {
			t.Errorf("%d operations a quarter-minute: %d outages in a day", perSlot, begun)
		}
		s.next(shape{operations: 20 * perSlot}, 50)
		if s.State.Pages() {
			t.Errorf("%d operations a quarter-minute: %s after ten minutes without an error", perSlot, s.State)
		}
	}
}

// TestShortHistory: of ten minutes is enough to know what follows.
func TestShortHistory(t *testing.T) {
	for _, evaluations := range []int{20, 40, 80, 160, 480} {
		newStory(t, detect.Options{}).next(usual, evaluations).says(detect.Healthy).next(bad, 1).says(detect.MaskedOutage)
	}
}

// TestDuplicatesThatFollowNoFailure are no calls of a provider in trouble, slow or not, unless
// hardly an answer comes in time.
func TestDuplicatesThatFollowNoFailure(t *testing.T) {
	for name, c := range map[string]struct {
		shape shape
		want  detect.State
	}{
		"answered":                  {shape{operations: 200, redelivered: 10}, detect.Healthy},
		"half of them slow":         {shape{operations: 200, redelivered: 10, p25: 2000, p50: 8000, p99: 60_000}, detect.Healthy},
		"all of them slow":          {shape{operations: 200, redelivered: 10, p25: 9000, p50: 16_000, p99: 90_000}, detect.MaskedOutage},
		"and a provider that fails": {shape{operations: 200, redelivered: 10, lost: 4, extra: 4, retriesFail: 1, p25: 2000, p50: 8000, p99: 60_000}, detect.MaskedOutage},
	} {
		t.Run(name, func(t *testing.T) {
			newStory(t, detect.Options{}).hours(usual, 3).next(c.shape, 1).says(c.want)
		})
	}
}

// TestHedges: those sent because answers are slow tell of no failure, however many they are and
// however slow it is; those that stand in for attempts that failed do, with a history or without.
func TestHedges(t *testing.T) {
	slow := shape{operations: 200, p25: 9000, p50: 16_000, p99: 90_000}
	with := func(s shape, hedged, beaten, saved, extra int64) shape {
		s.hedged, s.beaten, s.saved, s.extra = hedged, beaten, saved, extra
		return s
	}
	for name, c := range map[string]struct {
		always, shape shape
		want          detect.State
	}{
		"slow, one operation in ten":         {usual, with(slow, 1, 1, 0, 0), detect.Healthy},
		"slow, all of them":                  {usual, with(slow, 10, 10, 0, 0), detect.Healthy},
		"half slow, half of them":            {usual, with(shape{operations: 200, p25: 2000, p50: 8000, p99: 60_000}, 5, 5, 0, 0), detect.Healthy},
		"slow, all of them, more than ever":  {with(usual, 2, 2, 0, 0), with(slow, 10, 10, 0, 0), detect.Healthy},
		"slow, a tenth is retried":           {usual, with(slow, 10, 10, 0, 1), detect.Flaky},
		"slow, copies fail as often":         {with(usual, 2, 2, 0, 1), shape{operations: 200, p25: 9000, p50: 16_000, p99: 90_000, hedged: 10, beaten: 9, lost: 1, extra: 1}, detect.Healthy},
		"attempts fail, hedges answer, slow": {usual, with(slow, 0, 0, 4, 0), detect.MaskedOutage},
		"the same among hedges that win":     {with(usual, 2, 2, 0, 0), with(slow, 4, 4, 4, 0), detect.MaskedOutage},
		"attempts fail, retries answer":      {with(usual, 2, 2, 0, 0), with(slow, 4, 4, 0, 4), detect.MaskedOutage},
	} {
		t.Run(name, func(t *testing.T) {
			newStory(t, detect.Options{}).hours(c.always, 3).says(detect.Healthy).next(c.shape, 1).says(c.want)
		})
	}
	cold := shape{operations: 200, answer: 1000}
	newStory(t, detect.Options{}).next(with(cold, 8, 8, 0, 0), 4).says(detect.Healthy)
	newStory(t, detect.Options{}).next(with(cold, 0, 0, 8, 0), 4).says(detect.MaskedOutage)
}

// TestOneIncidentIsOnePage: windows in which it is hardly seen end nothing, good ones do, and
// one that was called masked in error ends, too.
func TestOneIncidentIsOnePage(t *testing.T) {
	mild := shape{operations: 400, extra: 3, p50: 3000} // 1.15: no page by itself
	s := newStory(t, detect.Options{}).hours(usual, 3)
	pages := 0
	for range 20 {
		for _, what := range []shape{bad, mild} {
			for range 20 {
				if s.next(what, 1); s.Changed() && s.State == detect.MaskedOutage {
					pages++
				}
			}
		}
	}
	if pages != 1 {
		t.Errorf("%d pages of one incident", pages)
	}
	s.next(usual, 1).says(detect.Recovering).next(usual, 2).says(detect.Healthy)
	s.next(bad, 1).says(detect.MaskedOutage).next(mild, 39).says(detect.MaskedOutage).next(mild, 4).says(detect.Flaky)
}

// TestAnotherLevelOfLatencyBecomesUsual: a deploy, two hours ago, is no vote for ever.
func TestAnotherLevelOfLatencyBecomesUsual(t *testing.T) {
	slower := shape{operations: 200, p50: 3200, p99: 19_000}
	s := newStory(t, detect.Options{}).hours(usual, 24).hours(slower, 1)
	s.says(detect.Healthy).votes(detect.VoteP50, detect.VoteP99)
	s.hours(slower, 4).says(detect.Healthy).votes()
	s.hours(usual, 4).says(detect.Healthy).next(slower, 1).votes(detect.VoteP50, detect.VoteP99)
}

// TestDrift: what comes too slowly for any window is summed up.
func TestDrift(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(shape{operations: 400}, 12)
	creeping := shape{operations: 400, extra: 4, p50: 2200, p99: 13_000}
	found := false
	for range 3 * 240 {
		if s.next(creeping, 1); s.State == detect.MaskedOutage {
			found = true
		}
	}
	if !found {
		t.Errorf("never said: %+v", s.Tests)
	}
}

// TestFewErrorsAreNoOutage: more than usual for hours, and surely, but few. They end no
// masked outage, and hide none.
func TestFewErrorsAreNoOutage(t *testing.T) {
	few := shape{operations: 2000, failed: 1} // 1 %
	s := newStory(t, detect.Options{}).hours(shape{operations: 2000}, 5)
	for range 3 * 240 {
		if s.next(few, 1); s.State != detect.Healthy {
			t.Fatalf("%s: %s, votes %v; %+v", s.at, s.State, s.Votes, s.Tests)
		}
	}
	s.votes()
	masked := shape{operations: 2000, extra: 40, retriesFail: 10, failed: 1, p50: 4000, p99: 30_000, answer: 3000}
	for range 3 * 240 {
		s.next(masked, 1).says(detect.MaskedOutage)
	}
	s.next(shape{operations: 2000, failed: 2}, 240).votes(detect.VoteError).says(detect.Outage) // 2 % for an hour
}

// TestWhatIsOverIsForgotten: sums of drifts end half an hour after hours of an incident.
func TestWhatIsOverIsForgotten(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 3).hours(bad, 12)
	if s.next(usual, 40); len(s.Votes) == 0 {
		t.Error("nothing has summed up")
	}
	s.next(usual, 160).votes().says(detect.Healthy)
}

// TestMetastable: first attempts are fine again, amplification is not.
func TestMetastable(t *testing.T) {
	still := shape{operations: 200, hidden: 5, p50: 4000, p99: 30_000}
	s := newStory(t, detect.Options{}).hours(usual, 3).next(still, 1)
	if s.Is(string(detect.SignMetastable)) {
		t.Error("said before any incident")
	}
	s = newStory(t, detect.Options{}).hours(usual, 3).next(bad, 4)
	if s.Is(string(detect.SignMetastable)) {
		t.Error("said while first attempts fail")
	}
	if s.next(still, 1); !s.Is(string(detect.SignMetastable)) {
		t.Errorf("not said: %+v", s.Evaluation)
	}
}

// TestHiddenLayer: a tenth of the operations has hidden calls, before, at, after the edge.
func TestHiddenLayer(t *testing.T) {
	for hidden, want := range map[int64]bool{0: false, 1: true, 5: true} {
		s := newStory(t, detect.Options{}).next(shape{operations: 200, hidden: hidden}, 1)
		if s.Is(string(detect.SignHiddenLayer)) != want {
			t.Errorf("%d of 10: %v", hidden, s.Signs)
		}
	}
	two := usual.sample(gpt, monday)
	two.Window.LayerAttempts, two.Window.LayerUpstreamCalls = 20, 30
	d, _ := detect.New(detect.Options{})
	if e, _, _ := d.Evaluate(two); !e.Is(string(detect.SignHiddenLayer)) {
		t.Errorf("layer_factor 1.5: %v", e.Signs)
	}
}

// TestHourOfTheWeek: after three weeks an hour that is always slower is not slow.
func TestHourOfTheWeek(t *testing.T) {
	s := newStory(t, detect.Options{})
	night := shape{operations: 200, p50: 5000, p99: 25_000}
	for range 22 * 24 {
		what := usual
		if s.at.Hour() == 3 {
			what = night
		}
		s.hours(what, 1)
	}
	for s.at.Hour() != 3 {
		s.hours(usual, 1)
	}
	s.next(night, 100).says(detect.Healthy).votes()
	if s.Baseline != detect.SourceWeek {
		t.Errorf("baseline %q", s.Baseline)
	}
	if s.hours(usual, 8).next(night, 1); len(s.Votes) != 2 {
		t.Errorf("slow at another hour: votes %v", s.Votes)
	}
}

// TestAClockIsSetBack: what is on goes on, one incident since the same age, and ends as always.
func TestAClockIsSetBack(t *testing.T) {
	s := newStory(t, detect.Options{}).hours(usual, 3).next(bad, 1).says(detect.MaskedOutage).next(bad, 39)
	age := s.at.Sub(s.Since)
	s.at = s.at.Add(-2 * time.Hour)
	s.next(bad, 1).says(detect.MaskedOutage)
	if got := s.at.Sub(s.Since); got != age+detect.Interval || s.Changed() || !s.Incident.Equal(s.Since) {
		t.Errorf("for %v, before the clock was set back for %v: %+v", got, age, s.Evaluation)
	}
	s.next(shape{}, 39).says(detect.MaskedOutage).next(shape{}, 1).says(detect.Healthy)
}

// TestConfirm asks for a second evaluation that says the same.
func TestConfirm(t *testing.T) {
	s := newStory(t, detect.Options{Confirm: 2}).hours(usual, 3)
	s.next(bad, 1).says(detect.Healthy).next(usual, 1).next(bad, 1).says(detect.Healthy).next(bad, 1).says(detect.MaskedOutage)
}

func TestRoundGoesOnWithoutOperations(t *testing.T) {
	d, err := detect.New(detect.Options{MaxSeries: 2})
	if err != nil {
		t.Fatal(err)
	}
	key := func(model string) detect.Key { return detect.Key{Tenant: "t", Provider: "p", Model: model} }
	first, err := d.Round(monday, []detect.Sample{*usual.sample(key("b"), monday), *usual.sample(detect.All, monday), *usual.sample(key("a"), monday)})
	if err != nil || len(first) != 3 || first[0].Key != detect.All || first[1].Model != "a" {
		t.Fatalf("%+v, %v", first, err)
	}
	next := monday.Add(detect.Interval)
	second, err := d.Round(next, []detect.Sample{*usual.sample(key("c"), next)})
	if err != nil || len(second) != 3 || second[1].Judged || d.Skipped() != 1 {
		t.Errorf("%+v, %v, %d skipped", second, err, d.Skipped())
	}
	if _, err = d.Round(next, nil); err == nil || !strings.Contains(err.Error(), "was evaluated at") {
		t.Errorf("twice at a time: %v", err)
	}
	if n := d.Forget(next); n != 2 || len(d.Keys()) != 1 {
		t.Errorf("%d forgotten, %v left", n, d.Keys())
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []detect.Options{{Joint: -1}, {MinOperations: -1}, {HoldSmall: -time.Second}, {Votes: detect.VoteOptions{P50Score: -2}}} {
		if _, err := detect.New(o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
}
