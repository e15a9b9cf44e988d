package detect

import (
	"fmt"
	"slices"
	"time"
)

// Detector keeps the state of every series. It is not safe for concurrent use.
type Detector struct {
	o       Options
	series  map[Key]*series
	sorted  []Key // nil = to be sorted
	maker   baseliner
	skipped int64
}

// New checks the options.
func New(o Options) (*Detector, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	return &Detector{o: o, series: map[Key]*series{}}, nil
}

// Evaluate judges one sample. Its time is not the one before of its series; an
// error says so if it is, and nothing has changed then. An earlier one means that a clock was
// set back: what the series remembers moves back as far. A series beyond
// Options.MaxSeries is not judged: ok is false.
func (d *Detector) Evaluate(sample *Sample) (e Evaluation, ok bool, err error) {
	s := d.series[sample.Key]
	if s == nil {
		if len(d.series) >= d.o.MaxSeries+1 && sample.Key != All {
			d.skipped++
			return Evaluation{}, false, nil
		}
		s = newSeries(sample.Key, sample.At)
		d.series[sample.Key], d.sorted = s, nil
	}
	switch sample.At.Compare(s.last) {
	case 0:
		return Evaluation{}, false, fmt.Errorf("detect: series %v was evaluated at %s already", sample.Key, s.last)
	case -1:
		s.move(sample.At.Add(-Interval).Sub(s.last))
	}
	return s.evaluate(&d.o, &d.maker, sample), true, nil
}

// Round judges the samples of one moment, and with an empty sample every series that has
// none: its operations have stopped. Evaluations are in order of their keys.
func (d *Detector) Round(at time.Time, samples []Sample) ([]Evaluation, error) {
	byKey := make(map[Key]*Sample, len(samples))
	for i := range samples {
		byKey[samples[i].Key] = &samples[i]
	}
	keys := slices.Clone(d.Keys())
	for k := range byKey {
		if d.series[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	out := make([]Evaluation, 0, len(keys))
	for _, k := range keys {
		sample := byKey[k]
		if sample == nil {
			sample = &Sample{Key: k, At: at}
		}
		e, ok, err := d.Evaluate(sample)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, e)
		}
	}
	return out, nil
}

// Keys are those of all series, in order. They belong to the detector.
func (d *Detector) Keys() []Key {
	if d.sorted == nil {
		for k := range d.series {
			d.sorted = append(d.sorted, k)
		}
		slices.SortFunc(d.sorted, Key.Compare)
	}
	return d.sorted
}

// Forget drops the series that have had no window to judge since then and are healthy,
// and tells how many.
func (d *Detector) Forget(before time.Time) (n int) {
	for k, s := range d.series {
		if s.judged.Before(before) && s.state == Healthy && k != All {
			delete(d.series, k)
			n++
		}
	}
	if n > 0 {
		d.sorted = nil
	}
	return n
}

// Skipped is how many samples were not judged for Options.MaxSeries.
func (d *Detector) Skipped() int64 { return d.skipped }
