package query_test

import (
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

func parse(t *testing.T, raw string) (metrics.Query, error) {
	t.Helper()
	v, err := url.ParseQuery(raw)
	if err != nil {
		t.Fatal(err)
	}
	return query.Parse(v, now)
}

func TestParse(t *testing.T) {
	none := map[metrics.Dimension][]string{}
	hour := metrics.Query{From: now.Add(-time.Hour), To: now, AsOf: now, Filters: none}
	for raw, want := range map[string]metrics.Query{
		"": hour,
		"from=&to=&provider=&group=&bucket=&refresh=30s": hour, // what a form leaves empty, and what is not ours
		"from=now-6h&to=now-1h":                          {From: now.Add(-6 * time.Hour), To: now.Add(-time.Hour), AsOf: now, Filters: none},
		"to=2026-11-27":                                  {From: now.Add(-37 * time.Hour), To: now.Add(-36 * time.Hour), AsOf: now, Filters: none},
		"from=1764288000000&to=1764291600000":            {From: now.AddDate(-1, 0, 0).Add(-12 * time.Hour), To: now.AddDate(-1, 0, 0).Add(-11 * time.Hour), AsOf: now, Filters: none},
		"as_of=2026-11-28T11:00:00Z":                     {From: now.Add(-2 * time.Hour), To: now.Add(-time.Hour), AsOf: now.Add(-time.Hour), Filters: none},
		"group=provider,model&group=tenant&bucket=5m": {
			From: hour.From, To: now, AsOf: now, Filters: none, Bucket: 5 * time.Minute,
			GroupBy: []metrics.Dimension{metrics.DimProvider, metrics.DimModel, metrics.DimTenant},
		},
		"provider=a&provider=b&var-provider=c&provider=a&model=x%2Cy": {
			From: hour.From, To: now, AsOf: now,
			Filters: map[metrics.Dimension][]string{metrics.DimProvider: {"a", "b", "c"}, metrics.DimModel: {"x,y"}},
		},
		"var-provider=%24__all&var-tenant=$__all&var-service=All&model=$__all&model=All": { // of Grafana all; of ours names
			From: hour.From, To: now, AsOf: now, Filters: map[metrics.Dimension][]string{metrics.DimModel: {"$__all", "All"}},
		},
	} {
		got, err := parse(t, raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", raw, got, err, want)
		}
	}
}

// TestParseNamesWhatIsWrong: each wrong parameter, and all of them at once.
func TestParseNamesWhatIsWrong(t *testing.T) {
	for raw, want := range map[string]string{
		"from=yesterday":                     "from",
		"to=1e9":                             "to",
		"as_of=x":                            "as_of",
		"from=now&to=now-1h":                 "to",
		"from=now-1h&from=now-2h":            "from",
		"group=colour":                       "group",
		"group=provider,provider":            "group",
		"group=provider,executed_provider":   "group",
		"group=provider,":                    "group",
		"bucket=0s":                          "bucket",
		"bucket=1500ms":                      "bucket",
		"bucket=1s&from=now-30d":             "bucket",
		"from=a&to=b&as_of=c&group=d&bucket": "from to as_of group",
	} {
		_, err := parse(t, raw)
		for _, name := range strings.Fields(want) {
			if !names(err, name) {
				t.Errorf("%s: %v does not name %s", raw, err, name)
			}
		}
	}
}

func names(err error, param string) bool {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range all.Unwrap() {
		var p *query.ParamError
		if errors.As(e, &p) && p.Param == param {
			return true
		}
	}
	return false
}

// FuzzParse: what is accepted is a query that can be answered, and is read back
// from what Encode writes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "from=now-1h&group=provider,model&bucket=5m", "provider=a&provider=%00", "from=9999999999999&to=now"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := query.Parse(v, now)
		if err != nil {
			return
		}
		if err := q.Validate(); err != nil {
			t.Fatalf("%q was accepted, but: %v", raw, err)
		}
		again, err := query.Parse(query.Encode(q), now.Add(time.Hour))
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%q:\n got %+v, %v\nwant %+v", raw, again, err, q)
		}
	})
}
