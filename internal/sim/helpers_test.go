package sim_test

import (
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/sim"
	"github.com/retrylens/retrylens/internal/sim/world"
)

var start = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// played is a simulation and what came of it.
type played struct {
	t        testing.TB
	sim      *sim.Simulation
	attempts []retrylens.Attempt
	stats    world.Stats
	end      time.Time
}

// play runs three hours of a scenario, or what the options say.
func play(t testing.TB, o sim.Options) *played {
	t.Helper()
	if o.Start.IsZero() {
		o.Start = start
	}
	if o.Duration == 0 && o.Trace == nil {
		o.Duration = 3 * time.Hour
	}
	s, err := sim.Build(o)
	if err != nil {
		t.Fatal(err)
	}
	return playWorld(t, s)
}

func playWorld(t testing.TB, s *sim.Simulation) *played {
	t.Helper()
	p := &played{t: t, sim: s, end: s.World.Start.Add(s.World.Duration)}
	var err error
	p.stats, err = s.World.Run(t.Context(), func(a *retrylens.Attempt) error {
		p.attempts = append(p.attempts, *a)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// figures of a provider's operations that start within a window; "" = of all.
type figures struct {
	metrics.Row
	metrics.Figures
	report *metrics.Report
}

func (p *played) fold(provider string, from, to time.Time) figures {
	p.t.Helper()
	q := metrics.Query{From: from, To: to, AsOf: p.end.Add(24 * time.Hour)}
	if provider != "" {
		q.Filters = map[metrics.Dimension][]string{metrics.DimProvider: {provider}}
	}
	r, err := metrics.Fold(p.attempts, q)
	if err != nil {
		p.t.Fatal(err)
	}
	return figures{r.Rows[0], r.Rows[0].Counters.Figures(), r}
}

// phases are before, during and after the first truth.
func (p *played) phases(provider string) (before, during, after figures) {
	p.t.Helper()
	truth := p.sim.Truth[0]
	return p.fold(provider, p.sim.World.Start, truth.From), p.fold(provider, truth.From, truth.To), p.fold(provider, truth.To, p.end)
}

func ndjson(attempts []retrylens.Attempt) []byte {
	var b []byte
	for i := range attempts {
		b = append(attempts[i].AppendJSON(b), '\n')
	}
	return b
}

// seeds that every shape is tried with.
var seeds = []uint64{1, 2, 3}
