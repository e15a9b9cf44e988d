package clickhouse

import (
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/rollup"
)

// rollupSink gathers the rows of minutes of which every operation is added.
// Groups of other minutes, which a fold meets in between, are left out.
type rollupSink struct {
	q        metrics.Query // as_of and bucket
	wanted   map[int64]*metrics.LossTimes
	home     map[string]*rollupGroup
	spend    map[string]*rollupGroup
	sketches map[string]*rollupSketch

	texts  map[string]string // each value of a dimension once
	key    []byte            // scratch
	counts []uint64
	costs  []retrylens.Money
}

// rollupGroup is a row of kind home or spend.
type rollupGroup struct {
	bucketMS int64
	dims     []string // home dimensions, of spend all
	rollup.Vector
	sketch *rollupSketch // nil, or that of its tenant, provider and model, which it carries
}

// rollupSketch holds buckets of metrics.Sketch as they came.
type rollupSketch struct {
	latency, retryTax []uint16
	untaxed           uint64 // retry taxes of 0
}

// newRollupSink wants the given minutes, in Unix milliseconds.
func newRollupSink(asOf time.Time, minutes []int64) *rollupSink {
	s := &rollupSink{
		q:    metrics.Query{AsOf: asOf, Bucket: rollup.Minute.Width()},
		home: map[string]*rollupGroup{}, spend: map[string]*rollupGroup{}, sketches: map[string]*rollupSketch{},
		wanted: make(map[int64]*metrics.LossTimes, len(minutes)), texts: map[string]string{},
	}
	for _, m := range minutes {
		s.wanted[m] = &metrics.LossTimes{BucketMS: m, NextLossMS: metrics.NoLoss}
	}
	return s
}

// The places of dimensions in metrics.Dimensions.
const (
	tenantAt, providerAt, modelAt       = 0, 4, 5
	executedProviderAt, executedModelAt = 6, 7
	homeDims, allDims                   = 6, 8
)

// add adds a row by all dimensions of the slow statement, by home dimensions of
// the fast one.
func (s *rollupSink) add(r *foldRow, statement string) {
	loss := s.wanted[r.bucket]
	if loss == nil {
		return
	}
	g := s.group(s.home, r.bucket, r.dims[:homeDims])
	if statement == "fast" {
		r.addFast(g.Vector)
	} else {
		r.complete(statement)
		g.Add(&r.Counters)
		s.addSpend(r)
	}
	if r.nextLossMS > 0 {
		loss.NextLossMS = min(loss.NextLossMS, r.nextLossMS)
	}
	loss.LastLossMS = max(loss.LastLossMS, r.lastLossMS)
	if r.untaxed > 0 || len(r.latency) > 0 {
		k := s.sketch(g)
		k.latency = append(k.latency, r.latency...)
		k.retryTax = append(k.retryTax, r.retryTax...)
		k.untaxed += r.untaxed
	}
}

// addSpend files what was executed elsewhere than at home.
func (s *rollupSink) addSpend(r *foldRow) {
	elsewhere := r.dims[executedProviderAt] != r.dims[providerAt] || r.dims[executedModelAt] != r.dims[modelAt]
	if elsewhere && r.ExecutedAttempts > 0 {
		spent := r.SpendOnly()
		s.group(s.spend, r.bucket, r.dims).Add(&spent)
	}
}

// fastPlaces are where the figures of successful first attempts go.
var fastPlaces = struct{ calls, hidden, transport, known, tokens, cost, stops int }{
	calls: rollup.Place("upstream_calls"), hidden: rollup.Place("hidden_calls"),
	transport: rollup.Place("upstream_calls_by_cause_transport"), known: rollup.Place("executed_known_usage"),
	tokens: rollup.Place("billed_tokens"), cost: rollup.Place("billed_cost_usd"),
	stops: rollup.Place("stops_by_reason_" + string(retrylens.StopReasons[0])),
}

// oncePerOperation are the counters that one successful first attempt adds 1 to.
var oncePerOperation = places("operations", "succeeded", "attempts", "executed_attempts",
	"upstream_calls_by_cause_first", "attempts_by_position_0", "successes_by_position_0")

func places(names ...string) []int {
	out := make([]int, len(names))
	for i, name := range names {
		out[i] = rollup.Place(name)
	}
	return out
}

// addFast is complete and Add for a row of the fast statement, which come by the
// million: without maps in between.
func (r *foldRow) addFast(v rollup.Vector) {
	n, at := r.Operations, &fastPlaces
	for _, p := range oncePerOperation {
		v.Counts[p] += n
	}
	v.Counts[at.calls] += r.UpstreamCalls
	v.Counts[at.hidden] += r.UpstreamCalls - n
	v.Counts[at.transport] += r.UpstreamCalls - n
	v.Counts[at.known] += r.ExecutedKnownUsage
	v.Counts[at.tokens] += r.BilledTokens
	v.Costs[at.cost] = v.Costs[at.cost].Add(money(*r.money["billed_cost_usd"]))
	for code, n := range *r.codes["stops_by_reason"] {
		v.Counts[at.stops+int(code)-1] += n
	}
	v.Counts[at.stops+stopDelivered-1] += r.stopsDelivered
}

var stopDelivered = code(retrylens.StopReasons, retrylens.StopDelivered)

func (s *rollupSink) addAttempts(attempts []retrylens.Attempt, w window) error {
	q := s.q
	q.From, q.To = time.UnixMilli(w.from).UTC(), time.UnixMilli(w.to).UTC()
	p, err := metrics.FoldRollup(attempts, q)
	if err != nil {
		return err
	}
	for i := range p.Home {
		s.addGroup(&p.Home[i])
	}
	for i := range p.Spend {
		if ms := p.Spend[i].Bucket.UnixMilli(); s.wanted[ms] != nil {
			s.group(s.spend, ms, p.Spend[i].Dims).Add(&p.Spend[i].Counters)
		}
	}
	for _, l := range p.Losses {
		if mine := s.wanted[l.BucketMS]; mine != nil {
			mine.Merge(l)
		}
	}
	return nil
}

func (s *rollupSink) addGroup(from *metrics.Group) {
	ms := from.Bucket.UnixMilli()
	if s.wanted[ms] == nil {
		return
	}
	g := s.group(s.home, ms, from.Dims)
	g.Add(&from.Counters)
	if from.Latency.Count() == 0 {
		return
	}
	k := s.sketch(g)
	from.Latency.Each(func(idx uint16, n uint64) {
		k.latency = append(k.latency, repeat(int(n), idx)...)
	})
	from.RetryTax.Each(func(idx uint16, n uint64) {
		if idx == 0 {
			k.untaxed += n
			return
		}
		k.retryTax = append(k.retryTax, repeat(int(n), idx)...)
	})
}

func (s *rollupSink) group(in map[string]*rollupGroup, bucketMS int64, dims []string) *rollupGroup {
	s.setKey(bucketMS, dims...)
	g := in[string(s.key)]
	if g == nil {
		g = &rollupGroup{bucketMS: bucketMS, dims: s.kept(dims), Vector: s.vector()}
		in[string(s.key)] = g
	}
	return g
}

// kept copies dims without keeping a copy of each text.
func (s *rollupSink) kept(dims []string) []string {
	out := make([]string, len(dims))
	for i, d := range dims {
		text, ok := s.texts[d]
		if !ok {
			text = strings.Clone(d)
			s.texts[text] = text
		}
		out[i] = text
	}
	return out
}

// vector is cut off a larger piece: they are many.
func (s *rollupSink) vector() rollup.Vector {
	const atOnce = 256
	if len(s.counts) == 0 {
		s.counts, s.costs = make([]uint64, atOnce*rollup.CountFigures), make([]retrylens.Money, atOnce*rollup.CostFigures)
	}
	v := rollup.Vector{Counts: s.counts[:rollup.CountFigures:rollup.CountFigures], Costs: s.costs[:rollup.CostFigures:rollup.CostFigures]}
	s.counts, s.costs = s.counts[rollup.CountFigures:], s.costs[rollup.CostFigures:]
	return v
}

// sketch is that of the tenant, provider and model of a home group. The first of
// these groups carries it.
func (s *rollupSink) sketch(g *rollupGroup) *rollupSketch {
	s.setKey(g.bucketMS, g.dims[tenantAt], g.dims[providerAt], g.dims[modelAt])
	k := s.sketches[string(s.key)]
	if k == nil {
		k = &rollupSketch{}
		s.sketches[string(s.key)], g.sketch = k, k
	}
	return k
}

// setKey makes the key of a group. Values hold no control characters.
func (s *rollupSink) setKey(bucketMS int64, dims ...string) {
	s.key = s.key[:0]
	for shift := 0; shift < 64; shift += 8 {
		s.key = append(s.key, byte(bucketMS>>shift))
	}
	for _, d := range dims {
		s.key = append(append(s.key, d...), 0)
	}
}

// counted returns the sorted sketch buckets and how often each occurs; zeros come
// on top.
func counted(idx []uint16, zeros uint64) (buckets []uint16, n []uint64) {
	slices.Sort(idx)
	buckets, n = []uint16{}, []uint64{}
	if zeros > 0 {
		buckets, n = append(buckets, 0), append(n, zeros)
	}
	for _, b := range idx {
		if last := len(buckets) - 1; last >= 0 && buckets[last] == b {
			n[last]++
			continue
		}
		buckets, n = append(buckets, b), append(n, 1)
	}
	return buckets, n
}
