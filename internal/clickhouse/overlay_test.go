package clickhouse_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// What finance knows better is laid over at read time: a settlement overrides
// usage and cost, a price gives a cost to tokens that came without one, and of
// several the latest holds.
func TestOverlaysAreRead(t *testing.T) {
	for name, direct := range map[string]int{"in SQL": -1, "by the reference fold": 1000} {
		t.Run(name, func(t *testing.T) {
			store := newStore(t)
			store.SetDirectOperations(direct)
			if err := store.Write(t.Context(), overlaid()); err != nil {
				t.Fatal(err)
			}
			db := store.Database()
			for _, q := range []string{
				"INSERT INTO " + db + ".settlements VALUES ('openai', 'req-1', 100, 50, 1.5, 1), ('openai', 'req-1', 1000, NULL, 2.25, 2), ('azure', 'req-1', 9, 9, 9, 9)",
				"INSERT INTO " + db + ".prices VALUES ('openai', 'm', '2026-01-01 00:00:00', 1, 1, 1, 1, 1), ('openai', 'm', '2026-11-01 00:00:00', 2, 0.5, 4, 8, 1), ('openai', 'm', '2027-01-01 00:00:00', 99, 99, 99, 99, 1)",
			} {
				if err := store.Exec(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			report, err := store.Report(t.Context(), metrics.Query{AsOf: histories.Now})
			if err != nil {
				t.Fatal(err)
			}
			row := report.Rows[0]
			// a: settled 1000 + 7 as reported, 2.25 USD; b: (1000-300-100)·2 + 300·0.5 + 100·4 + 10·8 per million.
			if got, want := row.BilledTokens, uint64(1000+7+1000+10); got != want {
				t.Errorf("billed_tokens %d, want %d", got, want)
			}
			if got, want := row.BilledCostUSD.String(), "2.251830000000"; got != want {
				t.Errorf("billed_cost_usd %s, want %s", got, want)
			}
			if got, want := row.OrphanedCostUSD.String(), "0.001830000000"; got != want {
				t.Errorf("orphaned_cost_usd %s, want %s", got, want)
			}
		})
	}
}

// overlaid are one settled success and one failure with tokens and no cost.
func overlaid() []retrylens.Attempt {
	a := retrylens.Attempt{
		Tenant: "t", LogicalID: "a", Provider: "openai", Model: "m", ProviderRequestID: "req-1", StartedAt: histories.Base,
		Outcome: retrylens.OutcomeSuccess, PromptTokens: retrylens.Some(int64(5)), CompletionTokens: retrylens.Some(int64(7)), CostUSD: retrylens.Some(retrylens.PicoUSD(1)),
	}
	b := retrylens.Attempt{
		Tenant: "t", LogicalID: "b", Provider: "openai", Model: "m", StartedAt: histories.Base,
		Outcome: retrylens.OutcomeError, ErrorClass: retrylens.ClassTimeout,
		PromptTokens: retrylens.Some(int64(1000)), CachedPromptTokens: retrylens.Some(int64(300)), CacheWriteTokens: retrylens.Some(int64(100)), CompletionTokens: retrylens.Some(int64(10)),
	}
	out := []retrylens.Attempt{a, b}
	for i := range out {
		out[i].Normalize()
	}
	return out
}

// An amount that is negative is refused; one that an older schema took makes reports and
// passes fail with what to do, and nothing else: no process ends by it.
func TestNegativeAmountsAreRefused(t *testing.T) {
	for name, direct := range map[string]int{"in SQL": -1, "by the reference fold": 1000} {
		t.Run(name, func(t *testing.T) {
			s := rolledStore(t)
			s.SetDirectOperations(direct)
			priced := one("c", histories.Base, retrylens.OutcomeSuccess)
			priced.CompletionTokens = retrylens.Some(int64(10))
			write(t, s, append(overlaid(), priced)...)
			exec := func(statement string) error {
				return s.Exec(t.Context(), fmt.Sprintf(statement, s.Database()))
			}
			settle := "INSERT INTO %s.settlements VALUES ('openai', 'req-1', NULL, NULL, "
			price := "INSERT INTO %s.prices VALUES ('openai', 'm', '2026-01-01 00:00:00', 1, 1, 1, "
			for _, c := range []struct{ table, constraint, bad, good string }{
				{"settlements", "cost_is_not_negative", settle + "-1.5, 1)", settle + "1.5, 2)"},
				{"prices", "prices_are_not_negative", price + "-1000000, 1)", price + "1, 2)"},
			} {
				if exec(c.bad) == nil {
					t.Fatalf("%s: taken", c.bad)
				}
				if err := exec("ALTER TABLE %s." + c.table + " DROP CONSTRAINT " + c.constraint); err != nil { // as before schema 9
					t.Fatal(err)
				}
				if err := exec(c.bad); err != nil {
					t.Fatal(err)
				}
				const hint = "is negative; insert it again with a higher version"
				if _, err := s.Report(t.Context(), metrics.Query{AsOf: histories.Now}); err == nil || !strings.Contains(err.Error(), hint) {
					t.Errorf("%s: report: %v", c.bad, err)
				}
				if _, err := s.Finalise(t.Context(), clickhouse.FinaliseOptions{AsOf: histories.Now}); err == nil || !strings.Contains(err.Error(), hint) {
					t.Errorf("%s: pass: %v", c.bad, err)
				}
				if err := exec(c.good); err != nil {
					t.Fatal(err)
				}
				finalise(t, s, clickhouse.FinaliseOptions{})
				if _, err := s.Report(t.Context(), metrics.Query{AsOf: histories.Now}); err != nil {
					t.Errorf("%s: %v", c.good, err)
				}
			}
		})
	}
}
