package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // names of zones, whatever the machine has

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// Parameters of a URL beside those of package query.
const (
	paramTZ      = "tz"
	paramSort    = "sort"
	paramRefresh = "refresh"
	paramCursor  = "cursor"
	paramPeriod  = "period"
)

// searchParams are those of /operations, /op and exports.
var searchParams = []string{"logical_id", "idempotency_key", "provider_request_id", "error_class", "outcome", "state"}

const (
	minRefresh = 5 * time.Second
	maxRefresh = 24 * time.Hour // a browser's timers end at 24.8 days and begin anew at once
	// nowStep is what now is cut to, so that pages that follow each other ask the same.
	nowStep = 10 * time.Second
	// wholeMinutes: longer windows are read from rollups, which are quick for whole
	// minutes; so are their edges.
	wholeMinutes = 6 * time.Hour
)

// state is what a URL says: all the state there is.
type state struct {
	path    string
	origin  string     // where the viewer reached the service: http://host:port
	values  url.Values // known parameters only, var-provider as provider
	query   metrics.Query
	asked   map[metrics.Dimension][]string // the filters of the URL, without what the viewer is restricted to
	zone    *time.Location
	now     time.Time
	refresh time.Duration
}

// readState reads a URL. Errors are *query.ParamError, joined; the state can be shown
// all the same, its query is the default one then.
func readState(r *http.Request, now time.Time, window string) (*state, error) {
	s := &state{path: r.URL.Path, origin: originOf(r), values: url.Values{}, zone: time.UTC, now: now.UTC().Truncate(nowStep)}
	given, broken := url.ParseQuery(r.URL.RawQuery)
	if broken != nil { // what cannot be read may have been a filter
		broken = &query.ParamError{Param: "URL", Value: r.URL.RawQuery, Err: fmt.Errorf("a parameter cannot be read (%w); write %% as %%25, ; as %%3B", broken)}
	}
	for _, name := range s.known() {
		for _, key := range []string{name, query.GrafanaPrefix + name} {
			for _, v := range given[key] {
				all := key != name && query.IsGrafanaAll(v)
				if v != "" && !all && !slices.Contains(s.values[name], v) {
					s.values[name] = append(s.values[name], v)
				}
			}
		}
	}
	return s, errors.Join(broken, s.readQuery(r, window), s.readZone(), s.readRefresh(), s.checkView())
}

// originOf is where a viewer reached the service; a proxy in front of it ends TLS.
func originOf(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// checkView names parameters of how a page looks that are given twice or say nothing.
func (s *state) checkView() error {
	var errs []error
	fail := func(name, value, why string) {
		errs = append(errs, &query.ParamError{Param: name, Value: value, Err: errors.New(why)})
	}
	for _, name := range []string{paramTZ, paramSort, paramRefresh, paramCursor, paramPeriod} {
		if v := s.values[name]; len(v) > 1 {
			fail(name, v[1], "given twice")
		}
	}
	if p := s.values.Get(paramPeriod); p != "" && p != periodDay && p != periodMonth {
		fail(paramPeriod, p, "is neither day nor month")
	}
	if order := s.values.Get(paramSort); order != "" {
		name, _, _ := strings.Cut(strings.TrimPrefix(order, "-"), "{")
		_, figure := metrics.LookupFormula(name)
		if _, err := metrics.ParseDimension(name); err != nil && !figure {
			fail(paramSort, order, "is neither a figure nor a dimension, with or without - before it")
		}
	}
	return errors.Join(errs...)
}

func (s *state) known() []string {
	names := []string{query.From, query.To, query.AsOf, query.Group, query.Bucket, paramTZ, paramSort, paramRefresh, paramCursor, paramPeriod}
	for _, d := range metrics.HomeDimensions {
		names = append(names, string(d))
	}
	return append(names, searchParams...)
}

func (s *state) readQuery(r *http.Request, window string) error {
	values := cloned(s.values)
	if s.values.Get(query.From) == "" && s.values.Get(query.To) == "" {
		values.Set(query.From, window)
	}
	q, err := query.Parse(values, s.now)
	if err != nil {
		q, _ = query.Parse(url.Values{}, s.now)
	}
	s.asked = q.Filters
	q.Filters = map[metrics.Dimension][]string{}
	for d, v := range s.asked {
		q.Filters[d] = v
	}
	if q.To.Sub(q.From) > wholeMinutes {
		q.From, q.To = q.From.Truncate(time.Minute), q.To.Truncate(time.Minute)
		if s.values.Get(query.AsOf) == "" {
			q.AsOf = q.AsOf.Truncate(time.Minute)
		}
	}
	tenants, denied := api.Restrict(r.Context(), q.Filters[metrics.DimTenant])
	if len(tenants) > 0 {
		q.Filters[metrics.DimTenant] = tenants
	}
	s.query = q
	return errors.Join(err, denied)
}

func (s *state) readZone() error {
	name := s.values.Get(paramTZ)
	if name == "" || strings.EqualFold(name, "utc") {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" || name[0] < 'A' || name[0] > 'Z' { // localtime, posix/…: files of this machine, which no browser knows
		return &query.ParamError{Param: paramTZ, Value: name, Err: errors.New("is no time zone; write utc, or a name such as Europe/Berlin")}
	}
	s.zone = zone
	return nil
}

func (s *state) readRefresh() error {
	text := s.values.Get(paramRefresh)
	if text == "" {
		return nil
	}
	d, err := query.ParseDuration(text)
	if err != nil {
		return &query.ParamError{Param: paramRefresh, Value: text, Err: err}
	}
	s.refresh = min(max(d, minRefresh), maxRefresh)
	return nil
}

func cloned(v url.Values) url.Values {
	c := make(url.Values, len(v))
	for name, values := range v {
		c[name] = slices.Clone(values)
	}
	return c
}

// kept are the parameters that go along from page to page.
func (s *state) kept() url.Values {
	v := cloned(s.values)
	for _, name := range slices.Concat(searchParams, []string{query.Group, query.Bucket, paramSort, paramCursor, paramPeriod}) {
		v.Del(name)
	}
	return v
}

// with is a link to the page itself with parameters changed; "" removes one.
func (s *state) with(pairs ...string) string { return s.link(s.path, s.values, pairs...) }

// to is a link to another page about the same window and filters.
func (s *state) to(path string, pairs ...string) string { return s.link(path, s.kept(), pairs...) }

func (s *state) link(path string, from url.Values, pairs ...string) string {
	v := cloned(from)
	if path == s.path {
		v.Del(paramCursor)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			v.Del(pairs[i])
			continue
		}
		v.Set(pairs[i], pairs[i+1])
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// without is a link to the page without one value of a parameter.
func (s *state) without(name, value string) string {
	v := cloned(s.values)
	v[name] = slices.DeleteFunc(v[name], func(x string) bool { return x == value })
	return s.link(s.path, v)
}

// absolute are the parameters of the query with the times of now: what a permalink and
// an export carry.
func (s *state) absolute() url.Values {
	v := cloned(s.values)
	v.Del(paramRefresh)
	q := s.query
	for name, values := range query.Encode(metrics.Query{From: q.From, To: q.To, AsOf: q.AsOf}) {
		v[name] = values
	}
	return v
}

// frozen is the permalink of what is shown: this page of a log too, and a search that has
// no window without one.
func (s *state) frozen() string {
	v := s.absolute()
	if s.path == operationsPath && s.named() {
		for _, name := range []string{query.From, query.To} {
			if s.values.Get(name) == "" {
				v.Del(name)
			}
		}
	}
	return s.path + "?" + v.Encode()
}

// monthly tells whether spend is summed by month.
func (s *state) monthly() bool { return s.values.Get(paramPeriod) == periodMonth }

// live tells whether the window reaches to now.
func (s *state) live() bool { return s.now.Sub(s.query.To) < 5*time.Minute }

// clock writes a time in the zone that was asked for.
func (s *state) clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.zone).Format("2006-01-02T15:04:05Z07:00")
}

// axis writes a time on the scale of a chart.
func (s *state) axis(t time.Time, window time.Duration) string {
	switch t = t.In(s.zone); {
	case window < 5*time.Minute:
		return t.Format("15:04:05")
	case window <= 26*time.Hour:
		return t.Format("15:04")
	case window <= 5*24*time.Hour:
		return t.Format("01-02 15:04")
	}
	return t.Format("01-02")
}

// zoneName is what is written beside times.
func (s *state) zoneName() string {
	if s.zone == time.UTC {
		return "UTC"
	}
	return s.zone.String()
}
