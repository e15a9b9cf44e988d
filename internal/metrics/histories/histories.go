package histories

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/retrylens/retrylens"
)

// Base is the midnight around which operations start: within 2 hours of it,
// crowded at the edges of minutes and hours.
var Base = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

// Now is later than every time in a history.
var Now = Base.Add(24 * time.Hour)

// Generate returns at least n attempts, normalized and valid, shuffled:
// several operations with duplicates, revisions and same-revision conflicts
// among them.
func Generate(seed uint64, n int) []retrylens.Attempt {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 0x7265747279))}
	for i := 0; len(g.out) < n; i++ {
		g.operation(i)
	}
	g.rand.Shuffle(len(g.out), func(i, j int) { g.out[i], g.out[j] = g.out[j], g.out[i] })
	return g.out
}

type generator struct {
	rand     *rand.Rand
	out      []retrylens.Attempt
	seq      [3]int64
	earliest time.Time // no record of the current operation starts before
}

// Tenants are those of every history; they share logical ids.
var Tenants = []string{"acme", "globex", "тест"}

var (
	services     = []string{"", "checkout", "agent \"x\"", "поиск"}
	environments = []string{"", "prod", "staging"}
	operations   = []string{"", "plan", "rerank\\"}
	providers    = []string{"openai", "anthropic", "gemini"}
	models       = []string{"", "gpt-4o", "o'haiku"}
)

func pick[T any](g *generator, from []T) T { return from[g.rand.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

// upTo returns a duration of whole milliseconds below d.
func (g *generator) upTo(d time.Duration) time.Duration {
	return time.Duration(g.rand.Int64N(d.Milliseconds())) * time.Millisecond
}

// operation emits one operation, for one or several tenants at once.
func (g *generator) operation(i int) {
	id := fmt.Sprintf("op-%d", i)
	g.earliest = g.start()
	for _, tenant := range Tenants {
		if !g.chance(60) {
			continue
		}
		base := retrylens.Attempt{Tenant: tenant, LogicalID: id, OperationStartedAt: g.earliest}
		g.fillHome(&base)
		shape := g.rand.IntN(10)
		if shape < 8 {
			g.hop(base, retrylens.HopClient)
		}
		if shape >= 5 {
			g.hop(g.skewed(base), retrylens.HopGateway)
		}
	}
}

// start favours the very edges of minutes, hours and the day.
func (g *generator) start() time.Time {
	t := Base.Add(g.upTo(4*time.Hour) - 2*time.Hour)
	edge := pick(g, []time.Duration{0, time.Minute, time.Hour, 24 * time.Hour})
	if edge == 0 {
		return t
	}
	return t.Round(edge).Add(time.Duration(g.rand.IntN(5)-2) * time.Millisecond)
}

// moved is another start for records of the current operation. All its records
// start within 5 minutes of each other, as the record's document says.
func (g *generator) moved() time.Time {
	return g.earliest.Add(g.upTo(5*time.Minute + time.Millisecond))
}

// skewed gives a hop its own clock.
func (g *generator) skewed(a retrylens.Attempt) retrylens.Attempt {
	if g.chance(50) {
		a.OperationStartedAt = g.moved()
	}
	return a
}

func (g *generator) fillHome(a *retrylens.Attempt) {
	a.Service, a.Environment, a.Operation = pick(g, services), pick(g, environments), pick(g, operations)
	a.Provider, a.Model = pick(g, providers), pick(g, models)
}

// hop emits the records of one hop.
func (g *generator) hop(base retrylens.Attempt, hop retrylens.Hop) {
	base.Hop = hop
	clock, ordinals := base.OperationStartedAt, g.ordinals()
	for _, n := range ordinals {
		a := base
		a.Attempt = n
		a.StartedAt = clock
		if g.chance(10) {
			a.StartedAt = clock.Add(-g.upTo(time.Second)) // the most that validation allows
		}
		g.fillAttempt(&a, ordinals)
		g.emit(a)
		if g.chance(70) { // else the next one starts at the same time: equal starts, equal ends
			clock = clock.Add(g.upTo(pick(g, []time.Duration{100 * time.Millisecond, 5 * time.Second, 30 * time.Second})))
		}
	}
}

// ordinals returns the attempts of a hop: gaps, several runs, sometimes no 0,
// sometimes many.
func (g *generator) ordinals() []int32 {
	var out []int32
	next, count := int32(0), 1+g.rand.IntN(5)
	if g.chance(3) {
		count = 15
	}
	if g.chance(20) {
		next = int32(g.rand.IntN(3)) * 100
	}
	for range count {
		out = append(out, next)
		next++
		switch {
		case g.chance(10):
			next += int32(g.rand.IntN(4))
		case g.chance(12):
			next = next/100*100 + 100*int32(1+g.rand.IntN(3))
		}
	}
	if g.chance(2) {
		out = append(out, 2147483600+int32(g.rand.IntN(48)))
	}
	return out
}

// emit adds the record, and what a hostile transport and a correcting emitter
// make of it.
func (g *generator) emit(a retrylens.Attempt) {
	g.number(&a)
	g.add(a)
	for g.chance(15) { // sent again, the same day or another
		g.add(a)
	}
	if g.chance(12) {
		g.add(g.revised(a, a.Revision+1+uint8(g.rand.IntN(3))))
	}
	if g.chance(6) { // an emitter's fault: other contents, same revision
		g.add(g.revised(a, a.Revision))
	}
	if g.chance(2) {
		g.add(g.revised(a, 255))
	}
}

func (g *generator) number(a *retrylens.Attempt) {
	if g.chance(20) {
		return
	}
	e := g.rand.IntN(len(g.seq))
	a.Emitter, a.Seq = fmt.Sprintf("emitter-%d", e), retrylens.Some(g.seq[e])
	g.seq[e]++
	if g.chance(5) {
		g.seq[e]++ // a record that was lost
	}
}

// revised is the same identity with other contents: moved in time, or to
// another group, and with another verdict.
func (g *generator) revised(a retrylens.Attempt, revision uint8) retrylens.Attempt {
	a.Revision = revision
	if g.chance(40) {
		move := g.moved().Sub(a.OperationStartedAt)
		a.OperationStartedAt, a.StartedAt = a.OperationStartedAt.Add(move), a.StartedAt.Add(move)
	}
	if g.chance(30) {
		g.fillHome(&a)
	}
	fresh := retrylens.Attempt{
		Tenant: a.Tenant, LogicalID: a.LogicalID, OperationStartedAt: a.OperationStartedAt, Hop: a.Hop, Attempt: a.Attempt,
		Revision: a.Revision, Service: a.Service, Environment: a.Environment, Operation: a.Operation,
		Provider: a.Provider, Model: a.Model, StartedAt: a.StartedAt, Emitter: a.Emitter, Seq: a.Seq,
	}
	g.fillAttempt(&fresh, []int32{0, 1, 2, a.Attempt})
	return fresh
}

func (g *generator) add(a retrylens.Attempt) {
	a.Normalize()
	g.out = append(g.out, a)
}
