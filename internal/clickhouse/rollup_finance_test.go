package clickhouse_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// finance is what settlements and prices say, read as the view attempts_effective
// is documented, not as it is written.
type finance struct {
	settlements map[[2]string]settlement
	prices      map[[2]string]map[int64]price // by the start of validity in Unix milliseconds
	version     uint64
}

type settlement struct {
	prompt, completion retrylens.Opt[int64]
	cost               retrylens.Opt[retrylens.Money]
	version            uint64
}

type price struct {
	micro   [4]int64 // USD per million tokens · 10⁶: prompt, cached, written, completion
	version uint64
}

// effective are the attempts that stay, each with what finance knows of it.
func (f *finance) effective(attempts []retrylens.Attempt) []retrylens.Attempt {
	type identity struct {
		tenant, id string
		hop        retrylens.Hop
		attempt    int32
	}
	at := map[identity]int{}
	var out []retrylens.Attempt
	for _, a := range attempts {
		k := identity{a.Tenant, a.LogicalID, a.Hop, a.Attempt}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			out = append(out, a)
		} else if a.Version() > out[i].Version() {
			out[i] = a
		}
	}
	for i := range out {
		f.apply(&out[i])
	}
	return out
}

func (f *finance) apply(a *retrylens.Attempt) {
	if p, ok := f.priceOf(a); ok && !a.CostUSD.Set && (a.PromptTokens.Set || a.CompletionTokens.Set) {
		a.CostUSD = retrylens.Some(p.of(a))
	}
	s, ok := f.settlements[[2]string{a.Provider, a.ProviderRequestID}]
	if !ok {
		return
	}
	if s.prompt.Set {
		a.PromptTokens, a.UsageSource = s.prompt, retrylens.UsageProvider
	}
	if s.completion.Set {
		a.CompletionTokens, a.UsageSource = s.completion, retrylens.UsageProvider
	}
	if s.cost.Set {
		a.CostUSD = s.cost
	}
}

func (f *finance) priceOf(a *retrylens.Attempt) (p price, ok bool) {
	last := int64(-1)
	for from, candidate := range f.prices[[2]string{a.Provider, a.Model}] {
		if from <= a.StartedAt.UnixMilli() && from > last {
			last, p, ok = from, candidate, true
		}
	}
	return p, ok
}

// of is the cost of the attempt's tokens: 10⁻⁶ USD a million is a pico-dollar a token.
func (p price) of(a *retrylens.Attempt) retrylens.Money {
	cached, written := a.CachedPromptTokens.Value, a.CacheWriteTokens.Value
	sum := new(big.Int)
	for i, tokens := range []int64{max(0, a.PromptTokens.Value-cached-written), cached, written, a.CompletionTokens.Value} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(p.micro[i]), big.NewInt(tokens)))
	}
	m, ok := retrylens.MoneyFromPico(sum)
	if !ok {
		panic(sum)
	}
	return m
}

// financeWorld is a rollupWorld with settlements and prices.
type financeWorld struct {
	rollupWorld
	finance
}

func (w *financeWorld) settleSome(t *testing.T) {
	t.Helper()
	for range 1 + w.rnd.IntN(3) {
		w.version++
		key := [2]string{[]string{"openai", "anthropic", "gemini"}[w.rnd.IntN(3)], fmt.Sprint("req-", w.rnd.IntN(60))}
		s := settlement{version: uint64(w.rnd.IntN(20))<<32 | w.version}
		if w.rnd.IntN(2) == 0 {
			s.prompt = retrylens.Some(w.rnd.Int64N(4000))
		}
		if w.rnd.IntN(2) == 0 {
			s.completion = retrylens.Some(w.rnd.Int64N(4000))
		}
		if w.rnd.IntN(2) == 0 {
			s.cost = retrylens.Some(retrylens.PicoUSD(w.rnd.Uint64N(9_000_000_000_000)))
		}
		null := func(o retrylens.Opt[int64]) string {
			if o.Set {
				return fmt.Sprint(o.Value)
			}
			return "NULL"
		}
		cost := "NULL"
		if s.cost.Set {
			cost = "'" + s.cost.Value.String() + "'"
		}
		q := fmt.Sprintf("INSERT INTO %s.settlements VALUES ('%s', '%s', %s, %s, %s, %d)", w.store.Database(), key[0], key[1], null(s.prompt), null(s.completion), cost, s.version)
		if err := w.store.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if old, ok := w.settlements[key]; !ok || s.version > old.version {
			w.settlements[key] = s
		}
	}
}

func (w *financeWorld) priceSome(t *testing.T) {
	t.Helper()
	w.version++
	key := [2]string{[]string{"openai", "anthropic", "gemini"}[w.rnd.IntN(3)], []string{"", "gpt-4o", "o'haiku"}[w.rnd.IntN(3)]}
	from := histories.Base.Add(time.Duration(w.rnd.IntN(12)-7) * 30 * time.Minute)
	p := price{version: uint64(w.rnd.IntN(20)+1)<<32 | w.version}
	for i := range p.micro {
		p.micro[i] = w.rnd.Int64N(75_000_000)
	}
	usd := func(micro int64) string { return fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000) }
	model := map[string]string{"": "", "gpt-4o": "gpt-4o", "o'haiku": `o\'haiku`}[key[1]]
	q := fmt.Sprintf("INSERT INTO %s.prices VALUES ('%s', '%s', fromUnixTimestamp64Milli(%d), %s, %s, %s, %s, %d)", w.store.Database(), key[0], model, from.UnixMilli(),
		usd(p.micro[0]), usd(p.micro[1]), usd(p.micro[2]), usd(p.micro[3]), p.version)
	if err := w.store.Exec(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if w.prices[key] == nil {
		w.prices[key] = map[int64]price{}
	}
	if old, ok := w.prices[key][from.UnixMilli()]; !ok || p.version > old.version {
		w.prices[key][from.UnixMilli()] = p
	}
}

// compare holds a report to the reference fold of what finance says.
func (w *financeWorld) compare(t *testing.T, q metrics.Query) {
	t.Helper()
	want, err := metrics.Fold(w.effective(w.written), q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.store.Report(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	want.Completeness.SetGaps(metrics.EmitterGaps(w.written, q.Filters[metrics.DimTenant]...))
	diffReports(t, q, got, want)
}

// Whatever settlements and prices come, before, between and after the attempts that
// they are about and in whatever order of versions, and wherever finalisers are
// killed, stall or run at once: at every moment a report that uses rollups is the
// reference fold of the attempts as finance knows them.
func TestRollupsEqualTheFoldsAsFinanceKnowsBetter(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().Unix() / 86400 * 1000)
	}
	const atLeast, budget = 1, 15 * time.Second
	began := time.Now()
	for i := uint64(0); i < atLeast || time.Since(began) < budget; i++ {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) {
			w := &financeWorld{
				rollupWorld: rollupWorld{store: rolledStore(t), rnd: rand.New(rand.NewPCG(first+i, 8))},
				finance:     finance{settlements: map[[2]string]settlement{}, prices: map[[2]string]map[int64]price{}},
			}
			w.live(t, first+i)
		})
	}
}

func (w *financeWorld) live(t *testing.T, seed uint64) {
	attempts := histories.Generate(seed, 150)
	for i := range attempts {
		if n := attempts[i].Version() % 90; n < 60 { // shared by some, of other providers too
			attempts[i].ProviderRequestID = fmt.Sprint("req-", n)
		}
	}
	w.store.SetSliceRows([]uint64{100, 1_000_000}[w.rnd.IntN(2)])
	w.store.SetDirectOperations([]int{-1, 20, 1_000_000}[w.rnd.IntN(3)])
	w.store.SetFinaliseRows([]uint64{30, 1_000_000}[w.rnd.IntN(2)], []int{20, 1_000_000}[w.rnd.IntN(2)])
	broad := metrics.Query{AsOf: histories.Now, GroupBy: metrics.HomeDimensions}
	for len(attempts) > 0 {
		n := min(len(attempts), 1+w.rnd.IntN(100))
		w.write(t, attempts[:n])
		attempts = attempts[n:]
		for range w.rnd.IntN(4) {
			w.say(t)
			w.disturb(t)
			w.compare(t, randomQuery(w.rnd, w.written))
		}
		if w.rnd.IntN(2) == 0 {
			finalise(t, w.store, clickhouse.FinaliseOptions{})
			w.compare(t, broad)
		}
	}
	for _, c := range w.stalled {
		close(c)
	}
	w.running.Wait()
	w.say(t)
	finalise(t, w.store, clickhouse.FinaliseOptions{})
	for _, by := range [][]metrics.Dimension{metrics.HomeDimensions, {metrics.DimTenant}, {metrics.DimService, metrics.DimExecutedProvider, metrics.DimExecutedModel}} {
		q := metrics.Query{AsOf: histories.Now, GroupBy: by, From: histories.Base.Add(-3 * time.Hour), To: histories.Base.Add(3 * time.Hour)}
		w.store.SetQuantileRows(1 << 40)
		w.compare(t, q)
		q.CountersOnly = true
		w.store.SetQuantileRows(0)
		w.onlyRollups(t, q)
	}
}

func (w *financeWorld) say(t *testing.T) {
	t.Helper()
	if w.rnd.IntN(2) == 0 {
		w.settleSome(t)
	}
	if w.rnd.IntN(3) == 0 {
		w.priceSome(t)
	}
}
