package clickhouse

import (
	"slices"
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
	key      []byte // scratch
}

// rollupGroup is a row of kind home or spend.
type rollupGroup struct {
	bucketMS int64
	dims     []string // home dimensions, of spend all
	metrics.Counters
}

// rollupSketch is a row of kind sketch: buckets of metrics.Sketch as they came.
type rollupSketch struct {
	bucketMS                int64
	tenant, provider, model string
	latency, retryTax       []uint16
	untaxed                 uint64 // retry taxes of 0
}

// newRollupSink wants the given minutes, in Unix milliseconds.
func newRollupSink(asOf time.Time, minutes []int64) *rollupSink {
	s := &rollupSink{
		q:    metrics.Query{AsOf: asOf, Bucket: rollup.Minute.Width()},
		home: map[string]*rollupGroup{}, spend: map[string]*rollupGroup{}, sketches: map[string]*rollupSketch{},
		wanted: make(map[int64]*metrics.LossTimes, len(minutes)),
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
	r.complete(statement)
	g := s.group(s.home, r.bucket, r.dims[:homeDims])
	g.Add(&r.Counters)
	if moved(r.dims) && r.ExecutedAttempts > 0 {
		spent := r.SpendOnly()
		s.group(s.spend, r.bucket, r.dims).Add(&spent)
	}
	if r.nextLossMS > 0 {
		loss.NextLossMS = min(loss.NextLossMS, r.nextLossMS)
	}
	loss.LastLossMS = max(loss.LastLossMS, r.lastLossMS)
	if r.untaxed > 0 || len(r.latency) > 0 {
		k := s.sketch(r.bucket, r.dims)
		k.latency = append(k.latency, r.latency...)
		k.retryTax = append(k.retryTax, r.retryTax...)
		k.untaxed += r.untaxed
	}
}

// moved tells whether something was executed elsewhere than at home.
func moved(dims []string) bool {
	return len(dims) == allDims && (dims[executedProviderAt] != dims[providerAt] || dims[executedModelAt] != dims[modelAt])
}

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
	s.group(s.home, ms, from.Dims).Add(&from.Counters)
	if from.Latency.Count() == 0 {
		return
	}
	k := s.sketch(ms, from.Dims)
	from.Latency.Each(func(idx uint16, n uint64) {
		for range n {
			k.latency = append(k.latency, idx)
		}
	})
	from.RetryTax.Each(func(idx uint16, n uint64) {
		if idx == 0 {
			k.untaxed += n
			return
		}
		for range n {
			k.retryTax = append(k.retryTax, idx)
		}
	})
}

func (s *rollupSink) group(in map[string]*rollupGroup, bucketMS int64, dims []string) *rollupGroup {
	s.setKey(bucketMS, dims...)
	g := in[string(s.key)]
	if g == nil {
		g = &rollupGroup{bucketMS: bucketMS, dims: slices.Clone(dims)}
		in[string(s.key)] = g
	}
	return g
}

func (s *rollupSink) sketch(bucketMS int64, dims []string) *rollupSketch {
	s.setKey(bucketMS, dims[tenantAt], dims[providerAt], dims[modelAt])
	k := s.sketches[string(s.key)]
	if k == nil {
		k = &rollupSketch{bucketMS: bucketMS, tenant: dims[tenantAt], provider: dims[providerAt], model: dims[modelAt]}
		s.sketches[string(s.key)] = k
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

// rows is how many rows the sink holds.
func (s *rollupSink) rows() int {
	return len(s.wanted) + len(s.home) + len(s.spend) + len(s.sketches)
}

// counted returns the sorted sketch buckets and how often each occurs; n zeros
// come on top.
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
