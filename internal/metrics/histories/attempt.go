package histories

import (
	"time"

	"github.com/retrylens/retrylens"
)

// laterCauses are the causes of any attempt but 0.
var laterCauses = []retrylens.Cause{
	"", retrylens.CausePolicy, retrylens.CausePolicy, retrylens.CauseSDK, retrylens.CauseTransport,
	retrylens.CauseHedge, retrylens.CauseFailover, retrylens.CauseRedelivery,
}

// outcomes favour what figures are made of.
var outcomes = append([]retrylens.Outcome{
	retrylens.OutcomeSuccess, retrylens.OutcomeSuccess, retrylens.OutcomeSuccess, retrylens.OutcomeError,
	retrylens.OutcomeError, retrylens.OutcomeError, retrylens.OutcomeReplayed, retrylens.OutcomeReplayed,
}, retrylens.Outcomes...)

// fillAttempt decides everything that happened; ordinals are what references
// may name.
func (g *generator) fillAttempt(a *retrylens.Attempt, ordinals []int32) {
	if a.Attempt > 0 {
		a.Cause = pick(g, laterCauses)
	}
	if a.Cause == retrylens.CauseFailover {
		a.Provider, a.Model = pick(g, providers), pick(g, models)
	}
	g.fillOutcome(a)
	g.fillTiming(a)
	g.fillReferences(a, ordinals)
	g.fillUsage(a)
	if g.chance(60) {
		a.IdempotencyKey = "key-" + a.LogicalID
	}
	if g.chance(15) {
		a.StopReason = pick(g, retrylens.StopReasons)
	}
	if g.chance(20) {
		a.Final = retrylens.Some(g.chance(50))
	}
	if g.chance(5) {
		a.Attributes = map[string]string{"region": pick(g, services)}
	}
}

func (g *generator) fillOutcome(a *retrylens.Attempt) {
	a.Outcome = pick(g, outcomes)
	switch a.Outcome {
	case retrylens.OutcomeSuccess:
	case retrylens.OutcomeReplayed:
		if g.chance(30) {
			a.Delivery = retrylens.DeliveryNone
		}
	default:
		a.ErrorClass = pick(g, retrylens.ErrorClasses)
		if g.chance(20) {
			a.Delivery = pick(g, []retrylens.Delivery{retrylens.DeliveryPartial, retrylens.DeliveryNone})
		}
	}
	if !a.Outcome.NothingSent() && g.chance(25) { // a success that sent nothing, a presend failure that did
		a.UpstreamCalls = retrylens.Some(pick(g, []uint16{0, 0, 1, 2, 3, 65535}))
	}
	if g.chance(50) {
		a.Status = retrylens.Some(pick(g, []uint16{0, 200, 429, 500, 529}))
	}
}

func (g *generator) fillTiming(a *retrylens.Attempt) {
	switch {
	case g.chance(15): // not reported
	case g.chance(2):
		a.DurationMS = retrylens.Some[int64](retrylens.MaxInteger)
	case g.chance(30):
		a.DurationMS = retrylens.Some(pick(g, []int64{0, 1, 255, 256, 1000, 2000}))
	default:
		a.DurationMS = retrylens.Some(g.upTo(40 * time.Second).Milliseconds())
	}
	if g.chance(35) {
		a.RetryAfterMS = retrylens.Some(pick(g, []int64{0, 10, 50, 500, 2000, 19_999, 20_000, 3_600_000, retrylens.MaxInteger}))
	}
}

// fillReferences points to siblings, to itself, to nobody.
func (g *generator) fillReferences(a *retrylens.Attempt, ordinals []int32) {
	target := pick(g, ordinals)
	if g.chance(10) {
		target = int32(g.rand.IntN(400))
	}
	if a.Hop == retrylens.HopClient && g.chance(45) {
		a.ServedBy = retrylens.Some(target)
	}
	if a.Outcome == retrylens.OutcomeReplayed && g.chance(85) {
		a.ReplayOf = retrylens.Some(pick(g, append(ordinals[:len(ordinals):len(ordinals)], target)))
	}
}

func (g *generator) fillUsage(a *retrylens.Attempt) {
	if g.chance(55) {
		a.PromptTokens = retrylens.Some(g.tokens())
	}
	if g.chance(55) {
		a.CompletionTokens = retrylens.Some(g.tokens())
	}
	if a.PromptTokens.Value > 3 && g.chance(20) {
		a.CachedPromptTokens = retrylens.Some(a.PromptTokens.Value / 2)
	}
	if g.chance(55) {
		a.CostUSD = retrylens.Some(g.cost())
	}
	if g.chance(20) {
		a.UsageSource = pick(g, retrylens.UsageSources)
	}
}

func (g *generator) tokens() int64 {
	if g.chance(2) {
		return retrylens.MaxTokens
	}
	if g.chance(8) {
		return 0
	}
	return g.rand.Int64N(5000)
}

func (g *generator) cost() retrylens.Money {
	switch {
	case g.chance(2):
		m, _ := retrylens.ParseMoney("99999999999999.999999999999")
		return m
	case g.chance(8):
		return retrylens.Money{}
	case g.chance(10):
		return retrylens.PicoUSD(1)
	}
	return retrylens.PicoUSD(g.rand.Uint64N(5_000_000_000))
}
