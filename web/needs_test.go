package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/internal/rollup"
)

// sparing answers with the counters that are asked for and leaves every other zero.
type sparing struct {
	*folded
	t      *testing.T
	spared bool // something was left out
}

func (s *sparing) Report(ctx context.Context, q metrics.Query) (*metrics.Report, error) {
	r, err := s.folded.Report(ctx, q)
	figures, needErr := rollup.Needed(q.Needs)
	if needErr != nil {
		s.t.Error(needErr)
	}
	if err != nil || len(q.Needs) == 0 {
		return r, err
	}
	s.spared = true
	for i := range r.Rows {
		r.Rows[i].Counters = rollup.Keep(&r.Rows[i].Counters, figures)
	}
	return r, nil
}

// Whatever a page shows, it has asked for: it is the same page where the store leaves out
// every counter that was not.
func TestPagesNeedNoMoreThanTheyAsk(t *testing.T) {
	window := "from=2026-10-01T00:00:00Z&to=2026-12-31T00:00:00Z"
	for _, path := range []string{
		"/?" + window, "/?" + window + "&group=tenant,service", "/?" + window + "&sort=-shed", "/errors?" + window, "/errors?" + window + "&group=service", "/errors?" + window + "&sort=-rescued",
		"/layers?" + window, "/layers?" + window + "&group=model", "/layers?" + window + "&sort=lost", "/spend?" + window, "/spend?" + window + "&group=tenant&period=month", "/spend?" + window + "&group=executed_model&sort=-recovered_tokens",
	} {
		t.Run(path, func(t *testing.T) {
			f := &folded{attempts: append(histories.Generate(3, 4000), orphans()...)}
			spare := &sparing{folded: f, t: t}
			_, all := served(t, f)(path)
			r, some := servedBy(t, spare)(path)
			if r.StatusCode != http.StatusOK || all != some {
				t.Errorf("%d; with fewer counters the page differs: %s", r.StatusCode, firstDifference(all, some))
			}
			if sorted := strings.Contains(path, "sort="); spare.spared == sorted && !strings.HasPrefix(path, "/errors") && !strings.HasPrefix(path, "/spend") {
				t.Errorf("left out: %t; a page that sorts may need any counter, others do not", spare.spared)
			}
		})
	}
}

// orphans are paid for by their completion tokens, of which tables show the shares.
func orphans() []retrylens.Attempt {
	a := retrylens.Attempt{
		Tenant: "acme", LogicalID: "orphan", Provider: "openai", Model: "m", StartedAt: histories.Base, Outcome: retrylens.OutcomeAbandoned, DurationMS: retrylens.Some[int64](100),
		CompletionTokens: retrylens.Some[int64](1e9), UsageSource: retrylens.UsagePartial,
	}
	a.Normalize()
	return []retrylens.Attempt{a}
}

func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[max(0, i-200):min(len(a), i+100)] + "\n--- instead of ---\n" + b[max(0, i-200):min(len(b), i+100)]
		}
	}
	return "by length"
}
