package metrics

import "github.com/retrylens/retrylens"

// Counters is everything that adds up over groups and windows. Maps are keyed
// by the words of the record; a nil map is an empty one. The zero value is
// ready to use.
type Counters struct {
	Operations, Succeeded, Failed, Open, Lost uint64

	Attempts          uint64 // counted records
	Retries           uint64 // those with attempt > 0 and a cause other than hedge and redelivery
	RetrySuccesses    uint64 // retries with delivery full
	RetriedOperations uint64 // operations with retries > 0
	Rescued           uint64
	FailedAttempts    uint64 // counted records whose delivery is not full
	Shed              uint64

	UpstreamCalls, HiddenCalls                        uint64
	DuplicatesServed, DuplicatesRefused, KeyConflicts uint64

	ExecutedAttempts   uint64 // inner records with upstream_calls ≥ 1
	ExecutedKnownUsage uint64 // those of them whose usage is known: completeness
	BilledTokens       uint64
	BilledCostUSD      retrylens.Money

	OrphanedAttempts, OrphanedPromptTokens, OrphanedCompletionTokens uint64
	OrphanedCostUSD                                                  retrylens.Money
	OrphanedTokensByReason                                           map[string]uint64
	OrphanedCostUSDByReason                                          map[string]retrylens.Money
	OrphanedTokensByUsageSource                                      map[string]uint64
	OrphanSuspects                                                   uint64

	RecoveredTokens  uint64
	RecoveredCostUSD retrylens.Money
	RedundantTokens  uint64
	RedundantCostUSD retrylens.Money
	RescueCostUSD    retrylens.Money // known cost of undelivered executed attempts of rescued operations

	UpstreamCallsByCause map[string]uint64
	ErrorsByClass        map[string]uint64
	StopsByReason        map[string]uint64
	AttemptsByPosition   map[string]uint64 // "0".."9", the last one 9 and above
	SuccessesByPosition  map[string]uint64

	LayerUpstreamCalls, LayerAttempts uint64 // over operations with both hops only

	RetryAfterViolations, UnkeyedAfterSend uint64
}

// Add adds o to c; o stays as it is.
func (c *Counters) Add(o *Counters) {
	mine, theirs := c.counts(), o.counts()
	for i := range mine {
		*mine[i] += *theirs[i]
	}
	myMoney, theirMoney := c.amounts(), o.amounts()
	for i := range myMoney {
		*myMoney[i] = myMoney[i].Add(*theirMoney[i])
	}
	myMaps, theirMaps := c.maps(), o.maps()
	for i := range myMaps {
		for k, n := range *theirMaps[i] {
			bump(myMaps[i], k, n)
		}
	}
	for k, m := range o.OrphanedCostUSDByReason {
		bumpMoney(&c.OrphanedCostUSDByReason, k, m)
	}
}

// Entries is how many entries its maps have.
func (c *Counters) Entries() int {
	n := len(c.OrphanedCostUSDByReason)
	for _, m := range c.maps() {
		n += len(*m)
	}
	return n
}

// SpendOnly keeps the figures of executed attempts; a row by what was executed
// holds no others.
func (c *Counters) SpendOnly() Counters {
	return Counters{
		ExecutedAttempts: c.ExecutedAttempts, ExecutedKnownUsage: c.ExecutedKnownUsage,
		BilledTokens: c.BilledTokens, BilledCostUSD: c.BilledCostUSD,
		OrphanedAttempts: c.OrphanedAttempts, OrphanedPromptTokens: c.OrphanedPromptTokens,
		OrphanedCompletionTokens: c.OrphanedCompletionTokens, OrphanedCostUSD: c.OrphanedCostUSD,
		OrphanedTokensByReason: c.OrphanedTokensByReason, OrphanedCostUSDByReason: c.OrphanedCostUSDByReason,
		OrphanedTokensByUsageSource: c.OrphanedTokensByUsageSource, OrphanSuspects: c.OrphanSuspects,
		RecoveredTokens: c.RecoveredTokens, RecoveredCostUSD: c.RecoveredCostUSD,
		RedundantTokens: c.RedundantTokens, RedundantCostUSD: c.RedundantCostUSD,
	}
}

func (c *Counters) counts() []*uint64 {
	return []*uint64{
		&c.Operations, &c.Succeeded, &c.Failed, &c.Open, &c.Lost,
		&c.Attempts, &c.Retries, &c.RetrySuccesses, &c.RetriedOperations, &c.Rescued, &c.FailedAttempts, &c.Shed,
		&c.UpstreamCalls, &c.HiddenCalls, &c.DuplicatesServed, &c.DuplicatesRefused, &c.KeyConflicts,
		&c.ExecutedAttempts, &c.ExecutedKnownUsage, &c.BilledTokens,
		&c.OrphanedAttempts, &c.OrphanedPromptTokens, &c.OrphanedCompletionTokens, &c.OrphanSuspects,
		&c.RecoveredTokens, &c.RedundantTokens,
		&c.LayerUpstreamCalls, &c.LayerAttempts, &c.RetryAfterViolations, &c.UnkeyedAfterSend,
	}
}

func (c *Counters) amounts() []*retrylens.Money {
	return []*retrylens.Money{
		&c.BilledCostUSD, &c.OrphanedCostUSD, &c.RecoveredCostUSD, &c.RedundantCostUSD, &c.RescueCostUSD,
	}
}

func (c *Counters) maps() []*map[string]uint64 {
	return []*map[string]uint64{
		&c.OrphanedTokensByReason, &c.OrphanedTokensByUsageSource, &c.UpstreamCallsByCause,
		&c.ErrorsByClass, &c.StopsByReason, &c.AttemptsByPosition, &c.SuccessesByPosition,
	}
}

// bump adds n to an entry; zero entries are never made.
func bump(m *map[string]uint64, key string, n uint64) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[string]uint64{}
	}
	(*m)[key] += n
}

func bumpMoney(m *map[string]retrylens.Money, key string, v retrylens.Money) {
	if v.IsZero() {
		return
	}
	if *m == nil {
		*m = map[string]retrylens.Money{}
	}
	(*m)[key] = (*m)[key].Add(v)
}
