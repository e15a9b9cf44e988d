package metrics

import (
	"cmp"
	"slices"

	"github.com/retrylens/retrylens"
)

// MaxEmitterGaps is how many emitters with gaps a report names.
const MaxEmitterGaps = 100

// Completeness says how much of the truth a report can have seen. What is not
// set is not known.
type Completeness struct {
	RecordsMissing  retrylens.Opt[uint64]  // Σ missing over all emitters; not set when no record has emitter and seq
	CoverageRatio   retrylens.Opt[float64] // Σ received / Σ counted by the emitters, over the same
	Emitters        []EmitterGap           // those with gaps, most missing first, at most MaxEmitterGaps
	KnownUsageRatio retrylens.Opt[float64]
	RejectedLines   retrylens.Opt[uint64]
	DeadLetters     retrylens.Opt[uint64]
	SpoolAgeMS      retrylens.Opt[int64]
	FinaliserLagMS  retrylens.Opt[int64] // age of the oldest change that the rollups do not hold yet
}

// EmitterGap tells how many records of one emitting process never arrived:
// Missing = MaxSeq + 1 − Distinct.
type EmitterGap struct {
	Tenant   string `json:"tenant"`
	Emitter  string `json:"emitter"`
	Missing  uint64 `json:"missing"`
	MaxSeq   uint64 `json:"max_seq"`
	Distinct uint64 `json:"distinct"`
}

// EmitterGaps looks at every line ever received, before de-duplication, and returns
// each emitter's gap, also where nothing is missing. With tenants given, those of
// theirs only: a report filtered by tenant tells nothing of the others.
func EmitterGaps(attempts []retrylens.Attempt, tenants ...string) []EmitterGap {
	type emitter struct{ tenant, name string }
	seen := map[emitter]map[int64]struct{}{}
	for i := range attempts {
		a := &attempts[i]
		if a.Emitter == "" || !a.Seq.Set || len(tenants) > 0 && !slices.Contains(tenants, a.Tenant) {
			continue
		}
		e := emitter{a.Tenant, a.Emitter}
		if seen[e] == nil {
			seen[e] = map[int64]struct{}{}
		}
		seen[e][a.Seq.Value] = struct{}{}
	}
	gaps := make([]EmitterGap, 0, len(seen))
	for e, seqs := range seen {
		gaps = append(gaps, gapOf(e.tenant, e.name, seqs))
	}
	return gaps
}

func gapOf(tenant, emitter string, seqs map[int64]struct{}) EmitterGap {
	last := int64(0)
	for s := range seqs {
		last = max(last, s)
	}
	g := EmitterGap{Tenant: tenant, Emitter: emitter, MaxSeq: uint64(last), Distinct: uint64(len(seqs))}
	g.Missing = g.MaxSeq + 1 - g.Distinct
	return g
}

// SetGaps sets what the gaps of all emitters tell: nothing without any emitter.
func (c *Completeness) SetGaps(all []EmitterGap) {
	c.RecordsMissing, c.CoverageRatio, c.Emitters = retrylens.Opt[uint64]{}, retrylens.Opt[float64]{}, nil
	if len(all) == 0 {
		return
	}
	var missing, received uint64
	for _, g := range all {
		missing += g.Missing
		received += g.Distinct
		if g.Missing > 0 {
			c.Emitters = append(c.Emitters, g)
		}
	}
	slices.SortFunc(c.Emitters, func(a, b EmitterGap) int {
		return cmp.Or(cmp.Compare(b.Missing, a.Missing), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Emitter, b.Emitter))
	})
	c.Emitters = c.Emitters[:min(len(c.Emitters), MaxEmitterGaps)]
	c.RecordsMissing, c.CoverageRatio = retrylens.Some(missing), ratio(received, received+missing)
}

// knownUsage is the share of executed attempts with known usage.
func (c *Counters) knownUsage() retrylens.Opt[float64] {
	return ratio(c.ExecutedKnownUsage, c.ExecutedAttempts)
}
