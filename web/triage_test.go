package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// A page of two thousand years is as small as its history.
func TestEndlessWindowsMakeSmallPages(t *testing.T) {
	get := served(t, &folded{attempts: histories.Generate(3, 200)})
	for _, path := range []string{"/", "/errors", "/spend", "/layers"} {
		for _, window := range []string{"from=2026-01-01&to=2026-12-31", "from=1900-01-01&to=2200-01-01", "from=1970-01-01&to=2026-11-30", "from=0001-01-01T00:00:01Z&to=2200-01-01T00:00:00Z"} {
			if r, body := get(path + "?" + window); r.StatusCode != http.StatusOK || len(body) > 1<<20 {
				t.Errorf("%s?%s: %d, %d bytes", path, window, r.StatusCode, len(body))
			}
		}
	}
}

// The verdict's group shows its example, whatever else failed the same way later.
func TestExampleIsOfTheVerdictsGroup(t *testing.T) {
	for _, group := range []string{"provider", "provider,model", "tenant", "service"} {
		var all []retrylens.Attempt
		add := func(id, who string, at time.Time, ok bool) {
			a := retrylens.Attempt{Tenant: who, Service: who, LogicalID: id, Provider: who, Model: "m", StartedAt: at, Outcome: retrylens.OutcomeSuccess, DurationMS: retrylens.Some(int64(100))}
			if !ok {
				a.Outcome, a.ErrorClass, a.Final = retrylens.OutcomeError, retrylens.ClassTimeout, retrylens.Some(true)
			}
			a.Normalize()
			all = append(all, a)
		}
		begin := histories.Now.Add(-50 * time.Minute)
		for i := range 60 {
			add(fmt.Sprint("bad-", i), "one", begin.Add(time.Duration(i)*time.Second), false)
			add(fmt.Sprint("good-", i), "two", begin.Add(time.Duration(i)*40*time.Second), true)
		}
		add("single", "two", histories.Now.Add(-5*time.Minute), false)
		if _, body := served(t, &folded{attempts: all})("/?group=" + group); !strings.Contains(body, "/op/bad-") {
			t.Errorf("group=%s: no example among 60 operations", group)
		}
	}
}
