package query

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
)

// Parameters of a URL that say which operations are meant and how they are
// grouped. Filters carry the name of their dimension.
const (
	From   = "from"
	To     = "to"
	AsOf   = "as_of"
	Group  = "group"
	Bucket = "bucket"
)

// DefaultWindow is how far before as_of a window begins when no from is given.
const DefaultWindow = time.Hour

// GrafanaPrefix is what Grafana's links put before the names of variables.
const GrafanaPrefix = "var-"

// IsGrafanaAll tells the value of a variable that stands for every name: $__all, and All, which
// Grafana wrote before its dashboards became scenes. Beside the prefix only: a name may be All.
func IsGrafanaAll(value string) bool { return value == "$__all" || value == "All" }

// maxBuckets is how many buckets a window can be cut into: what a chart or a
// table can show.
const maxBuckets = 11_000

// ParamError names the parameter that is wrong.
type ParamError struct {
	Param string // as in the URL
	Value string
	Err   error
}

// Error says what is wrong with the parameter.
func (e *ParamError) Error() string { return e.Param + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ParamError) Unwrap() error { return e.Err }

// Parse reads the parameters that it knows and leaves the others: from (default
// an hour before as_of), to (default as_of), as_of (default now), group (repeated
// or with commas), bucket, and a filter, repeatable, for every home dimension. An
// empty value is as good as none; var-provider, as Grafana writes it, is provider, and
// its word for all as good as none.
// Errors are *ParamError, joined: every wrong parameter is named.
func Parse(v url.Values, now time.Time) (metrics.Query, error) {
	p := parser{values: v, now: now.UTC().Truncate(time.Millisecond)}
	q := metrics.Query{AsOf: p.now, Filters: p.filters()}
	p.time(AsOf, &q.AsOf)
	q.To, q.From = q.AsOf, q.AsOf.Add(-DefaultWindow)
	p.time(To, &q.To)
	if q.To.Before(q.AsOf) {
		q.From = q.To.Add(-DefaultWindow)
	}
	p.time(From, &q.From)
	p.groups(&q)
	p.bucket(&q)
	if len(p.errs) == 0 {
		p.check(q)
	}
	return q, errors.Join(p.errs...)
}

// parser collects what is wrong.
type parser struct {
	values url.Values
	now    time.Time
	errs   []error
}

// all returns the values of a parameter that are not empty, Grafana's included.
func (p *parser) all(name string) []string {
	var out []string
	for _, key := range []string{name, GrafanaPrefix + name} {
		for _, v := range p.values[key] {
			all := key != name && IsGrafanaAll(v)
			if v != "" && !all && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

func (p *parser) fail(name, value string, err error) {
	p.errs = append(p.errs, &ParamError{Param: name, Value: value, Err: err})
}

// one is the value of a parameter that must not be given twice.
func (p *parser) one(name string) (string, bool) {
	values := p.all(name)
	if len(values) > 1 {
		p.fail(name, values[1], errors.New("given twice"))
		return "", false
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

func (p *parser) time(name string, to *time.Time) {
	text, ok := p.one(name)
	if !ok {
		return
	}
	t, err := ParseTime(text, p.now)
	if err != nil {
		p.fail(name, text, err)
		return
	}
	*to = t.Truncate(time.Millisecond)
}

func (p *parser) filters() map[metrics.Dimension][]string {
	filters := map[metrics.Dimension][]string{}
	for _, d := range metrics.Dimensions {
		if values := p.all(string(d)); !d.Executed() && len(values) > 0 {
			filters[d] = values
		}
	}
	return filters
}

func (p *parser) groups(q *metrics.Query) {
	for _, list := range p.all(Group) {
		for name := range strings.SplitSeq(list, ",") {
			d, err := metrics.ParseDimension(name)
			if err != nil {
				p.fail(Group, list, err)
				continue
			}
			q.GroupBy = append(q.GroupBy, d)
		}
	}
}

func (p *parser) bucket(q *metrics.Query) {
	text, ok := p.one(Bucket)
	if !ok {
		return
	}
	var err error
	if q.Bucket, err = ParseDuration(text); err != nil {
		p.fail(Bucket, text, err)
	}
}

// check says of a query that cannot be answered which parameter makes it so.
func (p *parser) check(q metrics.Query) {
	switch err := q.Validate(); {
	case q.To.Before(q.From):
		p.fail(To, p.values.Get(To), errors.New("is before from"))
	case q.Bucket > 0 && q.To.Sub(q.From)/q.Bucket > maxBuckets:
		p.fail(Bucket, p.values.Get(Bucket), fmt.Errorf("cuts the window into more than %d pieces; take a longer one", maxBuckets))
	case err != nil && (q.Bucket < 0 || q.Bucket%time.Second != 0):
		p.fail(Bucket, p.values.Get(Bucket), err)
	case err != nil:
		p.fail(Group, p.values.Get(Group), err)
	}
}

// Encode writes a query as parameters that Parse reads back to the same query;
// times are absolute.
func Encode(q metrics.Query) url.Values {
	v := url.Values{}
	for name, t := range map[string]time.Time{From: q.From, To: q.To, AsOf: q.AsOf} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for _, d := range q.GroupBy {
		v.Add(Group, string(d))
	}
	if q.Bucket > 0 {
		v.Set(Bucket, q.Bucket.String())
	}
	for d, values := range q.Filters {
		v[string(d)] = slices.Clone(values)
	}
	return v
}
