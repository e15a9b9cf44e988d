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
	RecordsMissing  retrylens.Opt[uint64] // Σ missing over all emitters; not set when no record has emitter and seq
	Emitters        []EmitterGap          // those with gaps, most missing first, at most MaxEmitterGaps
	KnownUsageRatio retrylens.Opt[float64]
	RejectedLines   retrylens.Opt[uint64]
	DeadLetters     retrylens.Opt[uint64]
	SpoolAgeMS      retrylens.Opt[int64]
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

// EmitterGaps looks at every line ever received, before de-duplication: the
// total missing (not set when no record has emitter and seq) and the gaps. With
// tenants given, at theirs only: a report filtered by tenant tells nothing of
// the others.
func EmitterGaps(attempts []retrylens.Attempt, tenants ...string) (retrylens.Opt[uint64], []EmitterGap) {
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
	return SumGaps(gaps)
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

// SumGaps adds up the missing records of all emitters (not set without any) and
// returns the gaps, most missing first, at most MaxEmitterGaps.
func SumGaps(all []EmitterGap) (retrylens.Opt[uint64], []EmitterGap) {
	if len(all) == 0 {
		return retrylens.Opt[uint64]{}, nil
	}
	total := uint64(0)
	var gaps []EmitterGap
	for _, g := range all {
		if total += g.Missing; g.Missing > 0 {
			gaps = append(gaps, g)
		}
	}
	slices.SortFunc(gaps, func(a, b EmitterGap) int {
		return cmp.Or(cmp.Compare(b.Missing, a.Missing), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Emitter, b.Emitter))
	})
	return retrylens.Some(total), gaps[:min(len(gaps), MaxEmitterGaps)]
}

// knownUsage is the share of executed attempts with known usage.
func (c *Counters) knownUsage() retrylens.Opt[float64] {
	return ratio(c.ExecutedKnownUsage, c.ExecutedAttempts)
}
