package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
	"github.com/retrylens/retrylens/web"
)

// folded answers by the reference fold of attempts.
type folded struct {
	attempts []retrylens.Attempt
	err      error // instead of every answer

	incidents []api.Alert // the latest, before that of t1
}

func (f *folded) Report(_ context.Context, q metrics.Query) (*metrics.Report, error) {
	if f.err != nil {
		return nil, f.err
	}
	r, err := metrics.Fold(f.attempts, q)
	if err == nil {
		c := &metrics.Completeness{}
		c.SetGaps(metrics.EmitterGaps(f.attempts, q.Filters[metrics.DimTenant]...))
		r.Completeness = c
	}
	return r, err
}

func (f *folded) Operations(_ context.Context, s metrics.Search) ([]metrics.Operation, error) {
	if f.err != nil {
		return nil, f.err
	}
	return metrics.Find(f.attempts, s)
}

func (f *folded) Attempts(_ context.Context, id string, tenants ...string) ([]retrylens.Attempt, error) {
	var out []retrylens.Attempt
	for _, a := range f.attempts {
		if a.LogicalID == id && (len(tenants) == 0 || slices.Contains(tenants, a.Tenant)) {
			out = append(out, a)
		}
	}
	return out, f.err
}

func (f *folded) Completeness(_ context.Context, tenants ...string) (*metrics.Completeness, error) {
	c := &metrics.Completeness{}
	c.SetGaps(metrics.EmitterGaps(f.attempts, tenants...))
	return c, f.err
}

func (f *folded) Status(context.Context) (api.Status, error) {
	return api.Status{Version: "1.2.3", Store: "embedded:./data", StartedAt: histories.Now, Ingest: []api.IngestStatus{{Node: hostile, ReportedAt: histories.Now}}}, f.err
}

func (f *folded) Alerts(context.Context) (api.AlertList, error) {
	at := histories.Now
	return api.AlertList{EvaluatedAt: &at, Alerts: []api.Alert{alertOf("t1"), alertOf(hostile)}, Rules: []api.Rule{{Alert: hostile, Expr: "amplification[5m] > 1.2", Severity: "page"}}}, f.err
}

func (f *folded) Incidents(_ context.Context, _, _ time.Time, limit int) ([]api.Alert, error) {
	all := append(slices.Clone(f.incidents), alertOf("t1"))
	return all[:min(len(all), limit)], f.err
}

func alertOf(tenant string) api.Alert {
	return api.Alert{Rule: "AmplificationHigh", Status: "firing", Severity: "page", Labels: map[string]string{"tenant": tenant}, Annotations: map[string]string{"summary": hostile}, Runbook: "AmplificationHigh", ActiveAt: histories.Now}
}

// hostile is what a name can be.
const hostile = `"><script>alert(1)</script>'` + "=cmd()\u202etxt\u2066\u200b\x1b[31m\n{{.}}"

func served(t *testing.T, f *folded, viewer ...string) func(path string) (*http.Response, string) {
	t.Helper()
	return detecting(t, f, nil, viewer...)
}

// detecting are the pages with a detector.
func detecting(t *testing.T, f *folded, d web.Detector, viewer ...string) func(path string) (*http.Response, string) {
	t.Helper()
	return servedFrom(t, f, d, viewer...)
}

func servedBy(t *testing.T, s api.Source) func(path string) (*http.Response, string) {
	t.Helper()
	return servedFrom(t, s, nil)
}

func servedFrom(t *testing.T, f api.Source, d web.Detector, viewer ...string) func(path string) (*http.Response, string) {
	t.Helper()
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if len(viewer) > 0 {
				req = req.WithContext(api.WithTenants(req.Context(), viewer...))
			}
			next.ServeHTTP(w, req)
		})
	})
	web.Mount(r, web.Options{Source: f, Detector: d, Version: "1.2.3", RunbookURL: "https://runbooks.example/x/", Now: func() time.Time { return histories.Now }})
	return func(path string) (*http.Response, string) {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		resp := w.Result()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
}

// says is a detector that always says the same.
type says []web.Verdict

func (s says) Verdicts(context.Context) ([]web.Verdict, error) { return s, nil }

// TestTheDetectorIsAsked about what the viewer may see and asks for, while the window
// reaches to now; the gravest series is named.
func TestTheDetectorIsAsked(t *testing.T) {
	d := says{
		{State: "healthy"}, {State: "flaky", Tenant: "a", Provider: "p1", Model: "m1", Since: histories.Now},
		{State: "outage", Tenant: "b", Provider: "p2", Model: hostile, Class: "timeout", Example: "op/1", Since: histories.Now},
	}
	all, ofA := detecting(t, &folded{}, d), detecting(t, &folded{}, d, "a")
	for _, c := range []struct {
		get  func(string) (*http.Response, string)
		path string
		want string
	}{
		{all, "/", "<strong>Outage</strong>"}, {all, "/?provider=p1", "<strong>Flaky</strong>"}, {all, "/?tenant=none", "<strong>No operations</strong>"},
		{all, "/?service=x", "<strong>No operations</strong>"}, {all, "/?from=2026-01-01&to=2026-01-02", "<strong>No operations</strong>"},
		{ofA, "/", "<strong>Flaky</strong>"}, {ofA, "/?provider=p2", "<strong>No operations</strong>"},
	} {
		if _, body := c.get(c.path); !strings.Contains(body, c.want) {
			_, verdict, _ := strings.Cut(body, `class="verdict`)
			t.Errorf("%s has no %s:\n%.600s", c.path, c.want, verdict)
		}
	}
	if _, body := all("/"); !strings.Contains(body, `href="/op/op%2F1`) || !strings.Contains(body, "timeout") {
		t.Error("no example, or no class")
	}
}

// window holds the generated histories.
const window = "from=2000-01-01&to=2100-01-01"

var everyPage = []string{"/", "/errors", "/layers", "/spend", "/operations", "/alerts", "/status"}

func TestEveryPageIsMadeUnderAStrictPolicy(t *testing.T) {
	get := served(t, &folded{attempts: histories.Generate(3, 800)})
	for _, path := range everyPage {
		resp, body := get(path + "?" + window)
		if resp.StatusCode != http.StatusOK || !strings.Contains(body, "<h1>") || !strings.Contains(body, "</html>") {
			t.Errorf("%s: %s\n%.300s", path, resp.Status, body)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, want) || strings.Contains(csp, "unsafe") {
				t.Errorf("%s: policy %q", path, csp)
			}
		}
		for _, inline := range []string{" style=", " onclick", "javascript:", "<style", "http://", "https://"} {
			if strings.Contains(strings.ReplaceAll(strings.ReplaceAll(body, "https://runbooks.example/", ""), "http://www.w3.org", ""), inline) {
				t.Errorf("%s has %q", path, inline)
			}
		}
	}
}

// TestNamesAreText: whatever a record, a URL or an alert holds, a page shows it as text,
// and shows what cannot be seen.
func TestNamesAreText(t *testing.T) {
	attempts := histories.Generate(5, 400)
	for i := range attempts {
		a := &attempts[i]
		a.LogicalID, a.Model, a.Provider, a.Tenant, a.Service = hostile+a.LogicalID, hostile, hostile, hostile, hostile
		a.IdempotencyKey, a.ProviderRequestID, a.ProviderErrorType, a.Emitter = hostile, hostile, hostile, hostile
	}
	get := served(t, &folded{attempts: attempts})
	paths := []string{"/op/" + url.PathEscape(attempts[0].LogicalID) + "?" + window, "/nope"}
	for _, p := range everyPage {
		paths = append(paths, p+"?"+window, p+"?"+window+"&model="+url.QueryEscape(hostile)+"&sort="+url.QueryEscape(hostile)+"&tz="+url.QueryEscape(hostile), p+"?from="+url.QueryEscape(hostile), p+"?"+window+"&logical_id="+url.QueryEscape(hostile))
	}
	shown := false
	for _, path := range paths {
		_, body := get(path)
		if strings.Contains(body, "<script>alert") || strings.Contains(outsideAttributes(body), "\x1b") {
			t.Errorf("%s runs what a name holds", path)
		}
		shown = shown || strings.Contains(body, `\u202e`)
		for _, r := range outsideAttributes(body) {
			if unicode.Is(unicode.Cf, r) {
				t.Errorf("%s shows a text with the invisible %U", path, r)
				break
			}
		}
	}
	if !shown {
		t.Error("no page shows the bidirectional character as an escape")
	}
}

// outsideAttributes is the text between tags; values of inputs must come back as they were.
func outsideAttributes(body string) string {
	var b strings.Builder
	in, quoted := false, false
	for _, r := range body {
		switch {
		case in && r == '"':
			quoted = !quoted
		case in && !quoted && r == '>':
			in = false
		case !in && r == '<':
			in = true
		case !in:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestAParameterThatIsWrongIsNamed(t *testing.T) {
	get := served(t, &folded{})
	for path, want := range map[string]string{
		"/?from=yesterday": "<code>from</code>", "/?tz=Mars/Olympus": "<code>tz</code>", "/?refresh=soon": "<code>refresh</code>", "/errors?group=planet": "<code>group</code>",
		"/operations?error_class=nope": "<code>error_class</code>", "/operations?cursor=%21": "<code>cursor</code>", "/spend?from=now&to=now-1h": "<code>to</code>",
		"/?provider=a%zz": "<code>URL</code>", "/operations?provider=a;b": "<code>URL</code>", "/export/report?provider=%": "A parameter is wrong",
		"/?tz=localtime": "<code>tz</code>", "/?tz=posix/Europe/Berlin": "<code>tz</code>", "/?tz=UTC&tz=Europe/Berlin": "<code>tz</code>",
		"/spend?period=year": "<code>period</code>", "/spend?period=day&period=month": "<code>period</code>", "/?sort=beauty": "<code>sort</code>", "/?sort=-": "<code>sort</code>",
		"/?refresh=10s&refresh=1m": "<code>refresh</code>", "/?sort=model&sort=provider": "<code>sort</code>",
	} {
		if resp, body := get(path); resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
			t.Errorf("%s: %s %.200s", path, resp.Status, body)
		}
	}
}

func TestRestrictedViewersSeeTheirTenantsOnly(t *testing.T) {
	attempts := histories.Generate(3, 800)
	mine, other := attempts[0], attempts[0]
	for _, a := range attempts {
		if a.Tenant != mine.Tenant {
			other = a
		}
	}
	get := served(t, &folded{attempts: attempts}, mine.Tenant)
	for _, p := range everyPage {
		resp, body := get(p + "?" + window)
		if resp.StatusCode != http.StatusOK || strings.Contains(body, ">"+other.Tenant+"<") {
			t.Errorf("%s: %s shows %s", p, resp.Status, other.Tenant)
		}
		if resp, _ := get(p + "?" + window + "&tenant=" + other.Tenant); resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s of another tenant: %s", p, resp.Status)
		}
	}
	if resp, _ := get("/op/" + url.PathEscape(other.LogicalID)); other.LogicalID != mine.LogicalID && resp.StatusCode != http.StatusNotFound {
		t.Errorf("an operation of another tenant: %s", resp.Status)
	}
}

// TestWhenTheStoreIsAway the page stays as it was, under a banner.
func TestWhenTheStoreIsAway(t *testing.T) {
	f := &folded{attempts: histories.Generate(3, 300)}
	get := served(t, f)
	_, before := get("/operations?" + window)
	table := before[strings.Index(before, "<table>"):strings.Index(before, "</table>")]
	f.err = errors.Join(api.ErrUnavailable, errors.New("dial tcp 10.1.2.3:9000: secret"))
	resp, after := get("/operations?" + window)
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(after, table) || !strings.Contains(after, "The page below is from") || strings.Contains(after, "secret") {
		t.Errorf("%s does not keep its table, or tells a secret", resp.Status)
	}
	resp, after = get("/operations?" + window + "&tz=UTC") // never seen before
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(after, "cannot be reached") || strings.Contains(after, "<table>") {
		t.Errorf("%s", resp.Status)
	}
	f.err = nil
	if resp, _ = get("/operations?" + window); resp.StatusCode != http.StatusOK {
		t.Errorf("%s once the store is back", resp.Status)
	}
}
