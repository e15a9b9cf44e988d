package main

import (
	"math/rand/v2"
	"time"
)

// course is how what happens comes and goes.
type course int

const (
	step course = iota
	ramp        // over 3 to 20 minutes
	saw         // between all and half of it, every 2 to 6 minutes
	blip        // for 10 to 30 s
)

// mixedKinds are what happens in worlds of the second family. What it is by the specification
// the figures say (census), not the kind.
var mixedKinds = []struct {
	name   string
	course course
	always func(*rand.Rand, *mixed) // of the good day; nil = nothing
	change func(*rand.Rand, *mixed)
}{
	{"attempts fail, answers slow", step, nil, func(r *rand.Rand, m *mixed) { m.trouble(r).slows(uniform(r, 1.2, 3)) }},
	{"attempts fail, answers as ever", step, nil, func(r *rand.Rand, m *mixed) { m.trouble(r) }},
	{"comes slowly", ramp, nil, func(r *rand.Rand, m *mixed) { m.trouble(r).slows(uniform(r, 1.2, 3)) }},
	{"comes and goes", saw, nil, func(r *rand.Rand, m *mixed) { m.trouble(r).slows(uniform(r, 1.2, 3)) }},
	{"a zone", step, nil, func(r *rand.Rand, m *mixed) {
		m.Share, m.Rest, m.First, m.Retry = uniform(r, 0.3, 0.6), m.First, uniform(r, 0.7, 1), uniform(r, 0.7, 0.9)
		m.Elsewhere = uniform(r, 0.02, 0.3)
		m.slows(uniform(r, 1, 2)).Attempts = max(m.Attempts, 4)
	}},
	{"timeouts", step, nil, func(r *rand.Rand, m *mixed) {
		m.trouble(r).Timeouts, m.TimeoutS = uniform(r, 0.6, 1), spread(r, 5, 30)
	}},
	{"a tenth of the answers very slow", step, nil, func(r *rand.Rand, m *mixed) {
		m.trouble(r).SlowShare, m.SlowBy = 0.1, uniform(r, 4, 10)
	}},
	{"a gateway sends again, slow", step, nil, func(r *rand.Rand, m *mixed) {
		m.Hidden = uniform(r, 0.35, 1.2)
		m.slows(uniform(r, 1.3, 3))
	}},
	{"hedges hide failures", step, func(r *rand.Rand, m *mixed) { m.HedgeMS = m.Answer.quantile(uniform(r, 0.85, 0.95)) }, func(r *rand.Rand, m *mixed) {
		m.First, m.Retry, m.FailMS, m.Timeouts = uniform(r, 0.35, 0.65), uniform(r, 0.05, 0.3), m.HedgeMS*uniform(r, 1.3, 2), 0
		m.slows(uniform(r, 1.2, 2.5))
	}},

	{"flaky, 1 to 10 %", step, nil, func(r *rand.Rand, m *mixed) { m.flaky(r) }},
	{"flaky and hedged", step, func(r *rand.Rand, m *mixed) { m.HedgeMS = m.Answer.quantile(uniform(r, 0.7, 0.95)) }, func(r *rand.Rand, m *mixed) { m.flaky(r) }},
	{"flaky, timeouts", step, nil, func(r *rand.Rand, m *mixed) { m.flaky(r).Timeouts = 1 }},
	{"slow and hedged more", step, func(r *rand.Rand, m *mixed) { m.HedgeMS = m.Answer.quantile(uniform(r, 0.7, 0.97)) }, func(r *rand.Rand, m *mixed) { m.slows(uniform(r, 1.5, 5)) }},
	{"slower and slower, and hedged", ramp, func(r *rand.Rand, m *mixed) { m.HedgeMS = m.Answer.quantile(uniform(r, 0.7, 0.97)) }, func(r *rand.Rand, m *mixed) { m.slows(uniform(r, 1.5, 5)) }},
	{"slow", step, nil, func(r *rand.Rand, m *mixed) { m.slows(uniform(r, 1.5, 8)) }},
	{"a deploy: other answers", step, nil, func(r *rand.Rand, m *mixed) { m.Answer = someTails(r) }},
	{"submitted twice", step, nil, func(r *rand.Rand, m *mixed) {
		share := uniform(r, 0.2, 1)
		m.Delivered, m.Refused, m.Replayed = share*r.Float64()/2, share/4, share/4
	}},
	{"submitted twice, half slow", step, nil, func(r *rand.Rand, m *mixed) {
		m.Delivered, m.Refused, m.SlowShare, m.SlowBy = uniform(r, 0.1, 0.5), uniform(r, 0, 0.5), uniform(r, 0.2, 0.5), uniform(r, 2, 6)
	}},
	{"traffic times three to ten", step, nil, func(r *rand.Rand, m *mixed) { m.PerMinute *= uniform(r, 3, 10); m.slows(uniform(r, 1, 1.3)) }},
	{"hardly any traffic", step, nil, func(r *rand.Rand, m *mixed) { m.PerMinute *= uniform(r, 0.05, 0.4) }},
	{"a blip", blip, nil, func(r *rand.Rand, m *mixed) { m.First, m.Retry = uniform(r, 0.5, 1), uniform(r, 0.3, 1) }},
	{"nothing", step, nil, func(*rand.Rand, *mixed) {}},

	{"everything fails", step, nil, func(r *rand.Rand, m *mixed) { m.First, m.Retry = 1, 1 }},
	{"retries fail", step, nil, func(r *rand.Rand, m *mixed) { m.First, m.Retry = uniform(r, 0.4, 0.9), uniform(r, 0.8, 1) }},
	{"one attempt, a tenth and more fails", step, func(_ *rand.Rand, m *mixed) { m.Attempts = 1; m.First = min(m.First, 0.02) }, func(r *rand.Rand, m *mixed) { m.First = uniform(r, 0.12, 0.6) }},
}

// trouble makes first attempts and retries fail so often that retries still hide it.
func (m *mixed) trouble(r *rand.Rand) *mixed {
	m.First = uniform(r, 0.25, 0.6)
	m.Retry = min(0.5, m.First*uniform(r, 0.3, 1))
	m.Attempts = max(m.Attempts, 5)
	return m
}

func (m *mixed) flaky(r *rand.Rand) *mixed {
	m.First = uniform(r, 0.01, 0.10)
	m.Retry = m.First * uniform(r, 0.7, 1.3)
	m.Attempts = max(m.Attempts, 3)
	return m
}

func (m *mixed) slows(by float64) *mixed {
	m.Answer.MedianMS *= by
	return m
}

// Of the worlds of one kind: a cold start, minutes, hours.
var mixedHistories = []time.Duration{0, 8 * time.Minute, 25 * time.Minute, 75 * time.Minute, 3 * time.Hour, 6 * time.Hour}
