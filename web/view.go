package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/format"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// view is what every page shows.
type view struct {
	Title   string
	Name    string
	Version string
	Bundle  string // address of the script, "" = there is none
	Began   time.Time

	Nav     []navLink
	Ranges  []navLink
	Zones   []navLink
	From    string // as in the form
	To      string
	Window  string // what is shown, absolute
	Zone    string
	Live    bool
	Refresh int // seconds, 0 = none
	Rates   []navLink
	Frozen  string
	Filters []chip
	Add     []string // dimensions that a filter can be added for
	Hidden  []param  // of the form of the window
	Exports []navLink

	Problem    *problem
	Stale      string // since when the page is as it is shown
	Restricted []string
	Body       any
}

type navLink struct {
	Label, Href, Key, Title string
	Current                 bool
}

type chip struct{ Name, Value, Remove string }

type param struct{ Name, Value string }

// problem is an error as it is told to people.
type problem struct {
	Title, Text string
	Params      []*query.ParamError
	Clear       string // a link to the page without parameters
}

// view joins the body of a page, or why there is none, with what is around it.
func (u *UI) view(ctx context.Context, p page, s *state, body any, err error) (int, *view) {
	status, v := http.StatusOK, &view{}
	key := pageKey(ctx, s)
	if err == nil {
		u.last.keep(key, lastPage{u.o.Now(), s, body})
	} else {
		var told problem
		status, told = u.problem(p, err)
		told.Clear = s.path
		v.Problem = &told
		if old, ok := u.last.get(key); ok && status >= http.StatusInternalServerError {
			s, body, v.Stale = old.state, old.body, old.state.clock(old.at)
		}
	}
	v.Title, v.Name, v.Body, v.Version, v.Bundle = p.title, p.name, body, u.o.Version, bundle
	v.Restricted, _ = api.Tenants(ctx)
	u.around(v, p, s)
	return status, v
}

func (u *UI) around(v *view, p page, s *state) {
	for _, other := range u.pages() {
		if other.key != "" {
			v.Nav = append(v.Nav, navLink{Label: other.title, Href: s.to(other.path), Key: other.key, Current: other.path == p.path})
		}
	}
	q := s.query
	v.Window, v.Zone, v.Live = s.clock(q.From)+" – "+s.clock(q.To), s.zoneName(), s.live()
	v.From, v.To = s.values.Get(query.From), s.values.Get(query.To)
	if v.From == "" && v.To == "" {
		v.From = p.window
	}
	if v.To == "" {
		v.To = "now"
	}
	v.Refresh, v.Frozen = int(s.refresh/time.Second), s.frozen()
	v.Ranges, v.Zones, v.Rates = ranges(s, v), zones(s), rates(s)
	v.Filters, v.Add, v.Hidden = filters(s)
	v.Exports = exports(p, s)
}

var windows = []struct{ from, label string }{
	{"now-15m", "15 m"}, {"now-1h", "1 h"}, {"now-6h", "6 h"}, {"now-24h", "24 h"}, {"now-7d", "7 d"}, {"now-30d", "30 d"}, {"now-90d", "90 d"},
}

func ranges(s *state, v *view) []navLink {
	var links []navLink
	for _, w := range windows {
		href := s.with(query.From, w.from, query.To, "now", query.AsOf, "")
		links = append(links, navLink{Label: w.label, Href: href, Current: v.From == w.from && (v.To == "now" || v.To == "")})
	}
	return links
}

func zones(s *state) []navLink {
	return []navLink{{Label: "UTC", Href: s.with(paramTZ, ""), Current: s.zone == time.UTC}}
}

func rates(s *state) []navLink {
	var links []navLink
	for _, r := range []string{"", "10s", "30s", "1m"} {
		label := r
		if r == "" {
			label = "off"
		}
		links = append(links, navLink{Label: label, Href: s.with(paramRefresh, r), Current: s.values.Get(paramRefresh) == r})
	}
	return links
}

func filters(s *state) (chips []chip, add []string, hidden []param) {
	for _, d := range metrics.HomeDimensions {
		name := string(d)
		add = append(add, name)
		for _, value := range s.asked[d] {
			chips = append(chips, chip{name, format.Safe(value), s.without(name, value)})
		}
	}
	names := make([]string, 0, len(s.values))
	for name := range s.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name == query.From || name == query.To || name == query.AsOf || name == paramCursor {
			continue
		}
		for _, value := range s.values[name] {
			hidden = append(hidden, param{name, value})
		}
	}
	return chips, add, hidden
}

// exports are links to the API's answer to exactly what the page shows.
func exports(p page, s *state) []navLink {
	if p.export == "" {
		return nil
	}
	v := exportValues(p, s)
	link := func(path, format string) string {
		c := cloned(v)
		c.Set("format", format)
		return path + "?" + c.Encode()
	}
	at := api.Prefix + "/" + p.export
	return []navLink{
		{Label: "CSV", Key: "c", Href: link(at, "csv")},
		{Label: "Parquet", Key: "p", Href: link(at, "parquet")},
		{Label: "JSON", Key: "j", Href: link(at, "json")},
		{Label: "manifest", Title: "What these files hold: the query, hashes, how complete they are", Href: link("/export/"+p.export, "csv")},
	}
}

// exportValues are the parameters of the API: those of the page, without those that only
// concern how it looks.
func exportValues(p page, s *state) url.Values {
	v := s.absolute()
	for _, name := range []string{paramTZ, paramSort, paramRefresh, paramCursor, paramPeriod} {
		v.Del(name)
	}
	if p.export != "operations" {
		for _, name := range searchParams {
			v.Del(name)
		}
	} else {
		v.Del(query.Group)
		v.Del(query.Bucket)
		if s.named() && s.values.Get(query.From) == "" && s.values.Get(query.To) == "" {
			v.Del(query.From)
			v.Del(query.To)
		}
	}
	if v.Get(query.Group) == "" && p.export == "report" {
		for _, d := range defaultGroups[p.name] {
			v.Add(query.Group, string(d))
		}
	}
	if p.name == "spend" && v.Get(query.Bucket) == "" {
		v.Set(query.Bucket, "24h")
	}
	return v
}

// defaultGroups are how pages group where the URL does not say.
var defaultGroups = map[string][]metrics.Dimension{
	"triage": {metrics.DimProvider, metrics.DimModel},
	"errors": {metrics.DimProvider, metrics.DimModel},
	"layers": {metrics.DimService},
	"spend":  {metrics.DimExecutedProvider, metrics.DimExecutedModel},
}

// groups is how the page groups.
func (s *state) groups(name string) []metrics.Dimension {
	if len(s.query.GroupBy) > 0 {
		return s.query.GroupBy
	}
	return defaultGroups[name]
}

// named tells a search for what people copy from elsewhere, with no idea of when.
func (s *state) named() bool {
	return len(s.values["logical_id"])+len(s.values["idempotency_key"])+len(s.values["provider_request_id"]) > 0
}
