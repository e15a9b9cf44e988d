package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/retrylens/retrylens"
	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// source answers from memory, by the reference fold.
type source struct {
	attempts []retrylens.Attempt
	err      error

	mu   sync.Mutex
	seen []metrics.Query
}

func (s *source) Report(_ context.Context, q metrics.Query) (*metrics.Report, error) {
	s.mu.Lock()
	s.seen = append(s.seen, q)
	s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	return metrics.Fold(s.attempts, q)
}

func (s *source) Operations(_ context.Context, q metrics.Search) ([]metrics.Operation, error) {
	if s.err != nil {
		return nil, s.err
	}
	return metrics.Find(s.attempts, q)
}

func (s *source) Attempts(_ context.Context, id string, tenants ...string) ([]retrylens.Attempt, error) {
	var out []retrylens.Attempt
	for _, a := range s.attempts {
		if a.LogicalID == id && (len(tenants) == 0 || strings.Contains(strings.Join(tenants, "\n")+"\n", a.Tenant+"\n")) {
			out = append(out, a)
		}
	}
	return out, s.err
}

func (s *source) Completeness(_ context.Context, tenants ...string) (*metrics.Completeness, error) {
	c := &metrics.Completeness{}
	c.SetGaps(metrics.EmitterGaps(s.attempts, tenants...))
	return c, s.err
}

func (s *source) Status(context.Context) (api.Status, error) {
	dirty := uint64(7)
	return api.Status{Version: "v1", StartedAt: now, Store: "embedded:x", FreeBytes: 5, NewestAttemptAt: &now, Finaliser: api.FinaliserStatus{DirtyMinutes: &dirty}, Ingest: []api.IngestStatus{{Node: "n1"}}}, s.err
}

func (s *source) Alerts(context.Context) (api.AlertList, error) {
	return api.AlertList{EvaluatedAt: &now, Leading: true, Alerts: someAlerts(), Verdicts: []api.Verdict{{Tenant: histories.Tenants[0], Body: []byte(`{"state":"healthy"}`)}, {Tenant: histories.Tenants[1], Body: []byte(`{"tenant":"` + histories.Tenants[1] + `"}`)}}, Rules: []api.Rule{{Alert: "A", Expr: "retries[5m] > 1", By: []metrics.Dimension{"tenant"}}}}, s.err
}

func (s *source) Incidents(_ context.Context, _, _ time.Time, limit int) ([]api.Alert, error) {
	all := someAlerts()
	return all[:min(len(all), limit)], s.err
}

// someAlerts are one of each tenant, and one of all.
func someAlerts() []api.Alert {
	all := []api.Alert{{Rule: "All", Status: "firing", Labels: map[string]string{"alertname": "All"}, Annotations: map[string]string{}, ActiveAt: now, FiredAt: &now}}
	for _, tenant := range histories.Tenants {
		all = append(all, api.Alert{Rule: "A", Status: "firing", Labels: map[string]string{"tenant": tenant}, Annotations: map[string]string{}, ActiveAt: now, FiredAt: &now})
	}
	return all
}

var now = histories.Base.Add(time.Hour)

// service is an API over a random history.
func service(t *testing.T) (*source, *httptest.Server) {
	t.Helper()
	s := &source{attempts: histories.Generate(11, 800)}
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if only := r.Header.Get("Test-Tenant"); only != "" {
				r = r.WithContext(api.WithTenants(r.Context(), strings.Fields(strings.Trim(only, "-"))...))
			}
			next.ServeHTTP(w, r)
		})
	})
	api.Mount(r, api.Options{Source: s, Version: "test", Now: func() time.Time { return now.Add(123 * time.Millisecond) }})
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	return s, srv
}

type response struct {
	*http.Response
	body []byte
}

func get(t *testing.T, srv *httptest.Server, path string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{resp, b}
}

func (r response) decode(t *testing.T, to any) {
	t.Helper()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", r.Status, r.body)
	}
	if err := json.Unmarshal(r.body, to); err != nil {
		t.Fatalf("%v: %.300s", err, r.body)
	}
}

// document is the served OpenAPI document.
func document(t *testing.T, srv *httptest.Server) validator.Validator {
	t.Helper()
	doc, err := libopenapi.NewDocument(get(t, srv, "/api/v1/openapi.yaml").body)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return v
}

func TestOpenAPIDocument(t *testing.T) {
	_, srv := service(t)
	if ok, errs := document(t, srv).ValidateDocument(); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s", e.Message, e.Reason)
		}
	}
	const file = "testdata/openapi.yaml"
	got := get(t, srv, "/api/v1/openapi.yaml").body
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("the document has changed: look at the difference after go test ./internal/api -update")
	}
}

const wide = "from=2026-11-27&to=2026-11-29"

// TestEveryDocumentedAnswerIsGiven: each route answers with each documented status
// and media type, as the document says.
func TestEveryDocumentedAnswerIsGiven(t *testing.T) {
	s, srv := service(t)
	v := document(t, srv)
	given := map[string]bool{}
	check := func(path string, want int, headers ...string) response {
		t.Helper()
		got := get(t, srv, path, headers...)
		if got.StatusCode != want {
			t.Errorf("%s %v: %s, want %d: %.300s", path, headers, got.Status, want, got.body)
		}
		validate(t, v, got)
		route := strings.TrimPrefix(strings.Split(path, "?")[0], "/api/v1")
		if strings.HasPrefix(route, "/operations/") {
			route = "/operations/{logical_id}"
		}
		given[fmt.Sprint(route, " ", got.StatusCode)] = true
		return got
	}
	one := s.attempts[0]
	paths := map[string]string{
		"/report": "/report?" + wide + "&group=provider,model&bucket=1h", "/series": "/series?" + wide + "&figure=amplification,latency_ms{p99}",
		"/operations": "/operations?" + wide, "/completeness": "/completeness", "/figures": "/figures", "/status": "/status",
		"/alerts": "/alerts", "/incidents": "/incidents?" + wide,
		"/operations/{logical_id}": "/operations/" + url.PathEscape(one.LogicalID) + "?as_of=now",
	}
	for route, path := range paths {
		path = "/api/v1" + path
		ok := check(path, http.StatusOK)
		check(path, http.StatusNotModified, "If-None-Match", `"other", W/`+ok.Header.Get("ETag"))
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		check(path+separator+"colour=red", http.StatusUnprocessableEntity)
		if route == "/figures" {
			continue // asks nobody
		}
		for err, status := range map[error]int{
			errors.New("secret"): http.StatusInternalServerError, api.ErrUnavailable: http.StatusServiceUnavailable, context.DeadlineExceeded: http.StatusGatewayTimeout,
		} {
			s.err = fmt.Errorf("wrapped: %w", err)
			if got := check(path, status); strings.Contains(string(got.body), "secret") {
				t.Errorf("%s tells what is inside: %s", path, got.body)
			}
		}
		s.err = nil
	}
	check("/api/v1/operations/nobody's", http.StatusNotFound)
	for _, path := range []string{"/report", "/series", "/operations"} {
		for format, media := range map[string]string{"csv": "text/csv; charset=utf-8; header=present", "parquet": "application/vnd.apache.parquet"} {
			if got := check("/api/v1"+path+"?format="+format+"&"+wide, http.StatusOK); got.Header.Get("Content-Type") != media {
				t.Errorf("%s as %s is %s", path, format, got.Header.Get("Content-Type"))
			}
		}
	}
	documented(t, srv, given)
}

// documented reports what the document promises and nobody gave.
func documented(t *testing.T, srv *httptest.Server, given map[string]bool) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(get(t, srv, "/api/v1/openapi.json").body, &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, methods := range doc.Paths {
		for status := range methods["get"].Responses {
			route := strings.TrimPrefix(path, "/api/v1") + " " + status
			if n++; !given[route] && !strings.HasPrefix(route, "/figures 5") {
				t.Errorf("documented and never given: %s", route)
			}
		}
	}
	if n < 9*6 {
		t.Errorf("%d answers are documented", n)
	}
}

func validate(t *testing.T, v validator.Validator, got response) {
	t.Helper()
	resp := *got.Response
	resp.Body = io.NopCloser(strings.NewReader(string(got.body)))
	if strings.Contains(resp.Header.Get("Content-Type"), "parquet") || strings.Contains(resp.Header.Get("Content-Type"), "csv") || resp.StatusCode == http.StatusNotModified {
		return // no schema can say more of them
	}
	if ok, errs := v.ValidateHttpResponse(got.Request, &resp); !ok {
		for _, e := range errs {
			t.Errorf("%s: %s: %s %+v", got.Request.URL, e.Message, e.Reason, e.SchemaValidationErrors)
		}
	}
}

// TestWrongParametersAreNamed, with a 4xx and no word of the store.
func TestWrongParametersAreNamed(t *testing.T) {
	_, srv := service(t)
	for path, param := range map[string]string{
		"/report?from=yesterday":                               "from",
		"/report?to=now-2h&from=now":                           "to",
		"/report?as_of=%00":                                    "as_of",
		"/report?group=colour":                                 "group",
		"/report?group=provider,executed_model":                "group",
		"/report?bucket=0":                                     "bucket",
		"/report?bucket=1s&from=now-30d":                       "bucket",
		"/report?format=xml":                                   "format",
		"/report?providr=openai":                               "providr",
		"/report?from=now-1h&from=now-2h":                      "from",
		"/series?figure=amplificaton":                          "figure",
		"/series?figure=latency_ms":                            "figure",
		"/series?figure=latency_ms{p98}":                       "figure",
		"/series?figure=amplification&group=executed_provider": "figure",
		"/operations?limit=0":                                  "limit",
		"/operations?limit=1001":                               "limit",
		"/operations?limit=many":                               "limit",
		"/operations?cursor=!!":                                "cursor",
		"/operations?cursor=e30x":                              "cursor",
		"/operations?state=happy":                              "state",
		"/operations?error_class=oops":                         "error_class",
		"/operations?outcome=oops&from=x":                      "from",
		"/operations/x?as_of=then":                             "as_of",
		"/status?verbose=1":                                    "verbose",
	} {
		got := get(t, srv, "/api/v1"+path)
		var p struct {
			Status int
			Errors []struct{ Location, Message string }
		}
		if err := json.Unmarshal(got.body, &p); err != nil {
			t.Errorf("%s: %v: %s", path, err, got.body)
			continue
		}
		named := false
		for _, e := range p.Errors {
			named = named || e.Location == "query."+param
		}
		if got.StatusCode != http.StatusUnprocessableEntity || got.Header.Get("Content-Type") != "application/problem+json" || !named {
			t.Errorf("%s: %s %s does not name %s: %s", path, got.Status, got.Header.Get("Content-Type"), param, got.body)
		}
	}
}

func TestAcceptChoosesTheFormat(t *testing.T) {
	_, srv := service(t)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html": "application/json",
		"text/csv": "text/csv; charset=utf-8; header=present", "text/csv;q=0.4, application/json;q=0.5": "application/json",
		"text/html, application/vnd.apache.parquet;q=0.1": "application/vnd.apache.parquet", "text/csv;q=x": "application/json", ";;,": "application/json",
	} {
		if got := get(t, srv, "/api/v1/report", "Accept", accept); got.Header.Get("Content-Type") != want {
			t.Errorf("Accept %q: %s %s", accept, got.Status, got.Header.Get("Content-Type"))
		}
	}
	if got := get(t, srv, "/api/v1/report?format=json", "Accept", "text/csv"); got.Header.Get("Content-Type") != "application/json" {
		t.Error("format does not go before Accept")
	}
}

// TestReportIsTheFold: what the API says is what the reference fold says.
func TestReportIsTheFold(t *testing.T) {
	s, srv := service(t)
	got := get(t, srv, "/api/v1/report?"+wide+"&group=tenant&provider=openai&provider=gemini&as_of=2026-11-29")
	want, err := metrics.Fold(s.attempts, s.seen[len(s.seen)-1])
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(want)
	if err != nil || string(got.body) != string(b)+"\n" {
		t.Errorf("%v\n got %.300s\nwant %.300s", err, got.body, b)
	}
	if len(want.Rows) < 2 {
		t.Error("nothing was compared")
	}
}

// operationPage is what the tests look at of a page.
type operationPage struct {
	Operations []struct {
		Tenant    string
		LogicalID string `json:"logical_id"`
	}
	NextCursor *string `json:"next_cursor"`
}

// TestPagesHoldEveryOperationOnce, along next_cursor and along the Link, also when the
// window is relative and time goes on.
func TestPagesHoldEveryOperationOnce(t *testing.T) {
	s, srv := service(t)
	want, err := metrics.Find(s.attempts, metrics.Search{Query: metrics.Query{From: histories.Base.AddDate(0, 0, -1), To: now, AsOf: now}, Limit: metrics.MaxSearchLimit})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	pages := 0
	for path := "/api/v1/operations?from=now-25h&to=now&limit=7"; path != ""; pages++ {
		resp := get(t, srv, path)
		var page operationPage
		resp.decode(t, &page)
		for _, op := range page.Operations {
			key := op.Tenant + "/" + op.LogicalID
			if seen[key] {
				t.Errorf("%s is on two pages", key)
			}
			seen[key] = true
		}
		path = ""
		if link := resp.Header.Get("Link"); link != "" {
			path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		}
		if (path == "") != (page.NextCursor == nil) {
			t.Errorf("Link %q beside cursor %v", path, page.NextCursor)
		}
		if strings.Contains(path, "now-") {
			t.Errorf("the next page moves on with time: %s", path)
		}
	}
	if len(seen) != len(want) || pages < 10 {
		t.Errorf("%d operations on %d pages, want %d", len(seen), pages, len(want))
	}
}

// TestNamedOperationsAreFoundAtAnyTime unless the window says otherwise.
func TestNamedOperationsAreFoundAtAnyTime(t *testing.T) {
	s, srv := service(t)
	old := metrics.Operations(s.attempts, now)[0]
	for query, want := range map[string]int{
		"logical_id=" + url.QueryEscape(old.LogicalID):                                            1,
		"logical_id=" + url.QueryEscape(old.LogicalID) + "&from=2030-01-01&to=2030-01-02":         0,
		"logical_id=" + url.QueryEscape(old.LogicalID) + "&tenant=" + url.QueryEscape(old.Tenant): 1,
		"logical_id=nobody's": 0,
	} {
		var page operationPage
		get(t, srv, "/api/v1/operations?"+query).decode(t, &page)
		if min(len(page.Operations), 1) != want {
			t.Errorf("%s: %d operations", query, len(page.Operations))
		}
	}
}

// TestTenantsOfOthersDoNotExist for a restricted viewer, on every route.
func TestTenantsOfOthersDoNotExist(t *testing.T) {
	s, srv := service(t)
	mine, other := histories.Tenants[0], histories.Tenants[1]
	shared := ""
	for _, op := range metrics.Operations(s.attempts, now) {
		if op.Tenant == other {
			shared = op.LogicalID
		}
	}
	for _, path := range []string{"/report?group=tenant&" + wide, "/series?group=tenant&" + wide, "/operations?limit=1000&" + wide, "/operations?format=csv&" + wide, "/completeness", "/alerts", "/incidents?" + wide, "/operations/" + shared} {
		got := get(t, srv, "/api/v1"+path, "Test-Tenant", mine)
		if strings.Contains(string(got.body), `"`+other+`"`) || strings.Contains(string(got.body), ","+other+",") {
			t.Errorf("%s shows %s: %.300s", path, other, got.body)
		}
		if all := get(t, srv, "/api/v1"+path); path != "/completeness" && !strings.Contains(string(all.body), other) {
			t.Errorf("%s shows nothing of %s to anybody", path, other)
		}
	}
	for _, path := range []string{"/report?tenant=" + other, "/operations?tenant=" + other, "/completeness?tenant=" + other, "/operations/x?tenant=" + other} {
		if got := get(t, srv, "/api/v1"+path, "Test-Tenant", mine); got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
	if got := get(t, srv, "/api/v1/report", "Test-Tenant", "-"); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a viewer of no tenant gets %s", got.Status)
	}
}

// FuzzParameters: whatever stands in a URL, the answer is 200 or a problem that names
// what is wrong, never 500.
func FuzzParameters(f *testing.F) {
	for _, q := range []string{
		"from=now-1h&to=now&group=provider&bucket=5m", "figure=latency_ms{p99}&provider=%27%3BDROP", "limit=10&cursor=eyJzIjoxfQ",
		"tenant=&tenant=a&state=failed", "format=csv&as_of=1e9", "logical_id=%ff&error_class=timeout", "from=%zz",
	} {
		f.Add("report", q)
		f.Add("series", q)
		f.Add("operations", q)
		f.Add("operations/x", q)
	}
	s := &source{attempts: histories.Generate(3, 60)}
	r := chi.NewRouter()
	api.Mount(r, api.Options{Source: s, Now: func() time.Time { return now }})
	f.Fuzz(func(t *testing.T, route, raw string) {
		switch route {
		case "report", "series", "operations", "operations/x":
		default:
			return
		}
		req := httptest.NewRequest(http.MethodGet, "/api/v1/"+route, nil)
		req.URL.RawQuery = raw
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		switch w.Code {
		case http.StatusOK:
		case http.StatusNotFound:
			if route != "operations/x" {
				t.Fatalf("%s?%s: %d", route, raw, w.Code)
			}
		case http.StatusUnprocessableEntity:
			if !strings.Contains(w.Body.String(), `"location":"query`) {
				t.Fatalf("%s?%s names nothing: %s", route, raw, w.Body)
			}
		default:
			t.Fatalf("%s?%s: %d %s", route, raw, w.Code, w.Body)
		}
	})
}
