package web_test

import (
	"bytes"
	"context"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/web"
)

// one is an operation of one successful attempt.
func one(tenant, id string, at time.Time) retrylens.Attempt {
	return retrylens.Attempt{
		Tenant: tenant, LogicalID: id, OperationStartedAt: at, StartedAt: at, Hop: retrylens.HopClient, Cause: retrylens.CauseFirst, Service: "s", Environment: "prod",
		Operation: "chat", Provider: "p", Model: "m", Outcome: retrylens.OutcomeSuccess, Delivery: retrylens.DeliveryFull, UpstreamCalls: retrylens.Some[uint16](1),
		DurationMS: retrylens.Some[int64](100), Final: retrylens.Some(true), UsageSource: retrylens.UsageUnknown,
	}
}

// linkOf is the address of the link whose tag holds a text.
func linkOf(t *testing.T, body, tag string) string {
	t.Helper()
	for _, m := range regexp.MustCompile(`<(?:a|tr) [^>]*?href="([^"]+)"[^>]*>`).FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[0], tag) {
			return html.UnescapeString(m[1])
		}
	}
	t.Fatalf("no link with %s", tag)
	return ""
}

// TestThePermalinkShowsTheSame: of a search without a window, and of a later page of a log.
func TestThePermalinkShowsTheSame(t *testing.T) {
	old := one("a", "old", histories.Now.AddDate(0, 0, -40))
	attempts := []retrylens.Attempt{old}
	for i := range 70 {
		attempts = append(attempts, one("a", "of-today-"+string(rune('A'+i)), histories.Now.Add(-time.Duration(i)*time.Second)))
	}
	get := served(t, &folded{attempts: attempts})
	_, first := get("/operations")
	for _, path := range []string{"/operations?logical_id=old", "/operations?logical_id=old&to=now", linkOf(t, first, `rel="next"`)} {
		_, shown := get(path)
		_, again := get(linkOf(t, shown, `class="freeze"`))
		rows := func(body string) string {
			return strings.Join(regexp.MustCompile(`href="/op/([^?]+)`).FindAllString(body, -1), " ")
		}
		if rows(shown) == "" || rows(shown) != rows(again) {
			t.Errorf("%s shows %q, its permalink %q", path, rows(shown), rows(again))
		}
	}
}

// TestEveryIDHasAPage, also those that browsers take out of a path: the list leads there, and what
// it gives to take along asks the service that was asked.
func TestEveryIDHasAPage(t *testing.T) {
	for _, id := range []string{".", "..", "...", "a/../b", "%2e%2e", "?", "x y", "/"} {
		get := served(t, &folded{attempts: []retrylens.Attempt{one("a", id, histories.Now.Add(-time.Minute))}})
		_, list := get("/operations")
		href := linkOf(t, list, "data-href")
		base, err := url.Parse("http://example.com/operations")
		if err != nil {
			t.Fatal(err)
		}
		to, err := base.Parse(href) // as a browser does
		if err != nil {
			t.Fatal(err)
		}
		resp, body := get(to.RequestURI())
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, `<h2 class="id">`+html.EscapeString(id)+"</h2>") {
			t.Errorf("%q: %s leads to %s", id, href, resp.Status)
		}
		if !strings.Contains(html.UnescapeString(body), "'http://example.com/api/v1/operations") {
			t.Errorf("%q: the command asks another service", id)
		}
	}
}

// TestEmptyNamesTheFilter that emptied it, the tenant too; who is restricted learns nothing of others.
func TestEmptyNamesTheFilter(t *testing.T) {
	f := &folded{attempts: []retrylens.Attempt{one("a", "1", histories.Now.Add(-time.Minute)), one("b", "2", histories.Now.Add(-time.Minute))}}
	all, ofA, ofC := served(t, f), served(t, f, "a"), served(t, f, "c", "d")
	for _, page := range []string{"/", "/errors", "/layers", "/spend", "/operations"} {
		for _, c := range []struct {
			get           func(string) (*http.Response, string)
			filter, named string
		}{
			{all, "tenant=none", "tenant"}, {all, "tenant=a&model=none", "model"}, {ofA, "provider=none", "provider"}, {ofA, "tenant=a&provider=none", "provider"}, {ofC, "tenant=c", ""},
		} {
			_, body := c.get(page + "?" + c.filter)
			if got := strings.Contains(body, "Without the filter <b>"+c.named+"</b>"); got != (c.named != "") {
				t.Errorf("%s?%s names no filter %q, or should not", page, c.filter, c.named)
			}
		}
	}
}

// TestIncidentsOfOthersHideNone: a hundred later ones of another tenant.
func TestIncidentsOfOthersHideNone(t *testing.T) {
	f := &folded{}
	for range 150 {
		f.incidents = append(f.incidents, alertOf("t2"))
	}
	for path, get := range map[string]func(string) (*http.Response, string){"/alerts": served(t, f, "t1"), "/alerts?tenant=t1": served(t, f)} {
		_, body := get(path)
		_, fired, _ := strings.Cut(body, "Fired in this window")
		if n := strings.Count(fired, `<li class="alert`); n != 1 || strings.Contains(fired, "Only the latest") {
			t.Errorf("%s shows %d incidents of one", path, n)
		}
	}
}

// TestPartOfADayIsNoDay: periods that reach out of the window say so.
func TestPartOfADayIsNoDay(t *testing.T) {
	get := served(t, &folded{attempts: []retrylens.Attempt{one("a", "1", time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)), one("a", "2", time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC))}})
	for query, want := range map[string]string{
		"from=2026-11-03&to=2026-11-05":                               "2026-11-04 2026-11-03",
		"from=2026-11-03T01:00:00Z&to=2026-11-04T13:00:00Z":           "2026-11-04 (part) 2026-11-03 (part)",
		"from=2026-11-01&to=2026-12-01&as_of=2026-12-01&period=month": "2026-11",
		"from=2026-11-02&to=2026-11-30&period=month":                  "2026-11 (part)",
	} {
		_, body := get("/spend?" + query)
		_, table, _ := strings.Cut(body, "<caption>Spend, exact</caption>")
		table, _, _ = strings.Cut(table, "</table>")
		if got := strings.Join(regexp.MustCompile(`2026-\d\d(-\d\d)?( \(part\))?<`).FindAllString(table, -1), " "); strings.ReplaceAll(got, "<", "") != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// TestStatusClaimsNoReport: nothing was counted for it, so it does not say that nothing was executed.
func TestStatusClaimsNoReport(t *testing.T) {
	_, body := served(t, &folded{attempts: histories.Generate(3, 100)})("/status")
	if strings.Contains(body, "none was executed") || strings.Contains(body, "provisional") || !strings.Contains(body, "records missing") {
		t.Error("it tells of a report that it did not ask for")
	}
}

// TestLongNamesLeaveRoomForFigures: they are cut, with all of them on hover.
func TestLongNamesLeaveRoomForFigures(t *testing.T) {
	long := one("a", "1", histories.Now.Add(-time.Minute))
	long.Provider, long.Model, long.Service = strings.Repeat("p", 64), strings.Repeat("m", 128), strings.Repeat("s", 128)
	get := served(t, &folded{attempts: []retrylens.Attempt{long}})
	for path, name := range map[string]string{"/": long.Model, "/errors": long.Model, "/layers": long.Service, "/spend?from=now-1h": long.Model, "/operations": long.Model} {
		if _, body := get(path); !regexp.MustCompile(`<td class="name" title="` + name).MatchString(body) {
			t.Errorf("%s does not cut it", path)
		}
	}
}

// TestWhoIsGoneIsNoFailure: a viewer that left is not answered, and the log is quiet.
func TestWhoIsGoneIsNoFailure(t *testing.T) {
	var log bytes.Buffer
	ctx, leave := context.WithCancel(t.Context())
	r := chi.NewRouter()
	web.Mount(r, web.Options{Source: &folded{err: context.Canceled}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return histories.Now }})
	leave()
	for _, path := range append([]string{"/op/1"}, everyPage...) {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	}
	if log.Len() > 0 {
		t.Errorf("logged:\n%s", log.String())
	}
}
